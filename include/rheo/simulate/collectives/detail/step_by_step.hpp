#pragma once
// SPDX-License-Identifier: Apache-2.0

// Ring, halving-doubling and tree: a rank does one step after the other. A hand-over passes before each send and after each receive; a
// send that follows a receive has the one of the receive.

#include <cstdint>

#include "rheo/simulate/collectives/detail/collective_board.hpp"
#include "rheo/simulate/collectives/message_order.hpp"

namespace rheo::inline v0 {

namespace detail {

/// Goes on until something is to be waited for; true when the rank is through with the phase.
template <class Board>
bool go_on(Board& board, collective_note const& at)
{
    auto& p = board.progress_of(at);
    auto const form = board.request().form;
    p.waits = false;
    for (;;) {
        auto const step = step_of(form, board.phase_of(at), board.place_of(at), p.step);
        if (step.kind == step_kind::end) {
            return true;
        }
        if (step.kind == step_kind::receive) {
            bool const has_come = form == collective_form::ring ? p.came > step.key : ((p.came >> step.key) & 1) != 0;
            p.waits = !has_come;
            if (has_come) {
                ++p.step;
                board.hand_over(at, collective_event::handed_over, step.added);
            }
            return false;
        }
        if (!p.handed) {
            board.hand_over(at, collective_event::handed_over, {});
            return false;
        }
        p.handed = false;
        ++p.step;
        board.send(at, step.peer, step.size, collective_event::arrived, step.key);
    }
}

template <class Board>
bool begin_steps(Board& board, collective_note const& at)
{
    board.progress_of(at).begun = true;
    return go_on(board, at);
}

/// True when the rank is through with the phase.
template <class Board>
bool happen_in_steps(Board& board, collective_note const& at)
{
    auto& p = board.progress_of(at);
    if (at.kind == collective_event::handed_over) {
        p.handed = true;
        return go_on(board, at);
    }
    // messages of a ring come in the order in which they were sent; others from several ranks, each with a key
    p.came += board.request().form == collective_form::ring ? 1 : std::int64_t{1} << at.key;
    return p.begun && p.waits && go_on(board, at);
}

}  // namespace detail
}  // namespace rheo::inline v0
