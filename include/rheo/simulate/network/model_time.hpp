#pragma once
// SPDX-License-Identifier: Apache-2.0

// Seconds as the time of a network model, and back.

#include <limits>
#include <type_traits>

#include "rheo/simulate/network/integer_link.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

namespace detail {

template <class Model>
constexpr bool has_whole_time = std::is_same_v<typename Model::time, whole_nanoseconds>;

/// Whole times are rounded down.
template <class Model>
typename Model::time model_time(seconds time)
{
    if constexpr (has_whole_time<Model>) {
        return whole(time.count * 1e9);
    } else {
        return time;
    }
}

constexpr seconds in_seconds(seconds time) { return time; }
/// Exact up to 2^53 ns, 104 days.
constexpr seconds in_seconds(whole_nanoseconds time) { return nanoseconds(static_cast<double>(time.count)); }

/// Later than all that happens.
template <class Model>
inline constexpr typename Model::time endless_time{std::numeric_limits<decltype(Model::time::count)>::max()};

}  // namespace detail
}  // namespace rheo::inline v0
