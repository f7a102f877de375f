#pragma once
// SPDX-License-Identifier: Apache-2.0

// The one event type: what a rank did, on what, in which attempt of which step, from when to when. The
// executor records it, the simulator predicts it, the writers and the report read it; so a measured and
// a modelled step are compared event by event. Activities are the instructions, the phases of a step
// and the phases of a recovery.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "rheo/schedule/core/instruction.hpp"
#include "rheo/topology/tagged_index.hpp"
#include "rheo/units/expects.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

/// What a rank spends time on. The first twelve are the instruction kinds that take some, in their order.
enum class activity : std::uint8_t {
    forward,
    backward,
    input_gradient,
    weight_gradient,
    send_activation,
    receive_activation,
    send_gradient,
    receive_gradient,
    post_reduction,
    await_reduction,
    evict,
    recompute,
    decide,  ///< phases of a step
    update,
    evaluate,
    detect,  ///< phases of a recovery
    revoke,
    shrink,
    link,
    exchange,
    plan,
    copy,
    merge,
    first_instruction,
};

inline constexpr int activity_count = static_cast<int>(activity::first_instruction) + 1;

/// False for an overlap, which only says how the next two instructions are computed: it is no event.
constexpr bool is_event(instruction_kind kind) { return kind != instruction_kind::overlap; }

/// The activity of an instruction. @pre is_event(kind)
constexpr activity activity_of(instruction_kind kind)
{
    expects(is_event(kind), "an overlap of two instructions takes no time of its own: it is no event of a trace");
    return static_cast<activity>(kind);
}

constexpr bool is_instruction(activity a) { return a <= activity::recompute; }

/// True for the phases of a recovery. Votes are taken in undisturbed steps too, so `decide` is not one.
constexpr bool is_recovery(activity a) { return a >= activity::detect; }

/// From an activity's stage to that at the other end of its message: to the one before, -1, or the next, 1. Computations whose input may be a message are ends of
/// that one. 0: it has to do with none.
constexpr int other_end_of(activity a)
{
    switch (a) {
    case activity::forward:
    case activity::receive_activation:
    case activity::send_gradient: return -1;
    case activity::backward:
    case activity::input_gradient:
    case activity::receive_gradient:
    case activity::send_activation: return 1;
    default: return 0;
    }
}

/// The name in every record: that of the instruction (`F`, `SEND_F`), or of the phase.
constexpr std::string_view name_of(activity a)
{
    constexpr std::string_view phases[] = {"decide", "update",   "evaluate", "detect", "revoke", "shrink",
                                           "link",   "exchange", "plan",     "copy",   "merge",  "first_instruction"};
    if (is_instruction(a)) {
        return name_of(static_cast<instruction_kind>(a));
    }
    return phases[static_cast<std::size_t>(a) - static_cast<std::size_t>(activity::decide)];
}

/// The activity of that name.
constexpr std::optional<activity> activity_named(std::string_view name)
{
    for (int a = 0; a < activity_count; ++a) {
        if (name_of(static_cast<activity>(a)) == name) {
            return static_cast<activity>(a);
        }
    }
    return std::nullopt;
}

inline constexpr std::int32_t no_item = -1;
inline constexpr stage_id no_stage{-1};
inline constexpr pipeline_id no_pipeline{-1};
inline constexpr rank_id no_rank{-1};
inline constexpr bytes unknown_bytes{-1};  ///< where none held is an answer

/// What a rank did. `peer` stands where it takes no room: an analysis has ten million of these.
struct trace_event {
    rank_id rank;
    rheo::activity activity;
    pipeline_id pipeline = no_pipeline;
    stage_id stage = no_stage;
    std::int32_t item = no_item;  ///< microbatch, or unit of a reduction
    generation_id generation;
    step_id step;
    attempt_id attempt;
    rank_id peer = no_rank;  ///< of a message the other rank, of a computation that whose message is its input; none where several ranks share a message
    seconds start;           ///< since launch, as is the end
    seconds end;
    megahertz clock{};           ///< at which it was computed; 0: not known
    joules energy{};             ///< that it drew; 0: not known
    bytes size{};                ///< of a message, or of this rank's sums of a reduction's unit; 0: not known
    bytes held = unknown_bytes;  ///< activations of the rank when it ended

    friend constexpr bool operator==(trace_event const&, trace_event const&) = default;
};

/// The event's name as people read it: `F 3`, `AWAIT 5`, `shrink`.
inline std::string label_of(trace_event const& event)
{
    std::string label{name_of(event.activity)};
    if (event.item != no_item) {
        label += " " + std::to_string(event.item);
    }
    return label;
}

}  // namespace rheo::inline v0
