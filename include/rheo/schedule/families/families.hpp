#pragma once
// SPDX-License-Identifier: Apache-2.0

// The list of all families, in one place. A further family is one header and one entry here; names and parsing follow
// from the list.

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "rheo/schedule/core/any_schedule.hpp"
#include "rheo/schedule/families/bitpipe.hpp"
#include "rheo/schedule/families/chimera.hpp"
#include "rheo/schedule/families/dualpipe.hpp"
#include "rheo/schedule/families/dualpipe_v.hpp"
#include "rheo/schedule/families/eager_1f1b.hpp"
#include "rheo/schedule/families/gpipe.hpp"
#include "rheo/schedule/families/hanayo.hpp"
#include "rheo/schedule/families/interleaved.hpp"
#include "rheo/schedule/families/looped_bfs.hpp"
#include "rheo/schedule/families/one_f_one_b.hpp"
#include "rheo/schedule/families/seq1f1b.hpp"
#include "rheo/schedule/families/v_half.hpp"
#include "rheo/schedule/families/v_min.hpp"
#include "rheo/schedule/families/zb1p.hpp"
#include "rheo/schedule/families/zb_h1.hpp"
#include "rheo/schedule/families/zb_h2.hpp"
#include "rheo/schedule/families/zb_v.hpp"
#include "rheo/units/nearest_name.hpp"
#include "rheo/units/result.hpp"

namespace rheo::inline v0 {

/// How many there are: anyone who adds one counts it here.
inline constexpr std::size_t schedule_family_count = 17;

/// All families.
template <class OnlyWhenCalled = void>
constexpr std::array<any_schedule, schedule_family_count> schedule_families()
{
    return {gpipe{},  one_f_one_b{}, eager_1f1b{}, interleaved{}, looped_bfs{}, zb_h1{},   zb_h2{},  zb1p{},   zb_v{},
            v_half{}, v_min{},       dualpipe{},   dualpipe_v{},  chimera{},    bitpipe{}, hanayo{}, seq1f1b{}};
}

/// Their names, in the same order.
template <class OnlyWhenCalled = void>
constexpr std::array<std::string_view, schedule_family_count> schedule_names()
{
    auto const families = schedule_families();
    std::array<std::string_view, schedule_family_count> names;
    for (std::size_t i = 0; i < names.size(); ++i) {
        names[i] = families[i]->name;
    }
    return names;
}

/// The schedule of that name, or a sentence with the nearest known one.
template <class OnlyWhenCalled = void>
result<any_schedule> parse_schedule(std::string_view name)
{
    for (auto const schedule : schedule_families()) {
        if (schedule->name == name) {
            return schedule;
        }
    }
    std::string error = "no schedule is called '" + std::string{name} + "'; the nearest known name is '";
    error += nearest_name(name, schedule_names());
    return failure{error + "'"};
}

#ifdef RHEO_COMPILED  // in rheo::compiled
extern template result<any_schedule> parse_schedule<>(std::string_view);
#endif

}  // namespace rheo::inline v0
