#pragma once
// SPDX-License-Identifier: Apache-2.0

// A recorded step as a graph: its operations with the times that they took by themselves, and what each of them waited for. The edges are those of
// the schedule: the order of each rank, messages, the reductions of units, and the vote. With its own times a graph gives the recorded step again;
// with others it says what the step would have been (step_replay.hpp). build_graph.hpp makes one.

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

}  // namespace rheo::inline v0
