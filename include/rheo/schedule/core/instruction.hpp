#pragma once
// SPDX-License-Identifier: Apache-2.0

// The one instruction set: what is planned, proved, rehearsed, run and recorded is a sequence of
// these per rank. An instruction is kind x stage x item, eight bytes; the item is a microbatch, or for
// reductions the unit that is summed over pipelines (a layer, or a tied tensor after all layers).
// A transfer names the stage it belongs to: `send_activation` of stage s goes to the rank of s + 1,
// `receive_activation` of stage s comes from the rank of s - 1, gradients the other way round.

#include <cstdint>
#include <string_view>

#include "rheo/topology/tagged_index.hpp"

namespace rheo::inline v0 {

enum class instruction_kind : std::uint8_t {
    forward,
    backward,  ///< input gradient and weight gradient in one
    input_gradient,
    weight_gradient,
    send_activation,
    receive_activation,
    send_gradient,
    receive_gradient,
    post_reduction,   ///< the unit is complete here: begin its exact sum with the other holders
    await_reduction,  ///< the reduced gradient is needed from here on
    evict,            ///< of an item's activation only the stage's input is kept
    recompute,        ///< the rest is recomputed from it, for the backward that follows
    overlap,          ///< the next two, a forward and a whole backward, are computed at once; carries the forward's indices
};

struct reduction_tag;
using reduction_id = tagged_index<reduction_tag>;  ///< layers first, then tied tensors

struct instruction {
    instruction_kind kind;
    std::int16_t stage;
    std::int32_t item;

    friend constexpr bool operator==(instruction, instruction) = default;
};

constexpr instruction make_instruction(instruction_kind kind, stage_id stage, microbatch_id microbatch)
{
    return {kind, static_cast<std::int16_t>(stage.value), microbatch.value};
}

constexpr instruction make_instruction(instruction_kind kind, stage_id stage, reduction_id unit)
{
    return {kind, static_cast<std::int16_t>(stage.value), unit.value};
}

constexpr stage_id stage_of(instruction i) { return stage_id{i.stage}; }
constexpr microbatch_id microbatch_of(instruction i) { return microbatch_id{i.item}; }
constexpr reduction_id reduction_of(instruction i) { return reduction_id{i.item}; }

constexpr bool is_compute(instruction_kind kind) { return kind <= instruction_kind::weight_gradient; }
/// Eviction and recomputation concern only what a rank keeps: no other rank waits for them.
constexpr bool is_local(instruction_kind kind) { return kind == instruction_kind::evict || kind == instruction_kind::recompute; }
/// What keeps a rank busy with its stages' operations.
constexpr bool is_work(instruction_kind kind) { return is_compute(kind) || kind == instruction_kind::recompute; }
constexpr bool is_send(instruction_kind kind) { return kind == instruction_kind::send_activation || kind == instruction_kind::send_gradient; }
constexpr bool is_receive(instruction_kind kind) { return kind == instruction_kind::receive_activation || kind == instruction_kind::receive_gradient; }
constexpr bool is_reduction(instruction_kind kind) { return kind == instruction_kind::post_reduction || kind == instruction_kind::await_reduction; }

/// The same of items that are so much later; a unit of a reduction is the same one.
constexpr instruction of_later_items(instruction i, std::int32_t by)
{
    i.item += is_reduction(i.kind) || i.item < 0 ? 0 : by;
    return i;
}

/// The name in traces and drawings (F, B, I, W as in the literature; R for what is recomputed).
constexpr std::string_view name_of(instruction_kind kind)
{
    constexpr std::string_view names[] = {"F", "B", "I", "W", "SEND_F", "RECV_F", "SEND_B", "RECV_B", "REDUCE", "AWAIT", "EVICT", "R", "OVERLAP_F_B"};
    return names[static_cast<std::size_t>(kind)];
}

}  // namespace rheo::inline v0
