#pragma once
// SPDX-License-Identifier: Apache-2.0

// How much of a step its schedule makes inevitable, and what the rest is: the graph of a recorded step played with the mean times of its operations,
// then with one cause after the other.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "rheo/analyze/step/step_class.hpp"
#include "rheo/analyze/step/step_graph.hpp"
#include "rheo/analyze/step/step_replay.hpp"
#include "rheo/trace/event.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

/// The times of operations by the mean of their kind: of the same stage in the same pipeline at the same clock.
struct mean_operations {
    using kind = std::tuple<pipeline_id, stage_id, step_class, megahertz>;
    std::map<kind, std::pair<seconds, std::int64_t>> sums;

    static kind kind_of(trace_event const& e)
    {
        return {e.pipeline, e.stage, class_of(e.activity), e.clock > megahertz{} ? e.clock : megahertz{}};  // whatever a record says, kinds have an order
    }

    seconds mean(trace_event const& e) const
    {
        auto const found = sums.find(kind_of(e));
        return found == sums.end() ? seconds{} : found->second.first / static_cast<double>(found->second.second);
    }
};

/// The times of a step's operations, added up by kind.
template <class OnlyWhenCalled = void>
void add_operations(mean_operations& means, step_graph const& graph)
{
    for (auto const& node : graph.nodes) {
        if (node.event != nullptr && is_work(node.own_class)) {
            auto& [sum, count] = means.sums[mean_operations::kind_of(*node.event)];
            sum += node.own;
            ++count;
        }
    }
}

/// As the schedule makes it: operations take their mean times, the update its own; messages, reductions, the vote and hosts take none.
inline node_times times_by_schedule(step_node const& node, mean_operations const& means)
{
    if (is_work(node.own_class) && node.event != nullptr) {
        return {means.mean(*node.event), std::min(node.lag, seconds{}), {}};
    }
    return {node.own_class == step_class::update ? node.own : seconds{}, std::min(node.lag, seconds{}), {}};
}

/// The part of the ranks' time in which they do not work on their stages, up to the last operation of a stage: with recorded times the bubble as it
/// was, with those of the schedule the bubble of the literature. 0 without operations. @param times step_node const& -> node_times. Cost: linear.
template <class Times>
double idle_share(step_graph const& graph, Times const& times)
{
    auto const ends = replayed_ends(graph, times);
    auto last = seconds{};
    seconds work{};
    bool any = false;
    for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
        if (graph.nodes[n].event != nullptr && is_work(graph.nodes[n].own_class)) {
            work += times(graph.nodes[n]).own;
            last = any ? std::max(last, ends[n]) : ends[n];
            any = true;
        }
    }
    auto const span = any ? last - *std::min_element(graph.begins.begin(), graph.begins.end()) : seconds{};
    return span > seconds{} ? 1.0 - work / (span * static_cast<double>(graph.ranks.size())) : 0.0;
}

/// A step from what its schedule makes inevitable to what it was: each part is what the step is longer by for it, after those before it.
struct step_ladder {
    seconds schedule;  ///< as times_by_schedule has it
    seconds uneven;    ///< operations of the same kind take different times
    seconds vote;
    seconds reductions;
    seconds messages;
    seconds host;

    friend constexpr bool operator==(step_ladder const&, step_ladder const&) = default;
};

/// @pre the operations of the graph are among those of the means. Cost: linear.
template <class OnlyWhenCalled = void>
step_ladder ladder_of(step_graph const& graph, mean_operations const& means)
{
    auto const span_with = [&](auto const& keeps) {
        return span_of(graph, replayed_ends(graph, [&](step_node const& node) {
                           auto times = times_of(node);
                           if (!keeps(node.lag_class)) {
                               times.lag = std::min(times.lag, seconds{});
                           }
                           if (!is_work(node.own_class) && node.own_class != step_class::update && !keeps(node.own_class)) {
                               times.own = {};
                           }
                           if (!keeps(step_class::host)) {
                               times.host = {};
                           }
                           return times;
                       }));
    };
    using enum step_class;
    step_ladder ladder{};
    ladder.schedule = span_of(graph, replayed_ends(graph, [&](step_node const& node) { return times_by_schedule(node, means); }));
    auto below = span_with([](step_class) { return false; });
    ladder.uneven = below - ladder.schedule;
    auto const climb = [&](seconds& rung, auto const& keeps) {
        auto const span = span_with(keeps);
        rung = span - below;
        below = span;
    };
    climb(ladder.vote, [](step_class c) { return c == vote; });
    climb(ladder.reductions, [](step_class c) { return c == vote || c == reduction; });
    climb(ladder.messages, [](step_class c) { return c != host; });
    climb(ladder.host, [](step_class) { return true; });
    return ladder;
}

}  // namespace rheo::inline v0
