#pragma once
// SPDX-License-Identifier: Apache-2.0

// What a program has to do for one microbatch, with its depth in stages: forward through all stages,
// backward from the last one down to `deepest`. `deepest` equal to the number of stages is forward
// only. The planner speaks of layers (microbatch_work); a pipeline's cuts turn those into stages.

#include <cstddef>
#include <vector>

#include "rheo/topology/microbatch_work.hpp"
#include "rheo/topology/tagged_index.hpp"
#include "rheo/units/array_view.hpp"
#include "rheo/units/expects.hpp"

namespace rheo::inline v0 {

struct stage_work {
    microbatch_id microbatch;
    stage_id deepest{0};

    friend constexpr bool operator==(stage_work, stage_work) = default;
};

/// Microbatches 0 .. count-1, each with all of its backward.
template <class OnlyWhenCalled = void>
constexpr std::vector<stage_work> whole_step(int microbatches)
{
    expects(microbatches >= 0, "a step has no negative number of microbatches");
    std::vector<stage_work> work;
    for (int m = 0; m < microbatches; ++m) {
        work.push_back({microbatch_id{m}, stage_id{0}});
    }
    return work;
}

/// The work of a pipeline whose stage s holds the layers cuts[s] .. cuts[s+1]-1.
/// @pre cuts ascend from layer 0 and end with the number of layers. Cost: |work| x stages.
template <class OnlyWhenCalled = void>
constexpr std::vector<stage_work> to_stage_work(array_view<microbatch_work const> work, array_view<layer_id const> cuts)
{
    expects(cuts.size() >= 2, "cuts need a beginning and an end");
    std::vector<stage_work> result;
    for (auto const& w : work) {
        std::size_t stage = 0;
        while (stage + 1 < cuts.size() && cuts[stage + 1] <= w.deepest) {
            ++stage;
        }
        result.push_back({w.microbatch, stage_id{static_cast<int>(stage)}});
    }
    return result;
}

}  // namespace rheo::inline v0
