#pragma once
// SPDX-License-Identifier: Apache-2.0

// Where the time of a job has gone: every unit of it is in exactly one class.

#include <array>
#include <cstdint>
#include <string_view>

#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

/// @tparam Time a whole number: whole_milliseconds as logs of clusters count, whole_nanoseconds for steps that are played
template <class Time = whole_milliseconds>
struct goodput_account {
    std::int64_t steps = 0;  ///< that count at the end
    Time creating{};         ///< until the first configuration
    Time good{};             ///< in steps that count, and in the kept parts of broken ones
    Time lost{};             ///< in steps and checkpoints that count no more
    Time recovery{};         ///< in configurations
    Time checkpoint{};       ///< in checkpoints that were finished
    Time halted{};           ///< with too few nodes
    Time unfinished{};       ///< in the step or checkpoint at the end
    Time end{};              ///< of the job, counted from 0

    friend constexpr bool operator==(goodput_account const&, goodput_account const&) = default;
};

/// A class of an account with its name.
template <class Time = whole_milliseconds>
struct goodput_class {
    using member = Time goodput_account<Time>::*;  // nvcc puts parentheses around a pointer that a field declares, and g++ warns of them

    std::string_view name;
    member time;
};

template <class Time = whole_milliseconds>
inline constexpr std::array goodput_classes{
    goodput_class<Time>{"creating", &goodput_account<Time>::creating},
    goodput_class<Time>{"good", &goodput_account<Time>::good},
    goodput_class<Time>{"lost", &goodput_account<Time>::lost},
    goodput_class<Time>{"recovery", &goodput_account<Time>::recovery},
    goodput_class<Time>{"checkpoint", &goodput_account<Time>::checkpoint},
    goodput_class<Time>{"halted", &goodput_account<Time>::halted},
    goodput_class<Time>{"unfinished", &goodput_account<Time>::unfinished},
};

/// All classes together.
template <class Time>
constexpr Time total_time(goodput_account<Time> const& account)
{
    Time sum{};
    for (auto const& c : goodput_classes<Time>) {
        sum += account.*c.time;
    }
    return sum;
}

}  // namespace rheo::inline v0
