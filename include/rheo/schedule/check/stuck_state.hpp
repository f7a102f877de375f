#pragma once
// SPDX-License-Identifier: Apache-2.0

// Why programs hang, in the fewest words: each waiting rank waits for one other; following that ends in
// a circle of ranks that wait for each other, or at a rank that has ended or lacks an instruction. The
// shortest such circle is what people need to see; the other ranks only wait behind it.

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "rheo/schedule/check/deadlock.hpp"
#include "rheo/schedule/core/pipeline_facts.hpp"
#include "rheo/schedule/core/program.hpp"
#include "rheo/schedule/core/verdict.hpp"

namespace rheo::inline v0 {

namespace detail {

/// The position that a waiting rank of one pipeline waits for; its own when it lacks something itself.
constexpr int awaited_position(program const& p, waiting_row const& w)
{
    auto const chain = stages_per_copy(p);
    auto const place = [&](int stage) { return p.placement[static_cast<std::size_t>(stage)]; };
    auto const s = static_cast<int>(w.instruction.stage);
    switch (w.instruction.kind) {
    case instruction_kind::forward:
    case instruction_kind::overlap: return s % chain == 0 ? w.position : place(s - 1);
    case instruction_kind::backward:
    case instruction_kind::input_gradient: return (s + 1) % chain == 0 ? w.position : place(s + 1);
    default: return is_send(w.instruction.kind) || is_receive(w.instruction.kind) ? place(counterpart(w.instruction).stage) : w.position;
    }
}

}  // namespace detail

/// The verdict of deadlock_free with the stuck state cut down to its shortest circle: of ranks that wait for each other, or of a
/// single rank that waits for one that has ended or for something of its own.
template <class Transport>
constexpr verdict shortest_stuck_state(program const& p, Transport transport = {})
{
    auto whole = deadlock_free(p, transport);
    if (whole.fault != program_error::hang) {
        return whole;
    }
    std::vector<int> slot(p.rows.size(), -1);  // position -> its place among the culprits
    for (std::size_t k = 0; k < whole.culprits.size(); ++k) {
        slot[static_cast<std::size_t>(whole.culprits[k].position)] = static_cast<int>(k);
    }
    std::vector<waiting_row> shortest;
    for (auto const& begin : whole.culprits) {
        std::vector<waiting_row> circle{begin};
        bool closed = false;
        while (!closed && circle.size() <= whole.culprits.size()) {
            auto const next = slot[static_cast<std::size_t>(detail::awaited_position(p, circle.back()))];
            if (next < 0) {
                circle = {circle.back()};
                closed = true;
            } else if (whole.culprits[static_cast<std::size_t>(next)] == begin) {
                closed = true;
            } else {
                circle.push_back(whole.culprits[static_cast<std::size_t>(next)]);
            }
        }
        if (closed && (shortest.empty() || circle.size() < shortest.size())) {
            shortest = std::move(circle);
        }
    }
    if (!shortest.empty()) {
        whole.culprits = std::move(shortest);
    }
    return whole;
}

}  // namespace rheo::inline v0
