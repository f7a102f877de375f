#pragma once
// SPDX-License-Identifier: Apache-2.0

// How the two ends of a message, and the members of a reduction, find each other in the records of a step.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "rheo/analyze/step/step_graph.hpp"
#include "rheo/trace/event.hpp"

namespace rheo::inline v0::detail {

/// Of a message, or of an input: pipeline and stage, item and direction.
struct message_place {
    std::uint64_t stage;
    std::uint64_t item;
    friend constexpr auto operator<=>(message_place, message_place) = default;
    friend constexpr bool operator==(message_place, message_place) = default;  // nvcc does not find the one that <=> implies
};

/// Where a send, a receive or an operation with an input stands.
struct placed_node {
    message_place at;
    std::uint32_t node;
    friend constexpr auto operator<=>(placed_node, placed_node) = default;
};

/// A post of a reduction's unit, or a wait for it.
struct unit_node {
    std::int32_t unit;
    std::uint32_t node;
    friend constexpr auto operator<=>(unit_node, unit_node) = default;
};

/// What an operation awaits: of two that are computed at once each has a send and a receive.
struct few_nodes {
    std::array<std::uint32_t, 4> nodes;
    std::size_t count = 0;

    bool empty() const { return count == 0; }
    auto begin() const { return nodes.begin(); }
    auto end() const { return nodes.begin() + static_cast<std::ptrdiff_t>(count); }
    void add(std::uint32_t node) { nodes[count++] = node; }
};

constexpr message_place place_of(trace_event const& e, int stage, bool is_gradient)
{
    auto const both = [](std::int32_t high, std::int32_t low) {
        return (std::uint64_t{static_cast<std::uint32_t>(high)} << 32U) | static_cast<std::uint32_t>(low);
    };
    return {both(e.pipeline.value, stage), both(e.item, is_gradient ? 1 : 0)};
}

/// The node at a place; no_step_node: none. @pre the nodes are sorted
inline std::uint32_t find_node(std::vector<placed_node> const& nodes, message_place at)
{
    auto const found = std::lower_bound(nodes.begin(), nodes.end(), at, [](placed_node const& n, message_place p) { return n.at < p; });
    return found != nodes.end() && found->at == at ? found->node : no_step_node;
}

}  // namespace rheo::inline v0::detail
