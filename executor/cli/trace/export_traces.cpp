// SPDX-License-Identifier: Apache-2.0
// `rheo trace export`: a step of a plan, or of a run with its times, as Chakra execution traces.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "executor/cli/trace/traces.hpp"
#include "executor/config/toml.hpp"
#include "executor/plan/plan_file.hpp"
#include "executor/plan/planning.hpp"
#include "executor/records/chakra/chakra_traces.hpp"
#include "executor/records/records.hpp"
#include "executor/records/run_folder.hpp"
#include "rheo/analyze/step/recorded_execution.hpp"
#include "rheo/analyze/step/recorded_step.hpp"
#include "rheo/model/state.hpp"
#include "rheo/simulate/chakra/execution_nodes.hpp"
#include "rheo/simulate/chakra/execution_order.hpp"
#include "rheo/simulate/chakra/work_sizes.hpp"
#include "rheo/simulate/chakra/write_execution.hpp"
#include "rheo/units/exit_error.hpp"

namespace rheo::cli {

namespace {

namespace fs = std::filesystem;

/// What is exported, and of a run its times.
struct exported_step {
    std::string what;  ///< in one line
    recorded_execution execution;
    step_sizes sizes;
    std::int32_t ranks = 0;                  ///< of the job, lost ones among them
    std::vector<execution_times> waiting{};  ///< votes of ranks without a place
    bool is_timed = false;
};

std::int32_t ranks_of_job(rheo::plan const& p)
{
    auto const ranks = ranks_of(p);
    return ranks.empty() ? 0 : ranks.back().value + 1;
}

template <class Value>
Value accepted(result<Value> made, std::string const& where)
{
    if (!made) {
        throw exit_error{exit_code::bad_data, fmt::format("{}: {}", where, made.error())};
    }
    return *std::move(made);
}

std::vector<reduction_unit> units_of(model_description const& model) { return reduction_units(state_of(model), static_cast<int>(model.layers.size())); }

exported_step step_of_plan(trace_options const& options)
{
    if (options.config.empty()) {
        throw exit_error{exit_code::usage, "rheo trace export: a plan needs --config, the config that it was made with; a run folder has its own"};
    }
    auto const config = read_config_file(options.config).config;
    auto const model = running_model(config);
    auto const p = read_plan_file(options.from.front());
    expect_step_plan(p, model, config, options.from.front(), options.config);
    exported_step e{"the plan's step", {}, sizes_of(p, model, config.train.microbatch, policy_of(config)), ranks_of_job(p)};
    e.execution.step = accepted(step_programs_of(p, units_of(model), static_cast<int>(model.layers.size())), options.from.front());
    return e;
}

/// The last attempt of the step that is asked for, of which a loss may have left a part. Without a number the last whole step.
recorded_step const& chosen_step(recorded_run const& run, std::optional<std::int64_t> wanted, std::string const& folder)
{
    recorded_step const* found = nullptr;
    for (auto const& step : run.steps) {  // by generation, step and attempt
        found = (wanted ? step.step.value == *wanted : step.whole) ? &step : found;
    }
    if (found == nullptr) {
        throw exit_error{exit_code::bad_data, fmt::format("'{}': its traces have no {}; run.trace = true records steps", folder,
                                                          wanted ? fmt::format("step {}", *wanted) : "whole step")};
    }
    return *found;
}

/// When a rank without a place voted in the step.
execution_times vote_of(std::vector<trace_event> const& events, rank_id rank, recorded_step const& step)
{
    for (auto const& e : events) {
        if (e.rank == rank && e.activity == activity::decide && e.generation == step.generation && e.step == step.step && e.attempt == step.attempt) {
            return {e.start, e.end};
        }
    }
    return {};
}

exported_step step_of_run(trace_options const& options)
{
    auto run = read_run_folder(options.from.front());
    put_in_order(run.events);
    auto const steps = recorded_steps(array_view<trace_event const>{run.events});
    auto const& step = chosen_step(steps, options.step, options.from.front());
    auto const p = plan_of_generation(options.from.front(), step.generation);
    auto const model = running_model(run.config);
    expect_step_plan(p, model, run.config, plan_since(options.from.front(), step.generation), options.from.front());
    exported_step e{fmt::format("step {}", step.step.value), {}, sizes_of(p, model, run.config.train.microbatch, policy_of(run.config)), ranks_of_job(p)};
    for (auto const& rank : steps.ranks) {
        e.ranks = std::max(e.ranks, rank.rank.value + 1);
    }
    e.execution = accepted(execution_of(step, p, units_of(model), static_cast<int>(model.layers.size())), options.from.front());
    for (auto const rank : e.execution.step.waiting) {
        e.waiting.push_back(vote_of(run.events, rank, step));
    }
    e.is_timed = true;
    return e;
}

/// Writes the file of a rank. @returns its nodes
std::size_t write_rank(std::string const& prefix, rank_id rank, std::vector<execution_node> const& nodes, std::vector<execution_times> const& times)
{
    auto const path = chakra_file(prefix, rank.value);
    std::ofstream file{path, std::ios::binary};
    write_execution([&](std::string_view piece) { file.write(piece.data(), static_cast<std::streamsize>(piece.size())); }, rank, array_view{nodes},
                    array_view{times});
    file.close();
    if (!file) {
        throw exit_error{exit_code::environment, fmt::format("{}: cannot be written", path)};
    }
    return nodes.size();
}

/// All files of the job. A lost rank has one without nodes, so that ranks keep their numbers. @returns their nodes
std::size_t write_all(exported_step const& e, std::string const& prefix)
{
    auto const& step = e.execution.step;
    auto const order = order_execution(step, e.ranks);
    auto const voters = ranks_of(step).size();
    std::vector<bool> written(static_cast<std::size_t>(e.ranks));
    std::size_t count = 0;
    for (std::size_t p = 0; p < step.ranks.size(); ++p) {
        for (std::size_t k = 0; k < step.ranks[p].size(); ++k) {
            auto const nodes = execution_nodes(step, e.sizes, order, {p, k}, voters);
            auto const times = e.is_timed ? times_of(e.execution, {p, k}, nodes) : std::vector<execution_times>{};
            count += write_rank(prefix, step.ranks[p][k], nodes, times);
            written[at(step.ranks[p][k])] = true;
        }
    }
    for (std::size_t w = 0; w < step.waiting.size(); ++w) {
        count += write_rank(prefix, step.waiting[w], waiting_nodes(order), e.is_timed ? std::vector{e.waiting[w]} : std::vector<execution_times>{});
        written[at(step.waiting[w])] = true;
    }
    for (std::int32_t r = 0; r < e.ranks; ++r) {
        if (!written[static_cast<std::size_t>(r)]) {
            write_rank(prefix, rank_id{r}, {}, {});
        }
    }
    std::error_code error;
    for (auto r = e.ranks; fs::remove(chakra_file(prefix, r), error); ++r) {  // of an earlier export of more ranks
    }
    write_chakra_groups(prefix, order.groups);
    return count;
}

}  // namespace

int export_traces(trace_options const& options)
{
    if (options.chakra.empty()) {
        throw exit_error{exit_code::usage, "rheo trace export: --chakra PREFIX is missing; the traces are written to PREFIX.0.et, PREFIX.1.et, ..."};
    }
    std::error_code error;
    bool const is_run = fs::is_directory(options.from.front(), error);
    if (!is_run && options.step) {
        throw exit_error{exit_code::usage, "rheo trace export: --step chooses a step of a run; a plan has one"};
    }
    auto const e = is_run ? step_of_run(options) : step_of_plan(options);
    if (auto const folder = fs::path{options.chakra}.parent_path(); !folder.empty()) {
        fs::create_directories(folder, error);
    }
    auto const nodes = write_all(e, options.chakra);
    fmt::print("{}: {} of {}, {} {}, {} nodes\n", options.chakra, e.what, options.from.front(), e.ranks, e.ranks == 1 ? "rank" : "ranks", nodes);
    return 0;
}

}  // namespace rheo::cli
