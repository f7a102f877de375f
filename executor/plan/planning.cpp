// SPDX-License-Identifier: Apache-2.0
#include "executor/plan/planning.hpp"

#include <cstdint>
#include <utility>

#include <fmt/format.h>

#include "executor/config/files/schedule_file.hpp"
#include "executor/plan/layer_profile_file.hpp"
#include "executor/plan/planned_cluster.hpp"
#include "rheo/job/cluster_request.hpp"
#include "rheo/plan/rank_memory.hpp"
#include "rheo/planner/changed_plan.hpp"
#include "rheo/planner/job_templates.hpp"
#include "rheo/planner/make_forecast.hpp"
#include "rheo/planner/make_plan.hpp"
#include "rheo/planner/make_replanning.hpp"
#include "rheo/planner/plan_error.hpp"
#include "rheo/planner/recompute_choice.hpp"
#include "rheo/schedule/families/families.hpp"
#include "rheo/schedule/transform/slices.hpp"
#include "rheo/units/exit_error.hpp"
#include "rheo/units/expects.hpp"

namespace rheo::inline v0 {

namespace {

/// The schedules that plan.schedule = "auto" compares; 1F1B first, which wins a tie.
std::vector<any_schedule> candidates_for(microbatch_shape shape)
{
    std::vector<any_schedule> candidates{one_f_one_b{}};
    for (auto const family : schedule_families()) {
        if (family != candidates.front() && (shape.slices > 1 || !cuts_sequences(family))) {
            candidates.push_back(family);
        }
    }
    return candidates;
}

/// All but the profile. @pre check(config) found nothing, plan.cluster can be read
planning_request without_profile(run_config const& config)
{
    auto const& plan = config.plan;
    planning_request request{.schedule = plan.schedule,
                             .microbatches = config.train.microbatches,
                             .microbatch = config.train.microbatch,
                             .policy = policy_of(config),
                             .pipelines = plan.pipelines,
                             .tensor = plan.tensor,
                             .layers = plan.layers,
                             .shares = plan.shares,
                             .failures = plan.failures,
                             .min_ranks = plan.min_ranks,
                             .spares = plan.spares,
                             .node_size = plan.node_size,
                             .recompute = plan.recompute,
                             .shard_optimizer = plan.optimizer_shards,
                             .mtbf = plan.mtbf};
    if (plan.memory > bytes{}) {
        request.memory_limit = plan.memory;
    }
    if (plan.schedule == automatic_schedule()) {
        request.schedule = one_f_one_b{};
        request.candidates = candidates_for(config.train.microbatch);
    }
    return plan.cluster.empty() ? request : on_cluster(std::move(request), *find_cluster(plan.cluster));
}

/// Why the cluster cannot run so many ranks; empty when it can, or when there is none.
std::string cluster_error(run_config const& config, int ranks)
{
    if (config.plan.cluster.empty()) {
        return {};
    }
    auto const cluster = find_cluster(config.plan.cluster);
    if (!cluster) {
        return cluster.error();
    }
    auto const devices = devices_of(*cluster);
    return ranks > devices ? fmt::format("{}: a cluster of {} devices for {} ranks; expected a device for each rank", config.plan.cluster, devices, ranks)
                           : std::string{};
}

}  // namespace

result<planning_request> planning_request_of(model_description const& model, run_config const& config)
{
    if (auto error = cluster_error(config, 1); !error.empty()) {
        return failure{std::move(error)};
    }
    auto request = without_profile(config);
    auto const& path = config.plan.layer_profile;
    if (path.empty()) {
        return request;
    }
    auto read = find_layer_profile(path, policy_of(config));
    if (!read) {
        return failure{read.error()};
    }
    if (read->size() != model.layers.size()) {
        return failure{fmt::format("{}: a profile of {} layers, but the model has {}", path, read->size(), model.layers.size())};
    }
    request.profile = *std::move(read);
    request.profile_name = path;
    return request;
}

std::string layer_profile_error(model_description const& model, run_config const& config) { return planning_request_of(model, config).error(); }

result<initial_plan> make_plan(model_description const& model, run_config const& config, int ranks)
{
    if (auto error = cluster_error(config, ranks); !error.empty()) {
        return failure{std::move(error)};
    }
    auto const request = planning_request_of(model, config);
    if (!request) {
        return failure{request.error()};
    }
    auto made = make_plan(model, *request, ranks);
    bool const is_limit_of_cluster = !config.plan.cluster.empty() && config.plan.memory == bytes{};
    if (!made && is_limit_of_cluster && made.error().find("plan.memory_mib") != std::string::npos) {
        return failure{fmt::format("{}; plan.memory_mib is the memory of a device in {}", made.error(), config.plan.cluster)};
    }
    return made;
}

step_limits limits_of_step(plan const& p, model_description const& model, run_config const& config, int ranks)
{
    return limits_of_step(p, model, *planning_request_of(model, config), ranks);
}

void settle_choices(run_config& config, plan const& p)
{
    if (config.plan.schedule == automatic_schedule()) {
        config.plan.schedule = p.schedule;
    }
    if (config.plan.tensor.is_one() || config.plan.tensor.is_automatic()) {
        config.plan.tensor = {{largest_group(p)}, config.plan.tensor.is_automatic()};
    }
}

void expect_step_plan(plan const& p, model_description const& model, run_config const& config, std::string const& path, std::string const& whose)
{
    constexpr int highest_rank = (1 << 20) - 1;
    auto const& train = config.train;
    if (auto const error = step_plan_error(p, model, train.microbatches, train.microbatch.slices, highest_rank + 1); !error.empty()) {
        throw exit_error{exit_code::bad_data, fmt::format("{}: {}; expected a plan for the model of {}", path, error, whose)};
    }
}

std::string plan_error(plan const& p, model_description const& model, run_config const& config, int ranks)
{
    auto const request = planning_request_of(model, config);
    return request ? plan_error(p, model, *request, ranks) : request.error();
}

std::string over_device(plan const& p, model_description const& model, run_config const& config, rank_id rank, bytes kernels, bytes free)
{
    auto parts = memory_parts_of(p, model, config, rank);
    parts.workspace += kernels;
    if (total(parts) <= free) {
        return {};
    }
    auto const largest = largest_of(parts);
    return fmt::format(
        "rank {} would hold {:.0f} MiB, but its device has {:.0f} MiB free; the largest part is {:.0f} MiB of {}. Set plan.memory_mib, which plans keep "
        "within",
        rank.value, in_mebibytes(total(parts)), in_mebibytes(free), in_mebibytes(largest.size), largest.name);
}

void choose_recomputation(plan& p, model_description const& model, run_config const& config)
{
    choose_recomputation(p, model, without_profile(config));  // times do not enter
}

memory_parts memory_parts_of(plan const& p, model_description const& model, run_config const& config, rank_id rank)
{
    return memory_parts_of(p, model, config.train.microbatch, policy_of(config), rank);
}

std::vector<layer_profile> planned_layers(model_description const& model, run_config const& config)
{
    return planned_layers(model, *planning_request_of(model, config));
}

in_place_memory in_place_memory_of(model_description const& model, run_config const& config, replanning const& known)
{
    auto memory = make_in_place_memory(known.state, *planning_request_of(model, config));
    if (config.plan.change_memory > bytes{}) {
        memory.limit = config.plan.change_memory;
    }
    return memory;
}

group_exchanges group_exchanges_of(model_description const& model, run_config const& config)
{
    return make_group_exchanges(model, *planning_request_of(model, config));
}

replanning make_replanning(model_description const& model, run_config const& config, int ranks)
{
    return make_replanning(model, *planning_request_of(model, config), ranks);
}

membership_rules membership_rules_of(run_config const& config) { return membership_rules_of(without_profile(config)); }

result<changed_job> change_plan(model_description const& model, run_config config, membership_plan const& in_force, std::vector<rank_id> const& staying)
{
    auto request = planning_request_of(model, config);
    if (!request) {
        return failure{request.error()};
    }
    auto made = make_plan_on(model, *request, staying);
    if (!made) {
        return failure{made.error()};
    }
    settle_choices(config, *made);
    request->tensor = config.plan.tensor;
    auto known = make_replanning(model, *request, static_cast<int>(staying.size()));
    auto first = with_fewest_moves(*std::move(made), staying, in_force.salvage.after, known, membership_rules_of(*request));
    if (auto error = in_place_error(in_force.salvage.after, first, known, in_place_memory_of(model, config, known)); !error.empty()) {
        return failure{fmt::format("{} by plan.{}memory_mib", error, config.plan.change_memory > bytes{} ? "change_" : "")};
    }
    return changed_job{std::move(config), std::move(first), std::move(known)};
}

forecast make_forecast(plan const& p, model_description const& model, run_config const& config, forecast_options const& options)
{
    return make_forecast(p, model, *planning_request_of(model, config), options);
}

int stages_per_rank(plan_config const& config, int ranks) { return stages_per_rank(config.schedule, ranks); }

}  // namespace rheo::inline v0
