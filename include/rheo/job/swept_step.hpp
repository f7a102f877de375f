#pragma once
// SPDX-License-Identifier: Apache-2.0

// One row of a sweep (COMET: Kadiyala et al., 2022, asks which cluster suits a model): what the step of a job comes to on a described cluster, and what
// binds it.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "rheo/job/simulated_job.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

struct sweep_rules {
    bool binds = true;     ///< also look for what binds the step: some further steps are played
    bool goodput = false;  ///< also simulate the loss of a rank
};

struct swept_step {
    std::string why_not{};         ///< a sentence where there is no such step; the rest is then empty
    std::vector<int> pipelines{};  ///< ranks of each
    seconds planned{};             ///< of a step, as the planner estimates it
    played_plan played{};          ///< of a step on the cluster's network
    std::int64_t tokens = 0;       ///< of a step
    std::optional<double> goodput{};
    /// That of compute, memory traffic, the links of each level, microbatches and device memory of which twice as much shortens the time of a token most;
    /// latency where that is less than 1 %. Memory, too, where there is no step for lack of it.
    std::string binds{};

    bool is_feasible() const { return why_not.empty(); }
};

inline double tokens_per_second(swept_step const& step)
{
    return step.played.time.count > 0 ? static_cast<double>(step.tokens) * 1e9 / static_cast<double>(step.played.time.count) : 0.0;
}

inline joules energy_per_token(swept_step const& step)
{
    return step.tokens > 0 ? (step.played.computing + step.played.waiting) / static_cast<double>(step.tokens) : joules{};
}

/// A part of rank_step_times.
using rank_step_part = whole_nanoseconds rank_step_times<whole_nanoseconds>::*;

/// A part's share of the step of the mean rank.
inline double share_of_step(swept_step const& step, rank_step_part part)
{
    return step.played.time.count > 0 ? (step.played.parts.*part) / step.played.time : 0.0;
}

}  // namespace rheo::inline v0
