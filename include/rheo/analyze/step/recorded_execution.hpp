#pragma once
// SPDX-License-Identifier: Apache-2.0

// What the ranks of a run executed in a recorded step, as the value that a plan gives before it (simulate/chakra/step_programs.hpp), with measured times.
// A whole step is the plan's own; what a loss has left of a step is read off the records.

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "rheo/analyze/step/recorded_step.hpp"
#include "rheo/plan/plan.hpp"
#include "rheo/plan/reduction_units.hpp"
#include "rheo/schedule/check/interpret.hpp"
#include "rheo/schedule/core/program.hpp"
#include "rheo/schedule/core/transport.hpp"
#include "rheo/simulate/chakra/execution_nodes.hpp"
#include "rheo/simulate/chakra/step_programs.hpp"
#include "rheo/simulate/chakra/write_execution.hpp"
#include "rheo/trace/event.hpp"
#include "rheo/units/array_view.hpp"
#include "rheo/units/result.hpp"

namespace rheo::inline v0 {

struct recorded_execution {
    step_programs step;
    std::vector<std::vector<std::vector<execution_times>>> times;  ///< pipeline -> position -> instruction; an overlap has those of the pair's first
    std::vector<std::vector<execution_times>> votes;               ///< pipeline -> position
    std::vector<std::vector<execution_times>> updates;             ///< pipeline -> position
};

namespace detail {

template <class OnlyWhenCalled = void>
std::vector<instruction> instructions_of(recorded_row const& row)
{
    std::vector<instruction> all;
    for (auto const& e : row.events) {
        if (is_instruction(e.activity)) {
            all.push_back({static_cast<instruction_kind>(e.activity), static_cast<std::int16_t>(e.stage.value), e.item});
        }
    }
    return all;
}

/// Whether the program is the recorded one; overlaps are no events.
template <class OnlyWhenCalled = void>
bool is_recorded_as(std::vector<instruction> const& row, std::vector<instruction> const& recorded)
{
    std::size_t k = 0;
    for (auto const& i : row) {
        if (is_event(i.kind) && (k == recorded.size() || recorded[k++] != i)) {
            return false;
        }
    }
    return k == recorded.size();
}

/// Programs of what was recorded.
template <class OnlyWhenCalled = void>
std::vector<program> recorded_programs(plan const& p, std::vector<std::vector<std::vector<instruction>>> const& rows)
{
    std::vector<program> programs;
    for (std::size_t i = 0; i < p.pipelines.size(); ++i) {
        auto const where = placement_of(p.pipelines[i]);
        programs.push_back({where.positions, rows[i], where.copies, p.slices});
    }
    return programs;
}

template <class OnlyWhenCalled = void>
void add_times(recorded_execution& execution, std::size_t pipeline, std::vector<instruction> const& row, recorded_row const* recorded)
{
    std::vector<execution_times> times;
    execution_times vote{};
    execution_times update{};
    for (auto const& e : recorded == nullptr ? array_view<trace_event const>{} : recorded->events) {
        execution_times const span{e.start, e.end};
        while (is_instruction(e.activity) && times.size() < row.size() && !is_event(row[times.size()].kind)) {
            times.push_back(span);
        }
        if (is_instruction(e.activity)) {
            times.push_back(span);
        } else if (e.activity == activity::decide) {
            vote = span;
        } else if (e.activity == activity::update) {
            update = span;
        }
    }
    execution.times[pipeline].push_back(std::move(times));
    execution.votes[pipeline].push_back(vote);
    execution.updates[pipeline].push_back(update);
}

}  // namespace detail

/// What was executed in a step of a run. @param p the plan of its generation  @param units reductions of a model of `layers` layers
/// @returns an error where the plan lacks a rank that recorded the step, or has stages of several ranks
template <class OnlyWhenCalled = void>
result<recorded_execution> execution_of(recorded_step const& recorded, plan const& p, std::vector<reduction_unit> const& units, int layers)
{
    auto step = step_programs_of(p, units, layers);
    if (!step) {
        return failure{step.error()};
    }
    std::size_t found = 0;
    bool as_planned = true;
    std::vector<std::vector<recorded_row const*>> rows(step->ranks.size());
    std::vector<std::vector<std::vector<instruction>>> instructions(step->ranks.size());
    for (std::size_t i = 0; i < step->ranks.size(); ++i) {
        for (std::size_t k = 0; k < step->ranks[i].size(); ++k) {
            auto const row = std::find_if(recorded.rows.begin(), recorded.rows.end(), [&](auto const& r) { return r.rank == step->ranks[i][k]; });
            rows[i].push_back(row == recorded.rows.end() ? nullptr : &*row);
            instructions[i].push_back(row == recorded.rows.end() ? std::vector<instruction>{} : detail::instructions_of(*row));
            found += row == recorded.rows.end() ? 0 : 1;
            as_planned = as_planned && detail::is_recorded_as(step->programs[i].rows[k], instructions[i].back());
        }
    }
    if (found != recorded.rows.size()) {
        return failure{"step " + std::to_string(recorded.step.value) + " was recorded by a rank that has no place in the plan of generation " +
                       std::to_string(recorded.generation.value)};
    }
    recorded_execution execution{*std::move(step), {}, {}, {}};
    if (!as_planned) {
        execution.step.programs = detail::recorded_programs(p, instructions);
        no_observer nobody;
        if (!interpret<nonblocking>(array_view<program const>{execution.step.programs}, nobody).ok) {
            return failure{"the records of step " + std::to_string(recorded.step.value) + " are no whole step: something that a rank waits for is missing"};
        }
    }
    auto const pipelines = rows.size();
    execution.times.resize(pipelines);
    execution.votes.resize(pipelines);
    execution.updates.resize(pipelines);
    for (std::size_t i = 0; i < pipelines; ++i) {
        for (std::size_t k = 0; k < rows[i].size(); ++k) {
            detail::add_times(execution, i, execution.step.programs[i].rows[k], rows[i][k]);
        }
    }
    return execution;
}

/// The times of the nodes of a row. A reduction lasts from its post to the end of its await.
template <class OnlyWhenCalled = void>
std::vector<execution_times> times_of(recorded_execution const& execution, executing_row row, array_view<execution_node const> nodes)
{
    auto const& of_row = execution.times[row.pipeline][row.position];
    auto const at = [&](std::size_t k) { return k < of_row.size() ? of_row[k] : execution_times{}; };
    std::vector<execution_times> times;
    for (auto const& node : nodes) {
        if (node.activity == activity::decide) {
            times.push_back(execution.votes[row.pipeline][row.position]);
        } else if (node.activity == activity::update) {
            times.push_back(execution.updates[row.pipeline][row.position]);
        } else if (node.activity == activity::post_reduction) {
            times.push_back({at(node.instruction).start, at(node.awaited_by).end});
        } else {
            times.push_back(at(node.instruction));
        }
    }
    return times;
}

}  // namespace rheo::inline v0
