// SPDX-License-Identifier: Apache-2.0
// `rheo plan`: the plan that `rheo train` would begin with, without starting anything.

#include "executor/cli/amount_checks.hpp"
#include "executor/cli/commands.hpp"
#include "executor/cli/comparison.hpp"
#include "executor/cli/layer_profile_file.hpp"

#include <algorithm>
#include <cstdint>
#include <iostream>
#include <numeric>

#include <fmt/format.h>

#include "executor/clocks/clock_request.hpp"
#include "executor/clocks/frontier_cache.hpp"
#include "executor/clocks/rank_device.hpp"
#include "executor/config/cluster/cluster_file.hpp"
#include "executor/config/toml.hpp"
#include "executor/plan/choice_report.hpp"
#include "executor/plan/forecast_json.hpp"
#include "executor/plan/plan_report.hpp"
#include "executor/plan/plan_tables.hpp"
#include "executor/plan/planning.hpp"
#include "rheo/model/model.hpp"
#include "rheo/units/exit_error.hpp"

namespace rheo::cli {

namespace {

/// The clocks that training would begin with; none where the config has no profile of clocks.
chosen_clocks clocks_for(rheo::plan const& first, run_config const& config, model_description const& model)
{
    if (config.power.clock_profile.empty()) {
        return {};
    }
    auto const measured = read_clock_profile(config.power, static_cast<int>(model.layers.size()));
    if (!measured) {
        throw exit_error{exit_code::bad_data, measured.error().message};
    }
    auto chosen = frontier_cache{*measured, clock_request_of(config.power, *measured), group_exchanges_of(model, config)}.choose(first, {});
    if (!chosen) {
        throw exit_error{exit_code::impossible_plan, fmt::format("{}: the plan cannot have clocks: {}", config.power.clock_profile, chosen.error())};
    }
    return *std::move(chosen);
}

}  // namespace

int plan(plan_options const& options)
{
    auto read = read_config_file(options.config, options.settings);
    read.config.plan.node_size = std::max(read.config.plan.node_size, options.node_size);
    auto& config = read.config;
    if (!options.cluster.empty()) {
        config.plan.cluster = options.cluster;
    }
    if (!config.plan.cluster.empty()) {
        (void)read_cluster_file(config.plan.cluster);  // which says what is wrong with it, and where
    }
    auto const& pipelines = config.plan.pipelines;
    auto const ranks = options.ranks > 0 ? options.ranks : std::accumulate(pipelines.begin(), pipelines.end(), pipelines.empty() ? 0 : config.plan.spares);
    if (ranks == 0) {
        throw exit_error{exit_code::usage, fmt::format("{}: plan.pipelines names no ranks; say how many with --ranks", options.config)};
    }
    if (!options.schedule.empty()) {
        auto const compared = running_model(config);
        return compare_schedules(
            compared, config,
            {options.schedule, ranks, options.memory_mib, options.json, options.profile.empty() ? config.plan.layer_profile : options.profile});
    }
    if (auto const fault = check_ranks(config, ranks)) {
        throw exit_error{exit_code::usage, read.message(*fault)};
    }
    auto const model = running_model(config);
    if (!options.profile.empty()) {
        config.plan.layer_profile = options.profile;
    }
    if (!config.plan.layer_profile.empty()) {
        (void)read_layer_profile(config.plan.layer_profile, model.layers.size(), policy_of(config), config.plan.node_size);
    }
    auto first = make_plan(model, config, ranks);
    if (!first) {
        throw exit_error{exit_code::impossible_plan, fmt::format("{}: {}", options.config, first.error())};
    }
    auto const limits = limits_of_step(first->plan, model, config, ranks);
    settle_choices(config, first->plan);
    auto const clocks = clocks_for(first->plan, config, model);
    first->plan.clocks = clocks.clocks;
    forecast_options asked{.node_size = config.plan.node_size};
    if (auto const most = bytes_of_mebibytes(options.memory_mib)) {
        asked.device_memory = *most;
    }
    auto const forecast = make_forecast(first->plan, model, config, asked);
    std::cout << (options.json ? plan_as_json(*first, forecast, limits) : format_plan(first->plan, model, config, forecast));
    if (!options.json) {
        fmt::print("{}{}", format_limits(limits, source_of(forecast)), format_comparison(first->compared, source_of(forecast)));
    }
    if (!options.json && !clocks.clocks.empty()) {
        fmt::print("\nclocks for a step of {:.6g} s: {:.6g} J, {:.1f} % less than at the highest ones (plan --json has them)\n", clocks.time.count,
                   clocks.energy.count, 100.0 * (1.0 - clocks.energy / clocks.at_highest));
    }
    return 0;
}

}  // namespace rheo::cli
