#pragma once
// SPDX-License-Identifier: Apache-2.0

// What an evaluation computes: microbatches that go forward only, through the pipelines of a plan.

#include <cstddef>

#include "rheo/plan/plan.hpp"
#include "rheo/topology/microbatch_work.hpp"
#include "rheo/topology/tagged_index.hpp"

namespace rheo::inline v0 {

/// The plan of a whole step with the work of an evaluation in its place: the microbatches are dealt to the pipelines in turn, forward only.
template <class OnlyWhenCalled = void>
plan evaluation_plan(plan whole, int microbatches)
{
    for (auto& work : whole.work) {
        work.clear();
    }
    for (int m = 0; m < microbatches; ++m) {
        whole.work[static_cast<std::size_t>(m) % whole.work.size()].push_back({microbatch_id{m}, no_backward});
    }
    return whole;
}

}  // namespace rheo::inline v0
