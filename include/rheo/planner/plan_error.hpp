#pragma once
// SPDX-License-Identifier: Apache-2.0

// Why a plan that was not made by this planner, or was made for another job, cannot be run.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "rheo/model/grid.hpp"
#include "rheo/model/model.hpp"
#include "rheo/plan/memory_plan.hpp"
#include "rheo/plan/plan.hpp"
#include "rheo/plan/rank_memory.hpp"
#include "rheo/planner/detail/text.hpp"
#include "rheo/planner/planning_request.hpp"
#include "rheo/schedule/core/any_schedule.hpp"
#include "rheo/topology/microbatch_set.hpp"

namespace rheo::inline v0 {

namespace detail {

/// Which rank would hold more than the memory limit; empty when none does. @param optimizer_share that a rank keeps of what optimizer shards divide
template <class OnlyWhenCalled = void>
std::string memory_error(plan const& p, model_description const& model, planning_request const& request, int ranks, double optimizer_share = 1.0)
{
    auto const limit = request.memory_limit;
    for (rank_id rank{0}; limit && rank.value < ranks; ++rank) {
        auto parts = memory_parts_of(p, model, request.microbatch, request.policy, rank);
        parts.workspace = {};
        parts.state = with_optimizer_share(parts.state, optimizer_share);
        auto const name = "rank " + std::to_string(rank.value);
        if (auto const place = position_of(p, rank); place.found && request.recompute == recompute_policy::selective) {
            auto const levels = recompute_levels_at(p, place);
            memory_plan const as_planned{.parts = parts, .recompute_levels = {levels.begin(), levels.end()}, .available = *limit};
            if (!as_planned.fits()) {
                return message_of(as_planned, name) + " of state and activations; plan.memory_mib = " + memory_limit_text(*limit) + " cannot be kept";
            }
        } else if (needed_bytes(parts) > *limit) {
            auto const largest = largest_of(parts);
            return name + " would hold " + mebibytes_text(needed_bytes(parts)) + " MiB of state and activations" +
                   (request.recompute == recompute_policy::automatic ? " with full recomputation" : "") + ", but plan.memory_mib is " +
                   memory_limit_text(*limit) + "; the largest part is " + mebibytes_text(largest.size) + " MiB of " + std::string{largest.name};
        }
    }
    return {};
}

/// Whether the shares of a pipeline's stages, if it names any, deal the grid to their ranks, alike in all stages of a position.
template <class OnlyWhenCalled = void>
std::string shares_error(pipeline_instance const& pipeline, int grid)
{
    auto const& shares = pipeline.shares;
    if (!shares.empty() && shares.size() != pipeline.stages.size()) {
        return "a pipeline of " + std::to_string(pipeline.stages.size()) + " stages has shares for " + std::to_string(shares.size());
    }
    for (std::size_t s = 0; s < shares.size(); ++s) {
        auto const name = "stage " + std::to_string(s);
        auto const& ranks = pipeline.stages[s];
        if (shares[s].size() != ranks.size()) {
            return name + " has " + ranks_text(static_cast<int>(ranks.size())) + ", but shares for " + std::to_string(shares[s].size());
        }
        std::int64_t sum = 0;
        for (std::size_t member = 0; member < ranks.size(); ++member) {
            if (shares[s][member] < 1) {
                return name + " gives rank " + std::to_string(ranks[member].value) + " no shard; each rank of a group needs one";
            }
            sum += shares[s][member];
        }
        if (sum != grid) {
            return "the shares of " + name + " add up to " + std::to_string(sum) + ", but train.shards is " + std::to_string(grid);
        }
        for (std::size_t other = 0; other < s; ++other) {
            if (pipeline.stages[other].front() == ranks.front() && shares[other] != shares[s]) {
                return "rank " + std::to_string(ranks.front().value) + " has different shares in stages " + std::to_string(other) + " and " +
                       std::to_string(s) + "; a position has the same shares for all of its stages";
            }
        }
    }
    return {};
}

/// Whether the stages of a pipeline have groups that can run them: each rank a shard, one group for a position, all of it in one node.
template <class OnlyWhenCalled = void>
std::string group_error(pipeline_instance const& pipeline, int grid, int node_size)
{
    for (auto const& stage : pipeline.stages) {
        if (stage.empty()) {
            return "a pipeline needs a rank for each stage between its cuts";
        }
    }
    for (auto const& stage : pipeline.stages) {
        if (stage.size() > static_cast<std::size_t>(grid)) {
            return "a stage has " + ranks_text(static_cast<int>(stage.size())) + ", but train.shards is " + std::to_string(grid) +
                   ": each rank of a group needs a shard";
        }
        for (auto const& other : pipeline.stages) {
            if (other.front() == stage.front() && other != stage) {
                return "rank " + std::to_string(stage.front().value) + " runs stages with different ranks; a position has one group for all of its stages";
            }
        }
        for (auto const rank : stage) {
            if (stage.size() > 1 && node_size > 1 && rank.value / node_size != stage.front().value / node_size) {
                return "ranks " + std::to_string(stage.front().value) + " and " + std::to_string(rank.value) +
                       " share a stage, but lie on two nodes of plan.node_size = " + std::to_string(node_size);
            }
        }
    }
    return shares_error(pipeline, grid);
}

/// Whether no rank has two places, in stages between cuts of the model. @param seen out: rank -> how often the plan names it
template <class OnlyWhenCalled = void>
std::string place_error(plan const& p, int layers, int grid, int node_size, std::vector<int>& seen)
{
    auto const ranks = static_cast<int>(seen.size());
    auto const place = [&](rank_id rank) {
        return rank.value >= 0 && rank.value < ranks && ++seen[at(rank)] == 1
                   ? std::string{}
                   : "the plan names rank " + std::to_string(rank.value) + " twice, or it is none of the " + std::to_string(ranks) + " ranks that are started";
    };
    for (auto const& pipeline : p.pipelines) {
        if (!are_cuts(pipeline.cuts) || pipeline.cuts.back() != layer_id{layers}) {
            return "the cuts of a pipeline must ascend from 0 to the " + std::to_string(layers) + " layers of the model";
        }
        if (pipeline.stages.empty() || pipeline.stages.size() % (pipeline.cuts.size() - 1) != 0) {
            return "a pipeline needs a rank for each stage between its cuts";
        }
        if (auto error = group_error(pipeline, grid, node_size); !error.empty()) {
            return error;
        }
        for (auto const rank : ranks_of(pipeline)) {
            if (auto error = place(rank); !error.empty()) {
                return error;
            }
        }
    }
    for (auto const rank : p.spares) {
        if (auto error = place(rank); !error.empty()) {
            return error;
        }
    }
    return {};
}

/// Whether the work is that of a step: each microbatch once, with all of its backward.
template <class OnlyWhenCalled = void>
bool is_whole_step(plan const& p, int microbatches)
{
    microbatch_set done;
    int count = 0;
    for (auto const& list : p.work) {
        for (auto const w : list) {
            if (w.microbatch.value < 0 || w.microbatch.value >= microbatches || w.deepest != layer_id{0} || done.contains(w.microbatch)) {
                return false;
            }
            done.insert(w.microbatch);
            ++count;
        }
    }
    return count == microbatches;
}

template <class OnlyWhenCalled = void>
std::string work_error(plan const& p, int microbatches)
{
    return is_whole_step(p, microbatches) ? std::string{}
                                          : "the plan must name each of the " + std::to_string(microbatches) + " microbatches of a step once and whole";
}

/// Whether it has a schedule, pipelines, and the slices of the microbatches.
template <class OnlyWhenCalled = void>
std::string form_error(plan const& p, int slices)
{
    if (!is_known(p.schedule)) {
        auto const name = std::string{name_of(p.schedule)};
        return name.empty() ? "a plan needs a schedule" : "no schedule is called '" + name + "'";
    }
    if (p.slices != slices) {
        return "the plan is for microbatches in " + std::to_string(p.slices) + (p.slices == 1 ? " slice" : " slices") + ", train.slices is " +
               std::to_string(slices);
    }
    return p.pipelines.empty() || p.pipelines.size() != p.work.size() ? std::string{"a plan needs at least one pipeline"} : std::string{};
}

}  // namespace detail

/// Why the plan cannot run steps of so many microbatches of the model; empty when it can. It may lack ranks, as a plan after a loss does. Memory is
/// not checked here. @param ranks above the highest that may be named
template <class OnlyWhenCalled = void>
std::string step_plan_error(plan const& p, model_description const& model, int microbatches, int slices, int ranks)
{
    if (auto error = detail::form_error(p, slices); !error.empty()) {
        return error;
    }
    std::vector<int> seen(static_cast<std::size_t>(ranks));
    if (auto error = detail::place_error(p, static_cast<int>(model.layers.size()), grid_of(model), 1, seen); !error.empty()) {
        return error;
    }
    return detail::work_error(p, microbatches);
}

/// Why the plan cannot be run on ranks 0 .. ranks-1; empty when it can: a schedule that is not known, wrong cuts, a rank twice or out of range,
/// microbatches missing, more memory than the limit.
template <class OnlyWhenCalled = void>
std::string plan_error(plan const& p, model_description const& model, planning_request const& request, int ranks)
{
    if (auto error = detail::form_error(p, request.microbatch.slices); !error.empty()) {
        return error;
    }
    if (auto const wanted = optimizer_shards_of(request); p.optimizer != wanted) {
        auto const text = [](optimizer_shards shards) {
            return shards.are_used() ? std::to_string(shards.copies) + " ranks keep each moment on nodes of " + detail::ranks_text(shards.node_size)
                                     : std::string{"all holders keep moments"};
        };
        return "in the plan " + text(p.optimizer) + ", but by plan.optimizer_shards, plan.failures and plan.node_size " + text(wanted);
    }
    std::vector<int> seen(static_cast<std::size_t>(ranks));
    if (auto error = detail::place_error(p, static_cast<int>(model.layers.size()), grid_of(model), request.node_size, seen); !error.empty()) {
        return error;
    }
    if (auto const missing = std::find(seen.begin(), seen.end(), 0); missing != seen.end()) {
        return "the plan has no place for rank " + std::to_string(missing - seen.begin()) + " of " + std::to_string(ranks) +
               "; a rank without work stands among the spares";
    }
    if (auto error = detail::work_error(p, request.microbatches); !error.empty()) {
        return error;
    }
    return detail::memory_error(p, model, request, ranks);
}

#ifdef RHEO_COMPILED  // in rheo::compiled
extern template std::string plan_error<>(plan const&, model_description const&, planning_request const&, int);
#endif

}  // namespace rheo::inline v0
