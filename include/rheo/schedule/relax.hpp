#pragma once
// SPDX-License-Identifier: Apache-2.0

// After lowering: pair insertion receives as early as the sender sends, and the message then waits in a
// buffer for its use. relax() moves each receive towards its use and each send towards its producer as
// far as the proof under the transport still holds, one after the other, and says what is left.

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "rheo/schedule/deadlock.hpp"
#include "rheo/schedule/interpret.hpp"
#include "rheo/schedule/program.hpp"
#include "rheo/schedule/transport.hpp"

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

}  // namespace detail

/// Rank -> the most messages that are received and not yet used at once.
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

/// The program with receives as late and sends as early as the transport allows: found greedily, row by row, from the last receive to
/// the first. Cost: transfers x the way each may go x the check; for sizes that people look at.
/// @pre deadlock_free<Transport>(lowered)
template <class Transport = rendezvous>
constexpr program relax(program lowered)
{
    for (auto& row : lowered.rows) {
        for (std::size_t begin = row.size(); begin-- > 0;) {
            auto at = begin;
            if (is_receive(row[at].kind)) {
                auto goal = at;
                while (goal + 1 < row.size() && row[goal + 1].kind != instruction_kind::overlap && !detail::uses(row[goal + 1], row[at])) {
                    ++goal;
                }
                for (; goal > at; --goal) {  // the latest place first
                    auto const before = row;
                    std::rotate(row.begin() + static_cast<std::ptrdiff_t>(at), row.begin() + static_cast<std::ptrdiff_t>(at + 1),
                        row.begin() + static_cast<std::ptrdiff_t>(goal + 1));
                    if (deadlock_free<Transport>(lowered)) {
                        break;
                    }
                    row = before;
                }
            }
        }
        for (std::size_t k = 1; k < row.size(); ++k) {
            for (auto at = k; at > 0 && is_send(row[at].kind) && !is_compute(row[at - 1].kind) && !is_send(row[at - 1].kind); --at) {
                std::swap(row[at - 1], row[at]);
                if (!deadlock_free<Transport>(lowered)) {
                    std::swap(row[at - 1], row[at]);
                    break;
                }
            }
        }
    }
    return lowered;
}

}  // namespace rheo::inline v0
