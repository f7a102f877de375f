// SPDX-License-Identifier: Apache-2.0
// `rheo simulate CONFIG`: the job of a config on a described cluster, by one policy or several side by side.

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "executor/cli/simulate/job_of_config.hpp"
#include "executor/cli/simulate/job_page.hpp"
#include "executor/cli/simulate/job_picture.hpp"
#include "executor/cli/simulate/job_report.hpp"
#include "executor/cli/simulate/network_options.hpp"
#include "executor/cli/simulate/simulate.hpp"
#include "executor/cli/simulate/steps_shown.hpp"
#include "executor/config/cluster/cluster_file.hpp"
#include "executor/config/text_file.hpp"
#include "executor/config/toml.hpp"
#include "rheo/job/job_events_csv.hpp"
#include "rheo/job/simulate_job.hpp"
#include "rheo/units/csv.hpp"
#include "rheo/units/in_quotes.hpp"

namespace rheo::cli {

namespace {

struct chosen_policy {
    std::string name;
    job_policy policy = job_policy::rheo;
    std::optional<int> spares{};
};

chosen_policy policy_named(std::string const& name)
{
    constexpr std::string_view spares = "spares:";
    for (auto const policy : {job_policy::rheo, job_policy::replay, job_policy::checkpoint}) {
        if (name == name_of(policy)) {
            return {name, policy};
        }
    }
    int count = 0;
    if (name.starts_with(spares) && read_number(std::string_view{name}.substr(spares.size()), count) && count >= 0) {
        return {name, job_policy::rheo, count};
    }
    throw exit_error{exit_code::usage, fmt::format("--policy: a config has no policy {}; expected rheo, replay, checkpoint, or spares:N with N ranks that wait",
                                                   in_quotes(name))};
}

/// A time of an option; 0 where it was not given.
whole_nanoseconds time_of_option(double time_s, std::string const& option)
{
    if (!(time_s >= 0.0 && time_s * 1e9 < static_cast<double>(latest_job_time.count))) {
        throw exit_error{exit_code::usage, fmt::format("{}: expected a time from 0 to 146 years, not {} s", option, time_s)};
    }
    return {in_whole_nanoseconds(seconds{time_s})};
}

struct described_job {
    job_description job;
    listed_events listed;
    std::optional<random_losses> random;
    std::string cluster;  ///< what it is called
};

described_job describe(simulate_options const& options)
{
    auto read = read_config_file(options.config, options.settings);
    auto& config = read.config;
    if (!options.cluster.empty()) {
        config.plan.cluster = options.cluster;
    }
    auto cluster = config.plan.cluster.empty() ? std::optional<cluster_model>{} : read_cluster_file(config.plan.cluster);
    auto const named = named_ranks(config);
    auto const ranks = options.ranks > 0 ? options.ranks : named > 0 ? named : cluster ? devices_of(*cluster) : 0;
    if (ranks == 0) {
        throw exit_error{exit_code::usage,
                         fmt::format("{}: plan.pipelines names no ranks; say how many with --ranks, or describe a --cluster", options.config)};
    }
    if (auto const fault = check_ranks(config, ranks)) {
        throw exit_error{exit_code::usage, read.message(*fault)};
    }
    check_network(options.on, cluster ? &*cluster : nullptr);
    auto job = accepted(job_of_config(config, cluster ? *std::move(cluster) : one_machine(ranks), ranks));
    auto clocks = clocks_of(config, job);
    if (!clocks) {
        throw exit_error{exit_code::bad_data, clocks.error()};
    }
    job.clocks = *std::move(clocks);
    job.steps = options.steps > 0 ? options.steps : job.steps;
    job.reduction = reduction_of(options.on);
    if (auto const until = time_of_option(options.until_s, "--until"); until > whole_nanoseconds{}) {
        job.until = until;
    }
    described_job described{std::move(job), {}, {}, config.plan.cluster.empty() ? "processes of one machine" : config.plan.cluster};
    auto const node_size = described.job.request.node_size;
    if (!options.faults.empty()) {
        described.listed = accepted(parse_job_events(read_text_file(options.faults), options.faults, ranks, node_size));
        described.job.begins_with_ranks = described.listed.begins_with_ranks;
    }
    if (time_of_option(options.mtbf_s, "--mtbf") > whole_nanoseconds{}) {
        described.random = random_losses{.mtbf = seconds{options.mtbf_s}, .seed = options.seed, .ranks = ranks, .node_size = node_size};
        if (time_of_option(options.repair_s, "--repair") > whole_nanoseconds{}) {
            described.random->repair = seconds{options.repair_s};
        }
    }
    return described;
}

/// The schedule and the degree that the planner chooses for the whole job.
void settle(job_description& job, std::string const& config)
{
    auto const first = make_plan(job.model, job.request, job.ranks);
    if (!first) {
        throw exit_error{exit_code::impossible_plan, fmt::format("{}: {}", config, first.error())};
    }
    job.request.schedule = first->plan.schedule;
    job.request.candidates.clear();
    job.request.tensor = {{largest_group(first->plan)}, job.request.tensor.is_chosen || job.request.tensor.is_automatic()};
}

/// @param csv @param runs @param trace get its steps where they are asked for
simulated_job simulated(described_job const& described, chosen_policy const& policy, simulate_options const& options, std::string& csv,
                        std::vector<step_run>& runs, job_trace<>* trace)
{
    auto job = described.job;
    job.request.spares = policy.spares.value_or(job.request.spares);
    settle(job, options.config);
    auto const note = [&](std::int64_t step, whole_nanoseconds begin, played_plan const& account, std::size_t ranks) {
        if (!options.page.empty() || !options.svg.empty()) {
            add_step(runs, begin, account, ranks);
        }
        if (!options.csv.empty()) {
            csv += fmt::format("{},{},{:.9f},{:.9f},{},{:.6g}\n", policy.name, step, static_cast<double>(begin.count) * 1e-9,
                               static_cast<double>(account.time.count) * 1e-9, ranks, (account.computing + account.waiting).count);
        }
    };
    job_event_source const events{described.listed.events, described.random};
    auto out = on_network(options.on.network, [&](auto model) { return simulate_job<decltype(model)>(job, policy.policy, events, note, trace); });
    if (trace != nullptr && trace->is_too_large()) {
        throw exit_error{exit_code::usage, fmt::format("--steps-shown: these steps have more than {} events; expected fewer steps", trace->most())};
    }
    if (!out) {
        throw exit_error{exit_code::impossible_plan, fmt::format("{}: {}", options.config, out.error())};
    }
    return *std::move(out);
}

/// The job once more, with a trace of the steps around its first loss. Nothing where they are too large to be drawn.
steps_around around_first_loss(described_job const& described, chosen_policy const& policy, simulate_options const& options, simulated_job const& job)
{
    auto const first =
        std::find_if(job.changes.begin(), job.changes.end(), [](auto const& c) { return c.what == job_change::recovered || c.what == job_change::restarted; });
    if (first == job.changes.end()) {
        return {};
    }
    auto plain = options;
    plain.csv.clear();
    plain.page.clear();
    plain.svg.clear();
    job_trace trace{{std::max<std::int64_t>(0, first->step - 1), first->step + 1}};
    std::string csv;
    std::vector<step_run> runs;
    try {
        simulated(described, policy, plain, csv, runs, &trace);
    } catch (exit_error const&) {
        return {};
    }
    return steps_around_loss(trace, first->at);
}

}  // namespace

int simulate_config(simulate_options const& options)
{
    std::vector<chosen_policy> policies;
    for (auto const& name : options.policy) {
        policies.push_back(policy_named(name));
    }
    if (policies.empty()) {
        policies.push_back({std::string{name_of(job_policy::rheo)}});
    }
    if (!options.chrome.empty() && policies.size() > 1) {
        throw exit_error{exit_code::usage, fmt::format("--chrome: a trace shows one job; expected one --policy, not {}", policies.size())};
    }
    auto const described = describe(options);
    auto const shown = steps_shown(options.steps_shown, described.job.steps);
    job_trace trace{shown};
    std::string csv = "policy,step,begin_s,time_s,ranks,joules\n";
    job_report report{&described.job, described.cluster, {}};
    for (auto const& policy : policies) {
        std::vector<step_run> runs;
        auto job = simulated(described, policy, options, csv, runs, options.chrome.empty() ? nullptr : &trace);
        report.jobs.push_back({policy.name, std::move(job), std::move(runs)});
        if (!options.page.empty()) {
            report.jobs.back().around = around_first_loss(described, policy, options, report.jobs.back().job);
        }
    }
    if (!options.chrome.empty()) {
        write_trace(options.chrome, trace, shown);
    }
    if (!options.csv.empty()) {
        write_whole(options.csv, csv);
    }
    if (!options.svg.empty()) {
        write_whole(options.svg, job_picture(report, options.config));
    }
    if (!options.page.empty()) {
        write_whole(options.page, job_page(report, options.config));
    }
    fmt::print("{}", options.json ? to_json(report) : to_text(report));
    return 0;
}

}  // namespace rheo::cli
