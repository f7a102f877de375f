#pragma once
// SPDX-License-Identifier: Apache-2.0

// The pipeline templates of a job: its layers as planning sees them, in times as modelled or measured and in bytes that ranks allocate, and the
// best cuts of them for every size of a pipeline that may be needed.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "rheo/model/grid.hpp"
#include "rheo/model/model.hpp"
#include "rheo/partition/layer_profile.hpp"
#include "rheo/partition/stage_prices.hpp"
#include "rheo/pipeline/makespan_templates.hpp"
#include "rheo/pipeline/shares.hpp"
#include "rheo/pipeline/template_set.hpp"
#include "rheo/plan/layer_memory.hpp"
#include "rheo/plan/memory_parts.hpp"
#include "rheo/planner/planning_request.hpp"
#include "rheo/schedule/families/one_f_one_b.hpp"
#include "rheo/units/array_view.hpp"
#include "rheo/units/expects.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

/// The layers on nodes of so many devices. Nothing else that is measured enters, or ranks could plan differently.
/// @param pipelines that hold each layer, one or more
/// @pre request.profile is empty or has one entry for each layer of the model
template <class OnlyWhenCalled = void>
std::vector<layer_profile> planned_layers(model_description const& model, planning_request const& request, int devices_per_node = 1, int pipelines = 2)
{
    auto machine = request.machine;
    machine.devices_per_node = devices_per_node;
    auto layers = request.profile.empty() ? profile_of(model, request.microbatch, machine, request.policy) : request.profile;
    expects(layers.size() == model.layers.size(), "plan.layer_profile is a profile of the model's layers");
    bool const by_layers = request.recompute == recompute_policy::selective;
    auto terms = terms_of_ranks(request.microbatch, request.policy, pipelines);
    terms.optimizer_share = optimizer_share(request);
    set_memory(layers, model, terms,
               !by_layers                       ? recompute_level::none
               : request.microbatch.slices == 1 ? recompute_level::full
                                                : recompute_level::cheap,
               request.group_size > 1 ? even_group(grid_of(model), request.group_size, request.group_size - 1) : shard_group{});
    return layers;
}

/// Templates of 1 .. devices_per_node devices per stage for so many nodes, as far as there are layers: cuts with the least makespan
/// of the schedule at an even share of the microbatches. @param device_memory of one device; none: unlimited
template <class OnlyWhenCalled = void>
std::vector<makespan_template> templates_for(array_view<layer_profile const> layers, planning_request const& request, size_range nodes,
                                             int devices_per_node = 1, std::optional<bytes> device_memory = {})
{
    constexpr std::int64_t effort = 2'000'000;  // counted, not timed, so that every rank finds the same cuts
    nodes.to = std::min(nodes.to, static_cast<int>(layers.size()));
    if (nodes.to < nodes.from) {
        return {};
    }
    bool const whole_stages = request.recompute == recompute_policy::always || request.recompute == recompute_policy::automatic;
    return plan_makespan_templates(make_stage_prices(layers, request.machine.between_nodes, devices_per_node),
                                   {.schedule = request.schedule,
                                    .nodes = nodes,
                                    .microbatches = even_share(request),
                                    .most_microbatches = request.microbatches,
                                    .device_memory = device_memory,
                                    .effort = effort,
                                    .otherwise = one_f_one_b{},
                                    .recompute = whole_stages && devices_per_node == 1,
                                    .slices = request.microbatch.slices});
}

/// A template for every size from the request's smallest pipeline to as many ranks as there are, or layers.
/// @param device_memory of a rank; none: unlimited  @param pipelines that hold each layer, one or more
template <class OnlyWhenCalled = void>
template_set_value ready_templates(model_description const& model, planning_request const& request, int ranks, std::optional<bytes> device_memory,
                                   int pipelines = 2)
{
    int from = request.min_ranks;
    for (auto const n : request.pipelines) {
        from = std::min(from, n);
    }
    return to_template_set(templates_for(planned_layers(model, request, 1, pipelines), request, {from, std::max(from, ranks)}, 1, device_memory));
}

/// Templates of the sizes that the request names alone. @pre it names pipelines  @param as above
template <class OnlyWhenCalled = void>
template_set_value named_templates(model_description const& model, planning_request const& request, std::optional<bytes> device_memory, int pipelines = 2)
{
    auto const layers = planned_layers(model, request, 1, pipelines);
    std::vector<makespan_template> made;
    for (int const n : std::set<int>(request.pipelines.begin(), request.pipelines.end())) {
        for (auto& one : templates_for(layers, request, {n, n}, 1, device_memory)) {
            made.push_back(std::move(one));
        }
    }
    return to_template_set(made);
}

}  // namespace rheo::inline v0
