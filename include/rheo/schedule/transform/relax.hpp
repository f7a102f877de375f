#pragma once
// SPDX-License-Identifier: Apache-2.0

// After lowering: pair insertion receives as early as the sender sends, and the message then waits in a
// buffer for its use. relax() moves each receive towards its use and each send towards its producer as
// far as the proof under the transport still holds, one after the other, until none can continue; what messages are left
// waiting is what buffers are needed for.

#include <algorithm>
#include <cstddef>
#include <vector>

#include "rheo/schedule/check/deadlock.hpp"
#include "rheo/schedule/core/pipeline_facts.hpp"
#include "rheo/schedule/core/program.hpp"
#include "rheo/schedule/core/transport.hpp"

namespace rheo::inline v0 {

namespace detail {

/// True when the computation uses what the receive brings.
constexpr bool uses(instruction computation, instruction receive)
{
    bool const up = receive.kind == instruction_kind::receive_activation;
    bool const fits = up ? computation.kind == instruction_kind::forward
                         : computation.kind == instruction_kind::backward || computation.kind == instruction_kind::input_gradient;
    return fits && computation.stage == receive.stage && computation.item == receive.item;
}

/// True when the computation makes what the send takes away.
constexpr bool makes(instruction computation, instruction send)
{
    bool const up = send.kind == instruction_kind::send_activation;
    bool const fits = up ? computation.kind == instruction_kind::forward
                         : computation.kind == instruction_kind::backward || computation.kind == instruction_kind::input_gradient;
    return fits && computation.stage == send.stage && computation.item == send.item;
}

/// The last place of a row for the receive at `k`, before the computation that uses it. An overlap and its pair are passed as one.
constexpr std::size_t latest_place(std::vector<instruction> const& row, std::size_t k)
{
    auto goal = k;
    for (std::size_t next = k + 1; next < row.size();) {
        auto const end = std::min(row.size(), next + (row[next].kind == instruction_kind::overlap ? 3 : 1));
        for (; next < end; ++next) {
            if (uses(row[next], row[k])) {
                return goal;
            }
        }
        goal = end - 1;
    }
    return goal;
}

/// The first place of a row for the send at `k`, behind the computation that makes its message.
constexpr std::size_t earliest_place(std::vector<instruction> const& row, std::size_t k)
{
    auto goal = k;
    while (goal > 0 && !makes(row[goal - 1], row[k])) {
        --goal;
    }
    return goal;
}

/// Puts the instruction at `from` as near to `goal` as the proof allows, if it passes one that is not of its own sort (`own`).
template <class Transport, class Own>
constexpr bool moved(program& p, std::size_t r, std::size_t from, std::size_t goal, Own const& own)
{
    auto& row = p.rows[r];
    auto const before = row;
    auto const at = [&](std::size_t k) { return row.begin() + static_cast<std::ptrdiff_t>(k); };
    while (goal != from) {
        bool passes = false;
        for (auto k = std::min(from, goal); k <= std::max(from, goal); ++k) {
            passes = passes || !own(before[k].kind);
        }
        if (!passes) {
            return false;
        }
        if (goal > from) {
            std::rotate(at(from), at(from + 1), at(goal + 1));
        } else {
            std::rotate(at(goal), at(from), at(from + 1));
        }
        if (deadlock_free<Transport>(p)) {
            return true;
        }
        row = before;
        goal = goal > from ? goal - 1 : goal + 1;
    }
    return false;
}

}  // namespace detail

/// Rank -> the most messages that are received and not yet used at once.
template <class OnlyWhenCalled = void>
constexpr std::vector<int> receive_buffers_by_rank(program const& lowered)
{
    std::vector<int> buffers;
    for (auto const& row : lowered.rows) {
        std::vector<instruction> waiting;
        std::size_t most = 0;
        for (auto const& i : row) {
            if (is_receive(i.kind)) {
                waiting.push_back(i);
                most = std::max(most, waiting.size());
            } else {
                std::erase_if(waiting, [&](instruction r) { return detail::uses(i, r); });
            }
        }
        buffers.push_back(static_cast<int>(most));
    }
    return buffers;
}

/// The program with receives as late and sends as early as the transport allows: found greedily, row by row, receives from the
/// last to the first, sends from the first to the last, until no single one can go further past anything but its like.
/// Cost: rounds x transfers x the way each may go x the check; for sizes that people look at. @pre deadlock_free<Transport>(lowered)
template <class Transport = rendezvous>
constexpr program relax(program lowered)
{
    for (bool any = true; any;) {
        any = false;
        for (std::size_t r = 0; r < lowered.rows.size(); ++r) {
            auto const& row = lowered.rows[r];
            for (std::size_t k = row.size(); k-- > 0;) {
                if (is_receive(row[k].kind) && detail::moved<Transport>(lowered, r, k, detail::latest_place(row, k), is_receive)) {
                    any = true;
                }
            }
            for (std::size_t k = 0; k < row.size(); ++k) {
                if (is_send(row[k].kind) && detail::moved<Transport>(lowered, r, k, detail::earliest_place(row, k), is_send)) {
                    any = true;
                }
            }
        }
    }
    return lowered;
}

}  // namespace rheo::inline v0
