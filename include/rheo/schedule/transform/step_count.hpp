#pragma once
// SPDX-License-Identifier: Apache-2.0

// The step counter of PyTorch's pipelining tests (torch/distributed/pipelining/schedules.py,
// _simulate_comms_compute), to compare with published counts: a step is one pass over the ranks in order,
// each runs at most one instruction that is ready, and sees what earlier ranks did in it; then those that
// were stalled are tried once more, in order. Sends do not wait, receives wait for their message.

#include <cstddef>
#include <optional>
#include <vector>

#include "rheo/schedule/core/pipeline_facts.hpp"
#include "rheo/schedule/core/program.hpp"
#include "rheo/schedule/transform/lowering.hpp"

namespace rheo::inline v0 {

/// The steps to the end of a lowered program; nothing when it hangs. @pre every instruction has its meaning on its rank
template <class OnlyWhenCalled = void>
constexpr std::optional<int> count_steps(program const& p)
{
    auto done = detail::facts_of(p, 0);
    std::vector<std::size_t> next(p.rows.size(), 0);
    auto const try_row = [&](std::size_t row) {
        auto const i = p.rows[row][next[row]];
        auto const met = detail::counterpart(i);
        int fact = 0;
        switch (i.kind) {
        case instruction_kind::send_activation: fact = done.holds(i.stage, i.item, detail::forward_done) ? detail::activation_sent : 0; break;
        case instruction_kind::send_gradient: fact = done.holds(i.stage, i.item, detail::gradient_done) ? detail::gradient_sent : 0; break;
        case instruction_kind::receive_activation: fact = done.holds(met.stage, met.item, detail::activation_sent) ? detail::activation_here : 0; break;
        case instruction_kind::receive_gradient: fact = done.holds(met.stage, met.item, detail::gradient_sent) ? detail::gradient_here : 0; break;
        default:
            if (detail::ready_to_place(p, done, i)) {
                fact = i.kind == instruction_kind::forward ? detail::forward_done : detail::gradient_done;
            }
        }
        if (fact != 0) {
            auto& f = done.of(i.stage, i.item);
            f = static_cast<std::uint8_t>(f | fact);
            ++next[row];
        }
        return fact != 0;
    };
    for (int steps = 0;; ++steps) {
        bool left = false;
        bool moved = false;
        std::vector<bool> stalled(p.rows.size());
        for (int pass = 0; pass < 2; ++pass) {
            for (std::size_t row = 0; row < p.rows.size(); ++row) {
                if (next[row] == p.rows[row].size() || (pass == 1 && !stalled[row])) {
                    continue;
                }
                left = true;
                stalled[row] = !try_row(row);
                moved = moved || !stalled[row];
            }
        }
        if (!left || !moved) {
            return left ? std::nullopt : std::optional{steps};
        }
    }
}

}  // namespace rheo::inline v0
