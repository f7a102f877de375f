#pragma once
// SPDX-License-Identifier: Apache-2.0

// Where the time of a job has gone: every millisecond is in exactly one class.

#include <array>
#include <cstdint>
#include <string_view>

#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

struct goodput_account {
    std::int64_t steps = 0;           ///< that count at the end
    whole_milliseconds creating{};    ///< until the first configuration
    whole_milliseconds good{};        ///< in steps that count, and in the kept parts of broken ones
    whole_milliseconds lost{};        ///< in steps and checkpoints that count no more
    whole_milliseconds recovery{};    ///< in configurations
    whole_milliseconds checkpoint{};  ///< in checkpoints that were finished
    whole_milliseconds halted{};      ///< with too few nodes
    whole_milliseconds unfinished{};  ///< in the step or checkpoint at the end
    whole_milliseconds end{};         ///< of the trace, counted from 0

    friend constexpr bool operator==(goodput_account const&, goodput_account const&) = default;
};

/// A class of an account with its name.
struct goodput_class {
    using member = whole_milliseconds goodput_account::*;  // nvcc puts parentheses around a pointer that a field declares, and g++ warns of them

    std::string_view name;
    member time;
};

inline constexpr std::array goodput_classes{
    goodput_class{"creating", &goodput_account::creating},
    goodput_class{"good", &goodput_account::good},
    goodput_class{"lost", &goodput_account::lost},
    goodput_class{"recovery", &goodput_account::recovery},
    goodput_class{"checkpoint", &goodput_account::checkpoint},
    goodput_class{"halted", &goodput_account::halted},
    goodput_class{"unfinished", &goodput_account::unfinished},
};

/// All classes together.
constexpr whole_milliseconds total_time(goodput_account const& account)
{
    whole_milliseconds sum{};
    for (auto const& c : goodput_classes) {
        sum += account.*c.time;
    }
    return sum;
}

}  // namespace rheo::inline v0
