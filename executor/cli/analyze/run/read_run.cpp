// SPDX-License-Identifier: Apache-2.0
#include "executor/cli/analyze/run/analyzed_run.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "executor/config/config.hpp"
#include "rheo/analyze/step/host_clocks.hpp"
#include "rheo/units/exit_error.hpp"

namespace rheo::cli {

namespace {

/// The generation in which most steps are.
generation_id longest_generation(recorded_run const& run)
{
    std::vector<std::pair<std::size_t, generation_id>> counts;  // by generation, as the steps are
    for (auto const& step : run.steps) {
        if (counts.empty() || counts.back().second != step.generation) {
            counts.push_back({0, step.generation});
        }
        counts.back().first += step.whole ? 1 : 0;
    }
    return std::max_element(counts.begin(), counts.end(), [](auto const& a, auto const& b) { return a.first < b.first; })->second;
}

/// Puts the times of ranks on several hosts on one clock. @returns how far the clocks were apart
seconds align_hosts(run_folder& run)
{
    std::map<std::string, int> numbers;
    hosts_of_ranks hosts;
    for (auto const& one : run.ranks) {
        auto const rank = one.value("rank", 0);
        if (rank >= 0 && rank < 1 << 20) {
            auto const host = numbers.try_emplace(one.value("host", ""), static_cast<int>(numbers.size())).first->second;
            hosts.resize(std::max(hosts.size(), static_cast<std::size_t>(rank) + 1));
            hosts[static_cast<std::size_t>(rank)] = host;
        }
    }
    auto const clocks = host_clocks(array_view<trace_event const>{run.events}, array_view<int const>{hosts});
    auto const [least, most] = std::minmax_element(clocks.begin(), clocks.end());
    auto const apart = *most - *least;
    if (apart > seconds{}) {
        align_clocks(run.events, array_view<int const>{hosts}, array_view<seconds const>{clocks});
    }
    return apart;
}

}  // namespace

std::vector<int> layer_kinds(model_description const& model)
{
    std::vector<layer_description> known;
    std::vector<int> kinds;
    for (auto layer : model.layers) {
        layer.ordinal = 0;
        auto const found = std::find(known.begin(), known.end(), layer);
        kinds.push_back(static_cast<int>(found - known.begin()));
        if (found == known.end()) {
            known.push_back(layer);
        }
    }
    return kinds;
}

analyzed_run analyze_run_folder(std::string const& folder)
{
    analyzed_run job;
    job.folder = folder;
    job.run = read_run_folder(folder);
    if (job.run.events.empty()) {
        throw exit_error{exit_code::bad_data, fmt::format("'{}' has no traces to analyze; run.trace = true records them", folder)};
    }
    job.clocks_apart = align_hosts(job.run);
    job.steps = recorded_steps(array_view<trace_event const>{job.run.events});
    if (std::none_of(job.steps.steps.begin(), job.steps.steps.end(), [](recorded_step const& step) { return step.whole; })) {
        throw exit_error{exit_code::bad_data, fmt::format("'{}' has no whole step in its traces; expected at least one", folder)};
    }
    auto analysis = analyze_run(job.steps, job.run.config.run.rendezvous);
    if (!analysis) {
        throw exit_error{exit_code::bad_data, fmt::format("'{}': {}", folder, analysis.error())};
    }
    job.analysis = *std::move(analysis);
    auto const kinds = layer_kinds(running_model(job.run.config));
    auto const generation = longest_generation(job.steps);
    auto const loads = loads_of(job.steps.steps, generation, kinds);
    job.layer_times = layer_times_of(loads);
    job.paces = paces_of(loads, job.layer_times);
    // A slow rank is slow in its quick operations, too; one that shares its processor is not.
    auto const quick = loads_of(job.steps.steps, generation, kinds, 0.25);
    auto const quick_paces = paces_of(quick, layer_times_of(quick));
    for (std::size_t k = 0; k < job.paces.size() && k < quick_paces.size(); ++k) {
        job.paces[k] = slowness(quick_paces[k]) < slowness(job.paces[k]) ? quick_paces[k] : job.paces[k];
    }
    job.findings = findings_of(job);
    return job;
}

}  // namespace rheo::cli
