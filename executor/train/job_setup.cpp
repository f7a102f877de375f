// SPDX-License-Identifier: Apache-2.0
#include "executor/train/job_setup.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "executor/config/plan_change.hpp"
#include "executor/mpi/messenger.hpp"
#include "executor/plan/planning.hpp"
#include "rheo/model/fusion.hpp"
#include "rheo/model/state.hpp"
#include "rheo/units/exit_code.hpp"

namespace rheo::inline v0 {

namespace {

/// Why sequences do not fit the model's table of positions, which has a row for each; empty when they do, or when there is none.
std::string longer_than_positions(model_description const& model, int tokens)
{
    auto const& layer = model.layers.front();
    for (auto const& o : layer.ops) {
        if (o.kind == op_kind::embedding && o.parameters[1] != no_parameter) {
            if (auto const& table = layer.parameters[static_cast<std::size_t>(o.parameters[1])]; table.shape.rows < tokens) {
                return fmt::format("train.microbatch.tokens = {} must be at most {}, the rows of '{}' of the model's first layer", tokens, table.shape.rows,
                                   table.name);
            }
        }
    }
    return {};
}

/// The first change in plan.changes that the launched ranks cannot make, with the reason; empty if there is none.
std::string error_of_planned_changes(model_description const& model, run_config const& given, int launched)
{
    auto so_far = given;
    for (auto const& text : given.plan.changes) {
        so_far = *changed_config(std::move(so_far), plan_change_of(text)->settings);
        auto error = std::string{};
        if (auto const fault = check_ranks(so_far, launched)) {
            error = fault->message;
        } else if (auto const made = make_plan(model, so_far, launched); !made) {
            error = made.error();
        }
        if (!error.empty()) {
            return fmt::format("plan.changes: '{}': {}", text, error);
        }
    }
    return {};
}

}  // namespace

job_setup prepare(model_description const& model, run_config const& given, run_options const& options, int launched)
{
    job_setup p;
    auto const no = [&](exit_code code, std::string message) {
        p.error = {code, std::move(message)};
        return p;
    };
    if (auto const fault = check(model); fault.error != model_error::kind::none) {
        return no(exit_code::usage, "the model cannot be run: " + to_string(fault));
    }
    if (auto message = longer_than_positions(model, given.train.microbatch.tokens); !message.empty()) {
        return no(exit_code::usage, std::move(message));
    }
    for (auto const& fault : {rheo::check(given), check_ranks(given, launched)}) {
        if (fault) {
            return no(exit_code::usage, fault->key + ": " + fault->message);
        }
    }
    for (auto const& text : given.run.inject) {
        auto const parsed = parse_fault(text);
        if (!parsed) {
            return no(exit_code::usage, parsed.error());
        }
        p.faults.push_back(*parsed);
    }
    p.runs = given.run.fuse ? fused(model) : model;
    p.state = state_of(p.runs);
    p.units = reduction_units(p.state, static_cast<int>(p.runs.layers.size()));
    if (auto error = layer_profile_error(p.runs, given); !error.empty()) {
        return no(exit_code::bad_data, std::move(error));
    }
    if (options.first_plan) {
        p.first = *options.first_plan;
        if (auto const error = plan_error(p.first, p.runs, given, launched); !error.empty()) {
            return no(exit_code::impossible_plan, "the plan cannot be run: " + error);
        }
    } else {
        auto made = make_plan(p.runs, given, launched);
        if (!made) {
            return no(exit_code::impossible_plan, made.error());
        }
        p.first = std::move(made->plan);
    }
    p.config = given;
    settle_choices(p.config, p.first);
    if (auto error = error_of_planned_changes(p.runs, p.config, launched); !error.empty()) {
        return no(exit_code::impossible_plan, std::move(error));
    }
    // Messages name an item of a stage, a tensor, or a part of a use.
    auto const stages = std::int64_t{launched} * stages_per_rank(p.config.plan, launched);
    auto const items =
        std::max({stages * items_in_messages(given.train), std::ssize(p.state.tensors) + std::int64_t{1}, std::int64_t{3} * std::ssize(p.state.uses)});
    if (items > mpi::messenger::largest_item()) {
        return no(exit_code::environment, fmt::format("the job needs {} distinct message tags, but this MPI allows {}: fewer microbatches per step, or another "
                                                      "transport of the MPI",
                                                      items, mpi::messenger::largest_item()));
    }
    return p;
}

}  // namespace rheo::inline v0
