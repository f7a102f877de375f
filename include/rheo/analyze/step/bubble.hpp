#pragma once
// SPDX-License-Identifier: Apache-2.0

// How much of a step its schedule makes inevitable, and what the rest is: the graph of a recorded step played with the mean times of its operations,
// then with one cause after the other.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <tuple>
#include <vector>

#include "rheo/analyze/step/step_class.hpp"
#include "rheo/analyze/step/step_graph.hpp"
#include "rheo/analyze/step/step_replay.hpp"
#include "rheo/trace/event.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

/// The mean time of an operation of its kind in the step, the same stage in the same pipeline at the same clock: by node; 0 for what is no operation.
template <class OnlyWhenCalled = void>
std::vector<seconds> mean_operations(step_graph const& graph)
{
    struct kind_sum {
        seconds sum{};
        std::int64_t count = 0;
    };
    constexpr auto none = std::numeric_limits<std::size_t>::max();
    std::map<std::tuple<pipeline_id, stage_id, step_class, megahertz>, std::size_t> known;
    std::vector<kind_sum> sums;
    std::vector<std::size_t> kinds(graph.nodes.size(), none);
    for (std::size_t n = 0; n < kinds.size(); ++n) {
        auto const& node = graph.nodes[n];
        if (node.event != nullptr && is_work(node.own_class)) {
            auto const clock = node.event->clock > megahertz{} ? node.event->clock : megahertz{};  // whatever a record says, kinds have an order
            kinds[n] = known.try_emplace({node.event->pipeline, node.event->stage, node.own_class, clock}, sums.size()).first->second;
            sums.resize(std::max(sums.size(), kinds[n] + 1));
            sums[kinds[n]].sum += node.own;
            ++sums[kinds[n]].count;
        }
    }
    std::vector<seconds> means(kinds.size());
    for (std::size_t n = 0; n < kinds.size(); ++n) {
        means[n] = kinds[n] == none ? seconds{} : sums[kinds[n]].sum / static_cast<double>(sums[kinds[n]].count);
    }
    return means;
}

/// As the schedule makes it: operations take their mean times, the update its own; messages, reductions, the vote and hosts take none.
inline node_times times_by_schedule(step_node const& node, seconds mean)
{
    auto const own = node.event != nullptr && is_work(node.own_class) ? mean : node.own_class == step_class::update ? node.own : seconds{};
    return {own, std::min(node.lag, seconds{}), {}};
}

/// The part of the ranks' time in which they do not work on their stages, up to the last operation of a stage: with recorded times the bubble as it
/// was, with those of the schedule the bubble of the literature. 0 without operations. @param ends of the nodes with these times. Cost: linear.
template <class Times>
double idle_share(step_graph const& graph, std::vector<seconds> const& ends, Times const& times)
{
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
struct step_breakdown {
    seconds schedule;  ///< as times_by_schedule has it
    seconds uneven;    ///< operations of the same kind take different times
    seconds vote;
    seconds reductions;
    seconds messages;
    seconds host;
    double idle;              ///< idle_share as it was
    double idle_by_schedule;  ///< and by the schedule

    friend constexpr bool operator==(step_breakdown const&, step_breakdown const&) = default;
};

/// Cost: linear, log of the stages; five replays.
template <class OnlyWhenCalled = void>
step_breakdown breakdown_of(step_graph const& graph)
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
    step_breakdown breakdown{};
    auto const means = mean_operations(graph);
    auto const by_schedule = [&](step_node const& node) { return times_by_schedule(node, means[static_cast<std::size_t>(&node - graph.nodes.data())]); };
    auto const ends = replayed_ends(graph, by_schedule);
    breakdown.schedule = span_of(graph, ends);
    breakdown.idle_by_schedule = idle_share(graph, ends, by_schedule);
    auto const recorded = recorded_ends(graph);
    breakdown.idle = idle_share(graph, recorded, times_of);
    auto below = span_with([](step_class) { return false; });
    breakdown.uneven = below - breakdown.schedule;
    auto const climb = [&](seconds& rung, seconds span) {
        rung = span - below;
        below = span;
    };
    climb(breakdown.vote, span_with([](step_class c) { return c == vote; }));
    climb(breakdown.reductions, span_with([](step_class c) { return c == vote || c == reduction; }));
    climb(breakdown.messages, span_with([](step_class c) { return c != host; }));
    climb(breakdown.host, span_of(graph, recorded));
    return breakdown;
}

}  // namespace rheo::inline v0
