#pragma once
// SPDX-License-Identifier: Apache-2.0

// A node of a rank's execution trace before it is written: what the rank does, how much that computes, moves or sends, and what it waits for.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "rheo/simulate/chakra/work_sizes.hpp"
#include "rheo/topology/tagged_index.hpp"
#include "rheo/trace/chakra/node.hpp"
#include "rheo/trace/event.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

/// Bytes of the vote.
inline constexpr bytes vote_bytes{8};

struct execution_node {
    rheo::activity activity;
    chakra_node_type type;
    stage_id stage = no_stage;
    std::int32_t item = no_item;                 ///< microbatch or slice; unit of a reduction
    work_size work{};                            ///< of a computation
    bytes size{};                                ///< of a message, reduction or vote
    rank_id peer{};                              ///< of a message
    std::int32_t tag = 0;                        ///< of a message
    std::uint64_t group = 0;                     ///< of a reduction or vote
    bytes activations{};                         ///< of a computation: that the rank holds when it ends
    std::vector<std::uint64_t> waits_for{};      ///< ids, ascending
    std::vector<std::uint64_t> only_in_order{};  ///< of these, those that only keep the order of reductions (execution_order.hpp)
    std::size_t instruction = no_instruction;    ///< place in the program of the rank
    std::size_t awaited_by = no_instruction;     ///< of a reduction: the place of its await

    static constexpr auto no_instruction = std::numeric_limits<std::size_t>::max();
    friend bool operator==(execution_node const&, execution_node const&) = default;
};

/// "F stage 2 item 5", "REDUCE unit 3", "decide".
inline std::string label_of(execution_node const& node)
{
    std::string label{name_of(node.activity)};
    if (node.activity == activity::post_reduction) {
        return label + " unit " + std::to_string(node.item);
    }
    return node.item == no_item ? label : label + " stage " + std::to_string(node.stage.value) + " item " + std::to_string(node.item);
}

}  // namespace rheo::inline v0
