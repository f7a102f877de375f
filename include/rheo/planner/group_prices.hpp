#pragma once
// SPDX-License-Identifier: Apache-2.0

// Times of stages that several ranks share. A layer takes as long as its member with the most shards, and its exchanges come on top. One gather and one
// sum move the bytes of one all-reduce of the layer's output (Korthikanti et al. 2022, section 4.2), so a measured profile prices them by its all-reduce.
// Without a profile, exchanges take the bytes that a member receives over the modelled link, plus one latency each.

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "rheo/model/exchange_traffic.hpp"
#include "rheo/model/grid.hpp"
#include "rheo/model/model.hpp"
#include "rheo/partition/layer_profile.hpp"
#include "rheo/partition/split_makespan.hpp"
#include "rheo/partition/stage_prices.hpp"
#include "rheo/pipeline/shares.hpp"
#include "rheo/plan/pipeline_schedule.hpp"
#include "rheo/plan/plan.hpp"
#include "rheo/planner/job_templates.hpp"
#include "rheo/planner/planning_request.hpp"
#include "rheo/planner/step_parts.hpp"
#include "rheo/schedule/families/schedule_form.hpp"
#include "rheo/schedule/transform/recomputation.hpp"
#include "rheo/units/expects.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

/// Time of a layer's exchanges, forward or backward, in a group of several ranks, seen from its largest member. @param planned times of the layer
template <class OnlyWhenCalled = void>
seconds exchange_time(layer_description const& layer, layer_profile const& planned, planning_request const& request, shard_group const& group)
{
    auto const exchanges = exchange_count<OnlyWhenCalled>(layer, group);
    if (auto const place = group.members.size() - 2; !request.profile.empty() && place < planned.all_reduce.size()) {
        return planned.all_reduce[place] * (exchanges / 2.0);
    }
    auto const link = request.node_size > 1 ? request.machine.in_node : request.machine.between_nodes;
    return link.latency * exchanges + received_bytes(layer, request.microbatch, request.policy, group) / link.bandwidth / 2.0;
}

/// What a group of several ranks adds to an even part of a layer's time, forward or backward: its exchanges, and the excess work of its largest member.
template <class OnlyWhenCalled = void>
seconds sharing_time(layer_description const& layer, layer_profile const& planned, planning_request const& request, shard_group const& largest)
{
    auto const part = static_cast<double>(largest.run(layer.shards).count()) / layer.shards;
    auto const excess = part - 1.0 / static_cast<double>(largest.members.size());
    return exchange_time(layer, planned, request, largest) + (planned.forward + planned.backward) * (excess / 2.0);
}

/// The layers with the cost of sharing each between 2 .. `most` ranks, as evenly as can be. @pre most <= the model's grid
template <class OnlyWhenCalled = void>
std::vector<layer_profile> with_group_prices(std::vector<layer_profile> layers, model_description const& model, planning_request const& request, int most)
{
    for (std::size_t l = 0; l < layers.size(); ++l) {
        auto& layer = layers[l];
        std::vector<seconds> prices;
        for (int degree = 2; degree <= most; ++degree) {
            prices.push_back(sharing_time(model.layers[l], layer, request, even_group(model.layers[l].shards, degree, degree - 1)));
        }
        layer.all_reduce = std::move(prices);
    }
    return layers;
}

/// The same with the shares that a pipeline names. @param even with_group_prices of `planned`, for as many ranks as its largest group
template <class OnlyWhenCalled = void>
std::vector<layer_profile> with_prices_of(pipeline_instance const& pipeline, std::vector<layer_profile> even, std::vector<layer_profile> const& planned,
                                          model_description const& model, planning_request const& request)
{
    for (stage_id stage{0}; stage.value < stage_count(pipeline.cuts); ++stage) {
        auto const group = group_of(pipeline, stage, grid_of(model));
        auto const span = layers_of(pipeline.cuts, stage);
        for (auto l = span.begin; !group.is_alone() && l < span.end; ++l) {
            even[at(l)].all_reduce[group.members.size() - 2] = sharing_time(model.layers[at(l)], planned[at(l)], request, group);
        }
    }
    return even;
}

namespace detail {

/// How often a backward recomputes a layer that recomputes all by its level (plan/memory_plan.hpp): in each half of a split one.
template <class OnlyWhenCalled = void>
int recomputed_by_level(program const& compute)
{
    return form_of(compute).split ? 2 : 1;
}

/// What the rank of a stage drops of each layer; empty: nothing.
template <class OnlyWhenCalled = void>
array_view<recompute_level const> levels_of_stage(plan const& p, std::size_t pipeline, stage_id stage)
{
    return recompute_levels_at(p, {true, pipeline_id{static_cast<int>(pipeline)}, placement_of(p.pipelines[pipeline]).positions[at(stage)]});
}

/// Adds to backwards what layers recompute by their level. @param layers with the prices of groups
template <class OnlyWhenCalled = void>
void add_recomputation(std::vector<layer_profile>& layers, plan const& p, std::size_t pipeline, program const& compute)
{
    auto const& instance = p.pipelines[pipeline];
    auto const before = layers;
    for (stage_id stage{0}; at(stage) < instance.stages.size(); ++stage) {
        auto const levels = levels_of_stage(p, pipeline, stage);
        auto const degree = instance.stages[at(stage)].size();
        for (auto l = layers_of(instance, stage).begin; !levels.empty() && l < layers_of(instance, stage).end; ++l) {
            if (levels[at(l)] == recompute_level::full) {  // once, if two copies of the model do
                auto const sharing = degree == 1 ? seconds{} : before[at(l)].all_reduce[degree - 2] * static_cast<double>(degree);
                layers[at(l)].backward = before[at(l)].backward + (before[at(l)].forward + sharing) * static_cast<double>(recomputed_by_level(compute));
            }
        }
    }
}

/// Layer -> how many forwards of it the pipeline recomputes in a step.
template <class OnlyWhenCalled = void>
std::vector<int> recomputed_forwards(plan const& p, std::size_t pipeline)
{
    auto const& instance = p.pipelines[pipeline];
    std::vector<int> forwards(at(instance.cuts.back()));
    if (p.recompute == plan_recompute{} || p.work[pipeline].empty()) {
        return forwards;
    }
    auto const compute = schedule_of(p, pipeline).compute;
    auto const run = recomputes_stages(p) ? with_recomputation(compute, recomputed_stages(p, pipeline)) : compute;
    for (auto const& row : run.rows) {
        for (auto const& i : row) {
            bool const is_whole = i.kind == instruction_kind::recompute;
            auto const levels = levels_of_stage(p, pipeline, stage_id{i.stage});
            auto const span = layers_of(instance, stage_id{i.stage});
            for (auto l = span.begin; l < span.end; ++l) {
                bool const by_level = is_compute(i.kind) && i.kind != instruction_kind::forward && !levels.empty() && levels[at(l)] == recompute_level::full;
                forwards[at(l)] += is_whole || by_level ? 1 : 0;
            }
        }
    }
    return forwards;
}

/// Whether stages of the pipeline cost something else than the same stages of any pipeline.
constexpr bool has_own_prices(plan const& p, std::size_t pipeline) { return !p.pipelines[pipeline].shares.empty() || !p.recompute.levels.empty(); }

/// The layers with the shares of the pipeline and with what it recomputes by level. @param even with_group_prices of `planned`
template <class OnlyWhenCalled = void>
std::vector<layer_profile> own_layers(plan const& p, std::size_t pipeline, std::vector<layer_profile> even, std::vector<layer_profile> const& planned,
                                      model_description const& model, planning_request const& request)
{
    auto const& instance = p.pipelines[pipeline];
    auto layers = instance.shares.empty() ? std::move(even) : with_prices_of(instance, std::move(even), planned, model, request);
    if (!p.recompute.levels.empty()) {
        add_recomputation(layers, p, pipeline, schedule_of(p, pipeline).compute);
    }
    return layers;
}

/// How many ranks share each stage of one copy of the model.
template <class OnlyWhenCalled = void>
std::vector<int> degrees_of(pipeline_instance const& pipeline)
{
    std::vector<int> degrees;
    for (stage_id stage{0}; stage.value < stage_count(pipeline.cuts); ++stage) {
        degrees.push_back(static_cast<int>(pipeline.stages[at(stage)].size()));
    }
    return degrees;
}

}  // namespace detail

/// What the times of steps of all plans of a request have in common.
struct step_prices {
    std::vector<layer_profile> planned;  ///< times of each layer
    std::vector<layer_profile> even;     ///< with the prices of groups of up to `largest` ranks
    stage_prices stages;                 ///< of `even`
    int largest;
};

/// @param largest group of the plans. Cost: that of planned_layers, and layers x largest.
template <class OnlyWhenCalled = void>
step_prices make_step_prices(model_description const& model, planning_request const& request, int largest)
{
    auto planned = planned_layers(model, request);
    auto even = with_group_prices(planned, model, request, largest);
    auto stages = make_stage_prices(even, request.machine.between_nodes, largest);
    return {std::move(planned), std::move(even), std::move(stages), largest};
}

namespace detail {

/// What the time of a pipeline without prices of its own follows from.
struct timed_pipeline {
    std::vector<layer_id> cuts;
    std::vector<int> positions;  ///< of its stages
    std::vector<int> devices;
    std::size_t microbatches;

    friend bool operator==(timed_pipeline const&, timed_pipeline const&) = default;
};

}  // namespace detail

/// Modelled time of a whole step: that of the longest pipeline, with messages, exchanges and recomputation. Stages may have any degrees.
/// @pre the prices are those of model and request, for groups as large as the plan's
template <class OnlyWhenCalled = void>
seconds time_of_step(plan const& p, model_description const& model, planning_request const& request, step_prices const& prices)
{
    expects(largest_group(p) <= prices.largest, "prices of smaller groups");
    seconds longest;
    std::vector<detail::timed_pipeline> timed;  // each kind once
    for (std::size_t i = 0; i < p.pipelines.size(); ++i) {
        auto const& pipeline = p.pipelines[i];
        if (p.work[i].empty()) {
            continue;
        }
        auto const devices = detail::degrees_of(pipeline);
        bool const has_own = detail::has_own_prices(p, i);
        if (!has_own && !recomputes_stages(p)) {
            detail::timed_pipeline kind{pipeline.cuts, placement_of(pipeline).positions, devices, p.work[i].size()};
            if (std::find(timed.begin(), timed.end(), kind) != timed.end()) {
                continue;
            }
            timed.push_back(std::move(kind));
        }
        auto const compute = schedule_of(p, i).compute;
        std::optional<stage_prices> own;
        if (has_own) {
            own = make_stage_prices(detail::own_layers(p, i, prices.even, prices.planned, model, request), request.machine.between_nodes, prices.largest);
        }
        auto const& stages = own ? *own : prices.stages;
        longest = std::max(longest, recomputes_stages(p) ? makespan_of(stages, compute, pipeline.cuts, devices, recomputed_stages(p, i))
                                                         : makespan_of(stages, compute, pipeline.cuts, devices));
    }
    return longest;
}

/// The same with prices for this plan alone.
template <class OnlyWhenCalled = void>
seconds time_of_step(plan const& p, model_description const& model, planning_request const& request)
{
    return time_of_step(p, model, request, make_step_prices(model, request, largest_group(p)));
}

/// How the ranks spend the time of a step. Recomputation is computation. @param time result of time_of_step, above 0
template <class OnlyWhenCalled = void>
step_parts parts_of_step(plan const& p, model_description const& model, planning_request const& request, seconds time)
{
    auto const layers = planned_layers(model, request);
    double all = 0, computing = 0, exchanging = 0;
    for (std::size_t i = 0; i < p.pipelines.size(); ++i) {
        auto const& pipeline = p.pipelines[i];
        auto const microbatches = static_cast<double>(p.work[i].size());
        all += time.count * static_cast<double>(ranks_of(pipeline).size());
        auto const recomputed = detail::recomputed_forwards(p, i);
        for (stage_id stage{0}; stage.value < stage_count(pipeline.cuts); ++stage) {
            auto const degree = static_cast<int>(pipeline.stages[at(stage)].size());
            for (auto l = layers_of(pipeline.cuts, stage).begin; l < layers_of(pipeline.cuts, stage).end; ++l) {
                auto const& layer = layers[at(l)];
                computing += (layer.forward * (microbatches + recomputed[at(l)]) + layer.backward * microbatches).count;
                if (degree > 1) {
                    exchanging += degree * (2 * microbatches + recomputed[at(l)]) *
                                  exchange_time(model.layers[at(l)], layer, request, group_of(pipeline, stage, grid_of(model))).count;
                }
            }
        }
    }
    return {computing / all, exchanging / all, 1 - (computing + exchanging) / all};
}

#ifdef RHEO_COMPILED  // in rheo::compiled
extern template seconds time_of_step<>(plan const&, model_description const&, planning_request const&, step_prices const&);
#endif

}  // namespace rheo::inline v0
