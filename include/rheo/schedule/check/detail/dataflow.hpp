#pragma once
// SPDX-License-Identifier: Apache-2.0

// What passes between the instructions of running programs: what each needs before it, and what is there after it. Which of them come from another
// rank, and when, is a matter of the transport.

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "rheo/schedule/check/row_ref.hpp"
#include "rheo/schedule/core/instruction.hpp"
#include "rheo/schedule/core/pipeline_facts.hpp"
#include "rheo/schedule/core/program.hpp"
#include "rheo/schedule/core/transport.hpp"
#include "rheo/units/array_view.hpp"

namespace rheo::inline v0::detail {

template <class Transport>
class dataflow {
public:
    constexpr ~dataflow() = default;  // explicit, because nvcc does not see that the implicit one is constexpr
    constexpr explicit dataflow(array_view<program const> programs) : programs_{programs}
    {
        std::size_t rows = 0;
        for (auto const& p : programs) {
            facts_.push_back(facts_of(p, rows));
            rows += p.rows.size();
        }
    }

    /// Whether inputs are given, so that no instruction waits for another one of its row.
    static constexpr bool given() { return std::is_same_v<Transport, rendezvous_of_given>; }

    constexpr int position_of(row_ref r, int stage) const { return programs_[at(r.pipeline)].placement[static_cast<std::size_t>(stage)]; }

    /// Among the rows of all pipelines: that of a stage of the same pipeline.
    constexpr std::size_t row_of(row_ref r, int stage) const { return facts_[at(r.pipeline)].first_row + static_cast<std::size_t>(position_of(r, stage)); }

    /// Whether it is of this row, and what a transfer meets is of the same copy of the model.
    constexpr bool has_meaning(row_ref r, instruction i) const
    {
        if (i.item < 0 || i.stage < 0) {
            return false;
        }
        auto const stages = static_cast<int>(facts_[at(r.pipeline)].stages);
        auto const other = counterpart(i).stage;
        auto const chain = facts_[at(r.pipeline)].chain;
        return i.stage < stages && other >= 0 && other < stages && other / chain == i.stage / chain && position_of(r, i.stage) == r.position;
    }

    /// True when the instruction's inputs exist; those of a transfer are looked at where it is performed.
    constexpr bool has_inputs(row_ref r, instruction i)
    {
        auto& f = facts_[at(r.pipeline)];
        auto const local = [&](int stage) {
            return position_of(r, stage) == r.position ? !f.holds(stage, i.item, evicted) : std::is_same_v<Transport, shared_memory>;
        };
        auto const beside = [&](int stage) { return std::is_same_v<Transport, shared_memory> || position_of(r, stage) == r.position; };
        bool const whole = !f.holds(i.stage, i.item, evicted);
        auto const received = [&](int source, int here, int sent) {
            return f.holds(i.stage, i.item, here) && (!std::is_same_v<Transport, nonblocking> || f.holds(source, i.item, sent));
        };
        switch (i.kind) {
        case instruction_kind::forward:
            return f.slices_done(i.stage, i.item, true) && (f.begins_copy(i.stage) || received(i.stage - 1, activation_here, activation_sent) ||
                                                            (local(i.stage - 1) && f.holds(i.stage - 1, i.item, forward_done)));
        case instruction_kind::backward:
        case instruction_kind::input_gradient:
            return whole && f.holds(i.stage, i.item, forward_done) && f.slices_done(i.stage, i.item, false) &&
                   (f.ends_copy(i.stage) || received(i.stage + 1, gradient_here, gradient_sent) ||
                    (beside(i.stage + 1) && f.holds(i.stage + 1, i.item, gradient_done)));
        case instruction_kind::weight_gradient:
        case instruction_kind::send_gradient: return given() || f.holds(i.stage, i.item, gradient_done);
        case instruction_kind::send_activation: return given() || (whole && f.holds(i.stage, i.item, forward_done));
        case instruction_kind::evict: return whole && f.holds(i.stage, i.item, forward_done) && !f.holds(i.stage, i.item, gradient_done);
        case instruction_kind::recompute: return !whole;
        default: return true;
        }
    }

    /// Whether the sender of what a receive names has sent it.
    constexpr bool is_sent(row_ref r, instruction send)
    {
        return facts_[at(r.pipeline)].holds(send.stage, send.item, send.kind == instruction_kind::send_activation ? activation_sent : gradient_sent);
    }

    /// It has been performed.
    constexpr void note(row_ref r, instruction i)
    {
        constexpr int facts[] = {forward_done, gradient_done | weight_done, gradient_done, weight_done, activation_sent, activation_here, gradient_sent,
                                 gradient_here};
        auto& known = facts_[at(r.pipeline)].of(i.stage, i.item);
        known = static_cast<std::uint8_t>(known | facts[static_cast<std::size_t>(i.kind)]);
    }

    /// The activation is evicted or, if it was, there again.
    constexpr void turn_activation(row_ref r, instruction i)
    {
        auto& known = facts_[at(r.pipeline)].of(i.stage, i.item);
        known = static_cast<std::uint8_t>(known ^ evicted);
    }

private:
    array_view<program const> programs_;
    std::vector<pipeline_facts> facts_;
};

}  // namespace rheo::inline v0::detail
