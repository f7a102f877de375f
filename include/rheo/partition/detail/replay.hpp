#pragma once
// SPDX-License-Identifier: Apache-2.0

// A program's makespan for other and other costs. What waits for what does not depend on them, so the order of one
// interpretation is kept, and each evaluation is one pass over it. The same times as makespan() of the schedule, in whole
// nanoseconds; a search over cuts asks for thousands of them.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "rheo/schedule/check/interpret.hpp"
#include "rheo/schedule/core/program.hpp"
#include "rheo/schedule/core/transport.hpp"
#include "rheo/units/array_view.hpp"
#include "rheo/units/expects.hpp"

namespace rheo::inline v0::detail {

/// Nanoseconds of one stage for one item.
struct stage_times {
    std::int64_t forward;
    std::int64_t backward;
    std::int64_t send_activation;
    std::int64_t send_gradient;
};

template <class OnlyWhenCalled = void>
class replay {
public:
    /// @pre the program only computes and is sound
    constexpr explicit replay(program const& p) : ends_(p.rows.size(), 0), chain_{stages_per_copy(p)}
    {
        recorder order{&p, {}, std::vector<int>(p.rows.size(), 0)};
        auto const sound = interpret<shared_memory>(array_view{&p, 1}, order);
        expects(sound.ok, "a program that hangs has no makespan");
        auto const items = item_range_of(p);
        slots_.resize(2 * p.placement.size() * items.count, 0);
        for (auto const& heard : order.heard) {
            step s{heard.row, heard.part, heard.instruction.kind, heard.instruction.stage, heard.partner.stage};
            auto const forward = heard.instruction.kind == instruction_kind::forward;
            if (heard.instruction.kind != instruction_kind::weight_gradient) {
                s.own = slot(items, heard.instruction.stage, heard.instruction.item, forward);
            }
            take_input(p, items, heard.instruction, s.input, s.sender);
            if (heard.part == 1) {
                take_input(p, items, heard.partner, s.second_input, s.second_sender);
            }
            steps_.push_back(s);
        }
    }

    /// The makespan with these times per stage of one copy of the model. Cost: linear in the instructions.
    constexpr std::int64_t operator()(array_view<stage_times const> times)
    {
        for (auto& end : ends_) {
            end = 0;
        }
        for (auto const& s : steps_) {
            auto& clock = ends_[s.row];
            if (s.part != 2) {
                clock = std::max({clock, arrival(times, s.input, s.sender), arrival(times, s.second_input, s.second_sender)});
                clock += time_of(times, s.kind, s.stage);
                if (s.part == 1) {  // both of an overlapped pair end together
                    clock += time_of(times, s.kind == instruction_kind::forward ? instruction_kind::backward : instruction_kind::forward, s.partner_stage);
                }
            }
            if (s.own != no_slot) {
                slots_[static_cast<std::size_t>(s.own)] = clock;
            }
        }
        std::int64_t last = 0;
        for (auto const end : ends_) {
            last = std::max(last, end);
        }
        return last;
    }

private:
    static constexpr std::int32_t no_slot = -1;

    struct heard_instruction {
        std::size_t row;
        rheo::instruction instruction;
        int part;  ///< 0: alone, 1 and 2: of an overlapped pair
        rheo::instruction partner;
    };

    struct recorder : no_observer {
        constexpr recorder(program const* of, std::vector<heard_instruction> list, std::vector<int> parts)
            : p{of}, heard{std::move(list)}, part{std::move(parts)}, next(part.size(), 0)
        {
        }
        program const* p;
        std::vector<heard_instruction> heard;
        std::vector<int> part;          ///< row -> of the pair that is open, which comes next
        std::vector<std::size_t> next;  ///< row -> its next instruction
        constexpr void overlap(row_ref r, instruction)
        {
            part[r.row] = 1;
            ++next[r.row];
        }
        constexpr void compute(row_ref r, instruction i)
        {
            auto const own = part[r.row];
            heard.push_back({r.row, i, own, own == 1 ? p->rows[r.row][next[r.row] + 1] : i});
            part[r.row] = own == 1 ? 2 : 0;
            ++next[r.row];
        }
    };

    struct step {
        std::size_t row;
        int part;
        instruction_kind kind;
        int stage;
        int partner_stage;
        std::int32_t own = no_slot;           ///< what its end makes known
        std::int32_t input = no_slot;         ///< what it waits for
        std::int32_t sender = no_slot;        ///< twice the sending stage, one more for gradients, when that crosses ranks
        std::int32_t second_input = no_slot;  ///< of the partner
        std::int32_t second_sender = no_slot;
    };

    static constexpr std::int32_t slot(item_range items, int stage, int item, bool forward)
    {
        return static_cast<std::int32_t>(2 * (static_cast<std::size_t>(stage) * items.count + items.place(item)) + (forward ? 0 : 1));
    }

    constexpr void take_input(program const& p, item_range items, instruction i, std::int32_t& input, std::int32_t& sender) const
    {
        bool const forward = i.kind == instruction_kind::forward;
        if (i.kind == instruction_kind::weight_gradient || (forward ? i.stage % chain_ == 0 : (i.stage + 1) % chain_ == 0)) {
            return;
        }
        auto const from = i.stage + (forward ? -1 : 1);
        input = slot(items, from, i.item, forward);
        if (p.placement[static_cast<std::size_t>(from)] != p.placement[static_cast<std::size_t>(i.stage)]) {
            sender = 2 * (from % chain_) + (forward ? 0 : 1);
        }
    }

    constexpr std::int64_t arrival(array_view<stage_times const> times, std::int32_t input, std::int32_t sender) const
    {
        if (input == no_slot) {
            return 0;
        }
        auto const ready = slots_[static_cast<std::size_t>(input)];
        if (sender == no_slot) {
            return ready;
        }
        auto const& from = times[static_cast<std::size_t>(sender / 2)];
        return ready + (sender % 2 == 0 ? from.send_activation : from.send_gradient);
    }

    constexpr std::int64_t time_of(array_view<stage_times const> times, instruction_kind kind, int stage) const
    {
        auto const& t = times[static_cast<std::size_t>(stage % chain_)];
        switch (kind) {
        case instruction_kind::forward: return t.forward;
        case instruction_kind::backward: return t.backward;
        case instruction_kind::input_gradient: return t.backward / 2;
        default: return t.backward - t.backward / 2;
        }
    }

    std::vector<step> steps_;
    std::vector<std::int64_t> slots_;  ///< (stage, item, forward or gradient) -> when it is there
    std::vector<std::int64_t> ends_;   ///< row -> when it is free
    int chain_;
};

}  // namespace rheo::inline v0::detail
