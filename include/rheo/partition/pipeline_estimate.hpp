#pragma once
// SPDX-License-Identifier: Apache-2.0

// The planning objective of Oobleck (SOSP'23, section 4) as a function of the stages' times w, forward and backward
// together: T = sum w + (nb - S + k - 1) w_k + sum_{i >= k} w_i, k the slowest stage counted from 0, the rightmost
// of several. For equal stages that is 1F1B exactly, (nb + S - 1) w; for others an estimate, which can fall below the
// schedule's makespan (optimal_makespan.hpp minimises that one).

#include <cstddef>
#include <cstdint>

#include "rheo/units/array_view.hpp"
#include "rheo/units/expects.hpp"

namespace rheo::inline v0 {

/// The number of microbatches that the estimate counts with for so many stages when nothing else is known.
constexpr int usual_microbatches(int stages) { return 4 * stages; }

/// The estimate, in the unit of the times. @pre there is a stage, microbatches >= 1
constexpr std::int64_t pipeline_estimate(array_view<std::int64_t const> stage_times, int microbatches)
{
    expects(!stage_times.empty(), "a pipeline has at least one stage");
    expects(microbatches >= 1, "a step needs at least one microbatch");
    std::size_t slowest = 0;
    std::int64_t sum = 0;
    for (std::size_t s = 0; s < stage_times.size(); ++s) {
        slowest = stage_times[s] >= stage_times[slowest] ? s : slowest;
        sum += stage_times[s];
    }
    for (auto s = slowest; s < stage_times.size(); ++s) {
        sum += stage_times[s];
    }
    auto const ahead = microbatches - static_cast<std::int64_t>(stage_times.size()) + static_cast<std::int64_t>(slowest) - 1;
    return sum + ahead * stage_times[slowest];
}

}  // namespace rheo::inline v0
