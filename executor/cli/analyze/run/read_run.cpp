// SPDX-License-Identifier: Apache-2.0
#include "executor/cli/analyze/run/analyzed_run.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include "executor/config/config.hpp"
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
