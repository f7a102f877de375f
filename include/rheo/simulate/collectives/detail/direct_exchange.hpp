#pragma once
// SPDX-License-Identifier: Apache-2.0

// Direct exchanges: each message goes by itself, to the places 1, 2, ... further on, with a hand-over before and one after. An
// all-reduce has a second part, in which each rank sends what it has summed.

#include <cstdint>

#include "rheo/simulate/collectives/detail/collective_board.hpp"
#include "rheo/simulate/collectives/message_order.hpp"

namespace rheo::inline v0 {

namespace detail {

/// What a rank sends to a place in the first part.
template <class Board>
bytes direct_message(Board const& board, collective_note const& at, int to)
{
    auto const& request = board.request();
    auto const& phase = board.phase_of(at);
    if (request.form == collective_form::slice_owner) {
        return owned_slice(phase.size.count / request.sum_bytes, phase.members, to, request.sum_bytes);
    }
    bool const is_whole = phase.operation == collective::all_gather || phase.operation == collective::broadcast;
    return {is_whole ? phase.size.count : phase.size.count / phase.members};
}

/// What a rank sends to each other one in the second part.
template <class Board>
bytes summed_message(Board const& board, collective_note const& at)
{
    auto const& request = board.request();
    auto const& phase = board.phase_of(at);
    return request.form == collective_form::slice_owner
               ? owned_slice(phase.size.count / request.sum_bytes, phase.members, board.place_of(at), request.value_bytes)
               : bytes{phase.size.count / phase.members};
}

/// The hand-over of a message that has come in the first part.
template <class Board>
void add_what_came(Board& board, collective_note const& at)
{
    auto const operation = board.phase_of(at).operation;
    bool const adds = operation == collective::all_reduce || operation == collective::reduce_scatter;
    board.hand_over(at, collective_event::handed_over, adds ? direct_message(board, at, board.place_of(at)) : bytes{});
}

template <class Board>
void begin_direct(Board& board, collective_note at)
{
    auto& p = board.progress_of(at);
    p.begun = true;
    bool const sends = board.phase_of(at).operation != collective::broadcast || board.place_of(at) == 0;
    for (at.key = 1; sends && at.key < board.phase_of(at).members; ++at.key) {
        board.hand_over(at, collective_event::ready_to_send, {});
    }
    at.key = 0;
    for (std::int64_t early = 0; early < p.came; ++early) {
        add_what_came(board, at);
    }
    for (std::int32_t early = 0; early < p.came_back; ++early) {
        board.hand_over(at, collective_event::handed_back, {});
    }
}

/// A hand-over of the first part has ended: true when the rank is through.
template <class Board>
bool direct_added(Board& board, collective_note const& at)
{
    auto& p = board.progress_of(at);
    auto const& phase = board.phase_of(at);
    auto const others = phase.members - 1;
    if (phase.operation != collective::all_reduce) {
        return p.added == (phase.operation == collective::broadcast ? 1 : others);
    }
    // The executor turns a sum into floats when it is whole. The plain form sends a message for each hand-over, once all have come.
    auto const may_send = board.request().form == collective_form::slice_owner ? (p.added == others ? others : 0) : (p.came == others ? p.added : 0);
    while (p.sent < may_send) {
        ++p.sent;
        board.send(at, (board.place_of(at) + p.sent) % phase.members, summed_message(board, at), collective_event::arrived_back, 0);
    }
    return p.sent == others && p.handed_back == others;
}

/// True when the rank is through with the phase.
template <class Board>
bool happen_in_direct(Board& board, collective_note const& at)
{
    auto& p = board.progress_of(at);
    auto const others = board.phase_of(at).members - 1;
    switch (at.kind) {
    case collective_event::ready_to_send: {
        auto const to = (board.place_of(at) + static_cast<int>(at.key)) % board.phase_of(at).members;
        board.send(at, to, direct_message(board, at, to), collective_event::arrived, 0);
        return board.phase_of(at).operation == collective::broadcast && at.key == others;  // its root receives nothing
    }
    case collective_event::arrived:
        ++p.came;
        if (p.begun) {
            add_what_came(board, at);
        }
        return false;
    case collective_event::arrived_back:
        ++p.came_back;
        if (p.begun) {
            board.hand_over(at, collective_event::handed_back, {});
        }
        return false;
    case collective_event::handed_over: ++p.added; return direct_added(board, at);
    case collective_event::handed_back: ++p.handed_back; return p.sent == others && p.handed_back == others;
    }
    return false;
}

}  // namespace detail
}  // namespace rheo::inline v0
