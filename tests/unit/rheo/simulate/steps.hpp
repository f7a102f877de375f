#pragma once
// SPDX-License-Identifier: Apache-2.0

// The step that the rehearsals of the tests begin with: pipelines of 2 and 3 ranks with 3 and 5 microbatches, six layers and
// a tied tensor, unit costs.

#include "rheo/schedule/families/one_f_one_b.hpp"
#include "rheo/schedule/transform/lowering.hpp"
#include "rheo/schedule/transform/reductions.hpp"
#include "rheo/simulate/step.hpp"

namespace test {

using namespace rheo;

inline units_by_stage spread(int layers, int stages)
{
    units_by_stage units(static_cast<std::size_t>(stages));
    for (int layer = 0; layer < layers; ++layer) {
        units[static_cast<std::size_t>(layer * stages / layers)].push_back(reduction_id{layer});
    }
    units.front().push_back(reduction_id{layers});
    units.back().push_back(reduction_id{layers});
    return units;
}

inline modelled_pipeline pipeline_of(std::vector<rank_id> ranks, std::vector<stage_work> const& work)
{
    auto const stages = static_cast<int>(ranks.size());
    auto units = spread(6, stages);
    if (stages == 1) {
        units[0].pop_back();
    }
    auto const lowered = lower(one_f_one_b::program(stages, work));
    return {with_reductions(lowered, units, 6), std::move(ranks), unit_costs(stages)};
}

inline std::vector<stage_work> microbatches(int from, int to)
{
    std::vector<stage_work> work;
    for (int m = from; m < to; ++m) {
        work.push_back({microbatch_id{m}, stage_id{0}});
    }
    return work;
}

inline modelled_step two_and_three()
{
    return {{pipeline_of({rank_id{0}, rank_id{1}}, microbatches(0, 3)), pipeline_of({rank_id{2}, rank_id{3}, rank_id{4}}, microbatches(3, 8))},
            {},
            seconds{0.5},
            seconds{0.25},
            generation_id{0},
            step_id{17},
            attempt_id{0},
            seconds{1000.0}};
}

}  // namespace test
