// SPDX-License-Identifier: Apache-2.0
#include "executor/report/step_section.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "executor/config/cluster/cluster_file.hpp"
#include "executor/plan/amount_text.hpp"
#include "executor/plan/planning.hpp"
#include "rheo/model/footprint.hpp"
#include "rheo/planner/planning_request.hpp"
#include "rheo/simulate/cluster/cluster_model.hpp"
#include "rheo/simulate/network/network_model.hpp"
#include "rheo/simulate/plan_step.hpp"
#include "rheo/simulate/played_step/play_step.hpp"
#include "rheo/simulate/played_step/step_recorder.hpp"
#include "rheo/units/exit_error.hpp"
#include "rheo/units/expects.hpp"

namespace rheo::inline v0 {

namespace {

struct chosen_step {
    std::vector<trace_event> events;
    lane_chart lanes;
    seconds computing;  ///< of all ranks
};

/// Steps under one plan: within a generation, from one change of the plan to the next.
struct steps_of_plan {
    generation_id generation;
    std::int64_t begin = 0;
    std::int64_t end = std::numeric_limits<std::int64_t>::max();
};

/// The step of median length among those that were committed at the first attempt.
std::optional<chosen_step> median_step(run_folder const& run, steps_of_plan const& steps)
{
    auto const generation = steps.generation;
    std::map<std::int64_t, std::pair<seconds, seconds>> spans;  // step -> first start, last end
    for (auto const& e : run.events) {
        if (e.generation == generation && (is_instruction(e.activity) || e.activity == activity::update)) {
            auto const [place, fresh] = spans.try_emplace(e.step.value, e.start, e.end);
            place->second.first = std::min(place->second.first, e.start);
            place->second.second = std::max(place->second.second, e.end);
        }
    }
    std::vector<std::pair<double, std::int64_t>> lengths;
    for (auto const* s : run.of_kind("step")) {
        auto const found = spans.find(s->value("step", std::int64_t{-1}));
        if (found != spans.end() && found->first >= steps.begin && found->first < steps.end && s->value("attempt", 0) == 0) {
            lengths.emplace_back((found->second.second - found->second.first).count, found->first);
        }
    }
    if (lengths.empty()) {
        return std::nullopt;
    }
    std::nth_element(lengths.begin(), lengths.begin() + static_cast<std::ptrdiff_t>(lengths.size() / 2), lengths.end());
    auto const step = lengths[lengths.size() / 2].second;
    chosen_step result;
    result.lanes.begin = spans[step].first;
    result.lanes.end = spans[step].second;
    seconds until;  // what two at once take counts once
    for (auto const& e : run.events) {
        bool const drawn = is_drawn_in_lanes(e) && (is_instruction(e.activity) || e.activity == activity::update || e.activity == activity::decide);
        if (e.generation == generation && e.step.value == step && drawn) {
            result.events.push_back(e);
            if (result.lanes.ranks.empty() || result.lanes.ranks.back() != e.rank) {
                result.lanes.ranks.push_back(e.rank);  // events are sorted by rank
                until = {};
            }
            if (is_compute(static_cast<instruction_kind>(e.activity))) {
                result.computing += std::max(seconds{}, e.end - std::max(e.start, until));
                until = std::max(until, e.end);
            }
        }
    }
    return result.lanes.begin < result.lanes.end ? std::optional{std::move(result)} : std::nullopt;
}

/// Between the ranks of a plan: the links of the config's cluster where it is described and can still be read, else those of processes of one machine.
std::vector<network_level<>> links_between(plan const& p, run_config const& config)
{
    std::int32_t last = 0;
    for (auto const& pipeline : p.pipelines) {
        for (auto const rank : ranks_of(pipeline)) {
            last = std::max(last, rank.value);
        }
    }
    if (!config.plan.cluster.empty()) {
        try {
            if (auto const cluster = read_cluster_file(config.plan.cluster); devices_of(cluster) > last) {
                return network_of(cluster);
            }
        } catch (exit_error const&) {  // it lies elsewhere, or has changed: the step is drawn all the same
        }
    }
    return {{last + 1, network_topology::full, link_between_ranks}};
}

/// The plan on a machine as fast as the measured step shows it.
chosen_step planned_step(plan const& p, model_description const& model, run_config const& config, chosen_step const& measured)
{
    flops work;
    for (auto const& layer : model.layers) {
        work += forward_flops(layer, config.train.microbatch) + backward_flops(layer, config.train.microbatch);
    }
    work = work * (std::int64_t{config.train.microbatches} * config.train.microbatch.slices);
    modelled_machine const machine{.compute = {static_cast<double>(work.count) / std::max(measured.computing.count, 1e-9)},
                                   .memory = {10e9},
                                   .link = link_between_ranks,
                                   .decide = microseconds(20)};
    auto const step = step_of(p, model, config.train.microbatch, machine, policy_of(config));
    step_recorder<> recorder{step};
    auto const played = play_step<contended_network>(step, links_between(p, config), {}, {}, recorder);
    chosen_step result{{}, measured.lanes, measured.computing};
    expects(static_cast<bool>(played), "the plan of a step that was run can be played");
    recorder.end(*played);
    for (auto const& e : recorder.take()) {
        if (is_drawn_in_lanes(e)) {
            result.events.push_back(e);
        }
    }
    std::stable_sort(result.events.begin(), result.events.end(), [](trace_event const& a, trace_event const& b) { return a.rank < b.rank; });
    result.lanes.begin = {};
    result.lanes.end = played->end;
    return result;
}

std::string step_text(chosen_step const& step) { return fmt::format("step {}, the median of those under the first plan.", step.events.front().step.value + 1); }

/// Both steps on axes of equal length: beside each other in a wide window, one below the other in a narrow one.
page_block side_by_side(chosen_step planned, chosen_step measured)
{
    auto const length = [](chosen_step const& step) { return step.lanes.end - step.lanes.begin; };
    auto const longest = std::max(length(planned), length(measured));
    auto const drawn = [&](chosen_step& step, std::string const& note) {
        step.lanes.end = step.lanes.begin + longest;
        step.lanes.group = "step";
        return page_block::array({note_block(note), lanes_block(step.events, step.lanes)});
    };
    auto const plan_says = fmt::format("Planned: {} at the speed of computing that the measured step shows.", time_text(length(planned).count));
    auto const step_says = fmt::format("Measured: {}, {}", time_text(length(measured).count), step_text(measured));
    return beside_block(page_block::array({drawn(planned, plan_says), drawn(measured, step_says)}));
}

}  // namespace

page_block step_section(run_folder const& run, std::optional<model_description> const& model)
{
    auto blocks = page_block::array();
    std::optional<generation_id> first;
    std::optional<generation_id> last;
    for (auto const& e : run.events) {
        if (is_instruction(e.activity)) {
            first = first ? std::min(*first, e.generation) : e.generation;
            last = last ? std::max(*last, e.generation) : e.generation;
        }
    }
    steps_of_plan under_first{first.value_or(generation_id{})};
    steps_of_plan under_last{last.value_or(generation_id{})};
    for (auto const* r : run.of_kind("recovery")) {
        if (r->value("lost", std::vector<int>{}).empty()) {  // a change between two steps of one generation
            auto const step = r->value("step", std::int64_t{0});
            under_first.end = std::min(under_first.end, step);
            under_last.begin = std::max(under_last.begin, step);
        }
    }
    auto const measured = first ? median_step(run, under_first) : std::nullopt;
    for (auto const& message : run.left_out) {
        blocks.push_back(error_block(fmt::format("Left out, with what follows it: {}.", message)));
    }
    if (!measured) {
        blocks.push_back(note_block("The folder holds no trace of a whole step."));
        return blocks;
    }
    if (model) {
        blocks.push_back(side_by_side(planned_step(*run.first, *model, run.config, *measured), *measured));
    } else {
        blocks.push_back(note_block("The plan that the run began with is not in the folder, or is for a model that a program brought along."));
        blocks.push_back(note_block("Measured: " + step_text(*measured)));
        blocks.push_back(lanes_block(measured->events, measured->lanes));
    }
    if (*last != *first || under_last.begin > 0) {
        if (auto const after = median_step(run, under_last)) {
            blocks.push_back(note_block(fmt::format("Measured under the last plan: step {}.", after->events.front().step.value + 1)));
            blocks.push_back(lanes_block(after->events, after->lanes));
        }
    }
    return blocks;
}

}  // namespace rheo::inline v0
