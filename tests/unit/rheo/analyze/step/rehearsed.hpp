#pragma once
// SPDX-License-Identifier: Apache-2.0

// Steps for the tests of the analysis: rehearsals of all families with drawn costs, as events by rank and start.

#include <algorithm>
#include <random>
#include <vector>

#include "rheo/analyze/step/recorded_step.hpp"
#include "rheo/schedule/core/any_schedule.hpp"
#include "rheo/schedule/transform/lowering.hpp"
#include "rheo/schedule/transform/reductions.hpp"
#include "rheo/simulate/step.hpp"
#include "rheo/trace/event.hpp"

namespace test {

using namespace rheo;

inline seconds drawn_time(std::mt19937& draw, double least, double most) { return {std::uniform_real_distribution<double>{least, most}(draw)}; }

/// A step of pipelines of `ranks` each that share their units' sums. Microbatches in a pipeline: `count`. No pipelines where the family refuses them.
inline modelled_step drawn_step(std::mt19937& draw, any_schedule family, int pipelines, int ranks, int count)
{
    modelled_step step{};
    if (error_of(family, {.ranks = ranks, .microbatches = count}) != shape_error::none) {
        return step;
    }
    auto const transfer = drawn_time(draw, 0.01, 0.5);
    int stages = 0;
    for (int p = 0; p < pipelines; ++p) {
        auto const lowered = lower(make_program(family, {.ranks = ranks, .microbatches = count}));
        stages = stages_per_copy(lowered);
        units_by_stage units(lowered.placement.size());
        stage_costs costs;
        for (std::size_t s = 0; s < units.size(); ++s) {
            units[s] = {reduction_id{static_cast<int>(s) % stages}};
            auto const backward = drawn_time(draw, 1.0, 3.0);
            costs.push_back({drawn_time(draw, 0.5, 1.5), backward, backward / 2.0, backward / 2.0, transfer, transfer});
        }
        std::vector<rank_id> members;
        for (int r = 0; r < ranks; ++r) {
            members.push_back(rank_id{p * ranks + r});
        }
        step.pipelines.push_back({with_reductions(lowered, units, stages), members, costs});
    }
    for (int s = 0; s < stages; ++s) {
        step.reductions.push_back(drawn_time(draw, 0.1, 1.0));
    }
    step.decide = seconds{0.25};
    step.update = seconds{0.5};
    step.begin = drawn_time(draw, 0.0, 100.0);
    return step;
}

inline std::vector<trace_event> by_rank(std::vector<trace_event> events)
{
    put_in_order(events);
    return events;
}

}  // namespace test
