#pragma once
// SPDX-License-Identifier: Apache-2.0

// A recorded step as a graph: its operations with the times that they took by themselves, and what each of them waited for. The edges are those of
// the schedule: the order of each rank, messages, the reductions of units, and the vote. With its own times a graph gives the recorded step again;
// with others it says what the step would have been (step_replay.hpp). build_graph.hpp makes one.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "rheo/analyze/step/step_class.hpp"
#include "rheo/topology/tagged_index.hpp"
#include "rheo/trace/event.hpp"
#include "rheo/units/array_view.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

inline constexpr std::uint32_t no_step_node = std::numeric_limits<std::uint32_t>::max();

/// An operation. It ends at max(end of the one before it + host, last end of `awaits` + lag) + own.
struct step_node {
    trace_event const* event = nullptr;  ///< null where it only stands for the last of those that it awaits
    std::uint32_t row = no_step_node;
    std::uint32_t before = no_step_node;  ///< on its rank
    std::uint32_t first_awaited = 0;
    std::uint32_t awaited = 0;
    seconds host{};
    seconds lag{};
    seconds own{};
    seconds end{};  ///< recorded
    step_class own_class = step_class::host;
    step_class lag_class = step_class::message;
};

struct step_graph {
    std::vector<step_node> nodes;
    std::vector<std::uint32_t> awaits;  ///< of node n: awaited of them from first_awaited on
    std::vector<std::uint32_t> order;   ///< each node after those that it depends on
    std::vector<rank_id> ranks;         ///< by row
    std::vector<seconds> begins;        ///< by row
    std::int64_t unmatched = 0;         ///< receives without the record of their send

    array_view<std::uint32_t const> awaits_of(step_node const& node) const { return {awaits.data() + node.first_awaited, node.awaited}; }
};

/// Finds an order in which each node comes after those that it depends on (Kahn 1962). @returns false where they wait in a circle. Cost: linear.
template <class OnlyWhenCalled = void>
bool put_in_order(step_graph& graph)
{
    auto const count = graph.nodes.size();
    auto const for_each_dependency = [&](auto const& visit) {
        for (std::uint32_t n = 0; n < count; ++n) {
            if (graph.nodes[n].before != no_step_node) {
                visit(graph.nodes[n].before, n);
            }
            for (auto const m : graph.awaits_of(graph.nodes[n])) {
                visit(m, n);
            }
        }
    };
    std::vector<std::uint32_t> missing(count);
    std::vector<std::uint32_t> first_next(count + 1);
    for_each_dependency([&](std::uint32_t m, std::uint32_t n) {
        ++first_next[m + 1];
        ++missing[n];
    });
    for (std::size_t n = 0; n < count; ++n) {
        first_next[n + 1] += first_next[n];
    }
    std::vector<std::uint32_t> next(first_next.back());
    auto free = first_next;
    for_each_dependency([&](std::uint32_t m, std::uint32_t n) { next[free[m]++] = n; });
    graph.order.clear();
    graph.order.reserve(count);
    for (std::uint32_t n = 0; n < count; ++n) {
        if (missing[n] == 0) {
            graph.order.push_back(n);
        }
    }
    for (std::size_t o = 0; o < graph.order.size(); ++o) {
        auto const m = graph.order[o];
        for (auto k = first_next[m]; k < first_next[m + 1]; ++k) {
            if (--missing[next[k]] == 0) {
                graph.order.push_back(next[k]);
            }
        }
    }
    return graph.order.size() == count;
}

}  // namespace rheo::inline v0
