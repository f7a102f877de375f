#pragma once
// SPDX-License-Identifier: Apache-2.0

// Where the time of a simulated job has gone: what logs of clusters tell apart (goodput_account.hpp), and evaluations.

#include <array>
#include <string_view>

#include "rheo/simulate/goodput/goodput_account.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

struct job_account : goodput_account<whole_nanoseconds> {
    whole_nanoseconds evaluation{};  ///< in evaluations that count

    friend constexpr bool operator==(job_account const&, job_account const&) = default;
};

/// A class of the account with its name.
struct job_time_class {
    using member = whole_nanoseconds job_account::*;  // nvcc puts parentheses around a pointer that a field declares, and g++ warns of them

    std::string_view name;
    member time;
};

inline constexpr std::array job_time_classes{
    job_time_class{"creating", &job_account::creating},
    job_time_class{"good", &job_account::good},
    job_time_class{"lost", &job_account::lost},
    job_time_class{"recovery", &job_account::recovery},
    job_time_class{"evaluation", &job_account::evaluation},
    job_time_class{"checkpoint", &job_account::checkpoint},
    job_time_class{"halted", &job_account::halted},
    job_time_class{"unfinished", &job_account::unfinished},
};

/// Time in one class.
struct job_time_span {
    whole_nanoseconds begin;
    whole_nanoseconds end;
    job_time_class::member into;

    friend constexpr bool operator==(job_time_span const&, job_time_span const&) = default;
};

/// All classes together.
constexpr whole_nanoseconds total_time(job_account const& account)
{
    whole_nanoseconds sum{};
    for (auto const& c : job_time_classes) {
        sum += account.*c.time;
    }
    return sum;
}

}  // namespace rheo::inline v0
