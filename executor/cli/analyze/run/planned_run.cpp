// SPDX-License-Identifier: Apache-2.0
// What a plan promises of a run's step, in the form in which runs are analyzed: the plan's step on a machine whose ranks compute as fast as the
// median rank of the run, and update and vote as its ranks did.

#include "executor/cli/analyze/run/analyzed_run.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "executor/plan/plan_file.hpp"
#include "executor/plan/planning.hpp"
#include "rheo/analyze/distribution.hpp"
#include "rheo/model/footprint.hpp"
#include "rheo/planner/planning_request.hpp"
#include "rheo/simulate/plan_step.hpp"
#include "rheo/units/exit_error.hpp"

namespace rheo::cli {

namespace {

/// What a rank computes in a step of the plan.
flops work_of_rank(rheo::plan const& p, rank_id rank, model_description const& model, microbatch_shape shape)
{
    auto const place = position_of(p, rank);
    flops work{};
    if (place.found) {
        for (auto const l : layers_in(layers_of(p, rank))) {
            work += forward_flops(model.layers[at(l)], shape) + backward_flops(model.layers[at(l)], shape);
        }
        work = work * (static_cast<std::int64_t>(p.work[at(place.pipeline)].size()) * shape.slices);
    }
    return work;
}

/// Of the run's ranks.
struct measured_rates {
    flop_rate compute;  ///< the median of the ranks that both have
    seconds vote;       ///< means
    seconds update;
};

measured_rates rates_of(analyzed_run const& run, rheo::plan const& p, model_description const& model)
{
    measured_rates rates{};
    std::vector<double> computed;
    double ranks = 0;
    for (auto const& rank : run.analysis.ranks) {
        if (rank.steps > 0) {
            auto const steps = static_cast<double>(rank.steps);
            auto const computing = work_of(rank.times) / steps;
            if (auto const work = work_of_rank(p, rank.record.rank, model, run.run.config.train.microbatch); work > flops{} && computing > seconds{}) {
                computed.push_back(static_cast<double>(work.count) / computing.count);
            }
            rates.vote += rank.times[step_class::vote] / steps;
            rates.update += rank.times[step_class::update] / steps;
            ranks += 1;
        }
    }
    rates.vote = rates.vote / std::max(1.0, ranks);
    rates.update = rates.update / std::max(1.0, ranks);
    if (!computed.empty()) {
        rates.compute = {lower_median(std::move(computed))};
    }
    return rates;
}

}  // namespace

analyzed_run planned_run(std::string const& path, analyzed_run const& measured)
{
    auto const& config = measured.run.config;
    auto const model = running_model(config);
    auto const p = read_plan_file(path);
    expect_step_plan(p, model, config, path, measured.folder);
    auto const rates = rates_of(measured, p, model);
    if (rates.compute.count <= 0.0) {
        throw exit_error{exit_code::bad_data,
                         fmt::format("{}: none of its ranks computed in the steps of {}; expected a plan for ranks of the run", path, measured.folder)};
    }
    modelled_machine const machine{.compute = rates.compute, .memory = {1e9}, .link = link_between_ranks, .decide = rates.vote};
    auto step = step_of(p, model, config.train.microbatch, machine, policy_of(config));
    step.update = rates.update;
    analyzed_run planned;
    planned.folder = fmt::format("{} at the rates of {}", path, measured.folder);
    planned.run.config = config;
    planned.run.events = rehearse_step(step).events;
    put_in_order(planned.run.events);
    planned.steps = recorded_steps(array_view<trace_event const>{planned.run.events});
    auto analysis = analyze_run(planned.steps, false);
    if (!analysis) {
        throw exit_error{exit_code::bad_data, fmt::format("{}: {}", path, analysis.error())};
    }
    planned.analysis = *std::move(analysis);
    return planned;
}

}  // namespace rheo::cli
