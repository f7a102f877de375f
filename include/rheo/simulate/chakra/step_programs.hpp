#pragma once
// SPDX-License-Identifier: Apache-2.0

// What the ranks of a job execute in a step: the lowered programs of its pipelines, and who runs each row. A plan gives it before the step, the records of
// a run afterwards; both are exported from this one value.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "rheo/plan/plan.hpp"
#include "rheo/plan/programs.hpp"
#include "rheo/plan/reduction_units.hpp"
#include "rheo/schedule/core/program.hpp"
#include "rheo/topology/tagged_index.hpp"
#include "rheo/units/result.hpp"

namespace rheo::inline v0 {

struct step_programs {
    std::vector<program> programs;            ///< pipeline -> with transfers and reductions
    std::vector<std::vector<rank_id>> ranks;  ///< pipeline -> position -> rank
    std::vector<rank_id> waiting;             ///< ranks without a place, which only vote; ascending

    friend bool operator==(step_programs const&, step_programs const&) = default;
};

/// The ranks of the plan by pipeline and position, or why they cannot be exported: stages of several ranks exchange inside of operations, and optimizer
/// shards gather parameters before the vote.
template <class OnlyWhenCalled = void>
result<step_programs> ranks_of_step(plan const& p)
{
    step_programs step{{}, {}, p.spares};
    if (p.optimizer.are_used()) {
        return failure{"the plan divides the optimizer's state; exported are plans without optimizer shards (plan.optimizer_shards = false)"};
    }
    for (std::size_t i = 0; i < p.pipelines.size(); ++i) {
        auto& ranks = step.ranks.emplace_back();
        for (auto const& group : groups_of(p.pipelines[i])) {
            if (group.size() > 1) {
                return failure{"pipeline " + std::to_string(i) + " has a stage of " + std::to_string(group.size()) +
                               " ranks; exported are plans whose stages have one rank each (plan.tensor = 1)"};
            }
            ranks.push_back(group.front());
        }
    }
    return step;
}

/// The whole step of a plan. @param units reductions of a model of `layers` layers
template <class OnlyWhenCalled = void>
result<step_programs> step_programs_of(plan const& p, std::vector<reduction_unit> const& units, int layers)
{
    auto step = ranks_of_step(p);
    if (step) {
        step->programs = programs_of(p, units, layers);
    }
    return step;
}

/// All ranks that take part in the step, ascending.
template <class OnlyWhenCalled = void>
std::vector<rank_id> ranks_of(step_programs const& step)
{
    auto all = step.waiting;
    for (auto const& pipeline : step.ranks) {
        all.insert(all.end(), pipeline.begin(), pipeline.end());
    }
    std::sort(all.begin(), all.end());
    return all;
}

}  // namespace rheo::inline v0
