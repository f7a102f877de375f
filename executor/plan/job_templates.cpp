// SPDX-License-Identifier: Apache-2.0
#include "executor/plan/job_templates.hpp"

#include <algorithm>
#include <cstdint>

#include <fmt/format.h>

#include "executor/config/schedule_file.hpp"
#include "executor/plan/layer_profile_file.hpp"
#include "rheo/partition/stage_prices.hpp"
#include "rheo/plan/layer_memory.hpp"
#include "rheo/plan/memory_parts.hpp"
#include "rheo/units/expects.hpp"

namespace rheo::inline v0 {

std::string layer_profile_error(model_description const& model, run_config const& config)
{
    auto const& path = config.plan.layer_profile;
    if (path.empty()) {
        return {};
    }
    auto const read = find_layer_profile(path, policy_of(config));
    if (!read) {
        return read.error;
    }
    return read.layers.size() == model.layers.size()
               ? std::string{}
               : fmt::format("{}: a profile of {} layers, but the model has {}", path, read.layers.size(), model.layers.size());
}

std::vector<layer_profile> planned_layers(model_description const& model, run_config const& config, int devices_per_node, int pipelines)
{
    auto const policy = policy_of(config);
    auto const shape = config.train.microbatch;
    auto layers = config.plan.layer_profile.empty()
                      ? profile_of(model, shape, {devices_per_node, {{50e9}, {5e9}, {}}, {{1e-6}, {5e9}}, link_between_ranks}, policy)
                      : find_layer_profile(config.plan.layer_profile, policy).layers;
    expects(layers.size() == model.layers.size(), "plan.layer_profile is a profile of the model's layers");
    bool const by_layers = config.plan.recompute == recompute_policy::selective;
    set_memory(layers, model, terms_of_ranks(shape, policy, pipelines),
               !by_layers          ? recompute_level::none
               : shape.slices == 1 ? recompute_level::full
                                   : recompute_level::cheap);
    return layers;
}

std::optional<bytes> memory_limit(run_config const& config)
{
    return config.plan.memory_mib > 0 ? std::optional{bytes{static_cast<std::int64_t>(config.plan.memory_mib * 1048576.0)}} : std::nullopt;
}

int even_share(run_config const& config)
{
    auto const pipelines = config.plan.pipelines.empty() ? config.plan.failures + 1 : static_cast<int>(config.plan.pipelines.size());
    return (config.train.microbatches + pipelines - 1) / pipelines;
}

std::vector<makespan_template> templates_for(std::span<layer_profile const> layers, run_config const& config, size_range nodes, int devices_per_node,
                                             std::optional<bytes> device_memory)
{
    constexpr std::int64_t effort = 2'000'000;  // counted, not timed, so that every rank finds the same cuts
    auto const schedule = schedule_of(config.plan);
    expects(static_cast<bool>(schedule), "the config names a schedule that is not known");
    nodes.to = std::min(nodes.to, static_cast<int>(layers.size()));
    if (nodes.to < nodes.from) {
        return {};
    }
    return plan_makespan_templates(
        make_stage_prices(layers, link_between_ranks, devices_per_node),
        {.schedule = *schedule.schedule,
         .nodes = nodes,
         .microbatches = even_share(config),
         .most_microbatches = config.train.microbatches,
         .device_memory = device_memory,
         .effort = effort,
         .otherwise = one_f_one_b{},
         .recompute = (config.plan.recompute == recompute_policy::always || config.plan.recompute == recompute_policy::automatic) && devices_per_node == 1,
         .slices = config.train.microbatch.slices});
}

template_set_value ready_templates(model_description const& model, run_config const& config, int ranks, std::optional<bytes> device_memory, int pipelines)
{
    int from = config.plan.min_ranks;
    for (auto const n : config.plan.pipelines) {
        from = std::min(from, n);
    }
    return to_template_set(templates_for(planned_layers(model, config, 1, pipelines), config, {from, std::max(from, ranks)}, 1, device_memory));
}

}  // namespace rheo::inline v0
