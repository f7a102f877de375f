#pragma once
// SPDX-License-Identifier: Apache-2.0

// A program's makespan for other and other costs. What waits for what does not depend on them, so the order of one
// interpretation is kept, and each evaluation is one pass over it, up to where it repeats (replay_cycle.hpp). The same times as makespan() of the
// schedule, in whole nanoseconds; a search over cuts asks for thousands of them.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "rheo/partition/detail/replay_cycle.hpp"
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

/// Half of a whole backward is its input gradient.
constexpr std::int64_t time_of_instruction(stage_times const& of, instruction_kind kind)
{
    switch (kind) {
    case instruction_kind::forward: return of.forward;
    case instruction_kind::backward: return of.backward;
    case instruction_kind::input_gradient: return of.backward / 2;
    default: return of.backward - of.backward / 2;
    }
}

template <class OnlyWhenCalled = void>
class replay {
public:
    /// @pre the program only computes and is sound
    constexpr explicit replay(program const& p) : ends_(p.rows.size(), 0), chain_{stages_per_copy(p)}
    {
        auto const items = item_range_of(p);
        std::size_t count = 0;
        for (auto const& row : p.rows) {
            count += row.size();
        }
        steps_.reserve(count);
        recorder order{&p, this, items};
        auto const sound = interpret<shared_memory>(array_view{&p, 1}, order);
        expects(sound.ok, "a program that hangs has no makespan");
        slots_.resize(2 * p.placement.size() * items.count, 0);
        order_by_time(p.rows.size());
        cycle_ = find_cycle(steps_, slots_.size(), items.count, static_cast<std::size_t>(p.slices));
        block_ends_.resize(cycle_.rows.size(), 0);
    }

    /// The makespan with these times per stage of one copy of the model. Cost: linear in the instructions, those of skipped blocks left out.
    constexpr std::int64_t operator()(array_view<stage_times const> times)
    {
        for (auto& end : ends_) {
            end = 0;
        }
        run(times, 0, cycle_.begin);
        run_blocks(times);
        run(times, cycle_.end(), steps_.size());
        std::int64_t last = 0;
        for (auto const end : ends_) {
            last = std::max(last, end);
        }
        return last;
    }

    /// What repeats of the program.
    constexpr replay_cycle const& cycle() const { return cycle_; }

private:
    /// In the order of a run in which a forward takes 1, a backward 2 and no message any time: blocks of equal steps follow each other in it, where
    /// an interpretation runs one row as far as it comes.
    constexpr void order_by_time(std::size_t rows)
    {
        std::vector<stage_times> const equal(static_cast<std::size_t>(chain_), stage_times{1, 2, 0, 0});
        std::vector<std::vector<std::uint32_t>> of_row(rows);
        std::vector<std::size_t> end(steps_.size());
        std::size_t last = 0;
        for (std::size_t i = 0; i < steps_.size(); ++i) {
            run(equal, i, i + 1);
            auto const row = static_cast<std::size_t>(steps_[i].row);
            end[i] = static_cast<std::size_t>(ends_[row]);
            of_row[row].push_back(static_cast<std::uint32_t>(i));
            last = std::max(last, end[i]);
        }
        std::vector<std::size_t> next(last + 2, 0);  // by counting: the first place of each end
        for (auto const e : end) {
            ++next[e + 1];
        }
        for (std::size_t e = 1; e < next.size(); ++e) {
            next[e] += next[e - 1];
        }
        auto ordered = steps_;
        for (auto const& row : of_row) {
            for (auto const i : row) {
                ordered[next[end[i]]++] = steps_[i];
            }
        }
        steps_ = std::move(ordered);
    }

    constexpr void run(array_view<stage_times const> times, std::size_t from, std::size_t to)
    {
        for (auto i = from; i < to; ++i) {
            auto const& s = steps_[i];
            auto& clock = ends_[static_cast<std::size_t>(s.row)];
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
    }

    /// How much later than the block before it everything of this block is; -1: not all by the same time.
    constexpr std::int64_t advance_of(std::size_t block) const
    {
        auto const advance = ends_[cycle_.rows.front()] - block_ends_.front();
        for (std::size_t r = 1; r < block_ends_.size(); ++r) {
            if (ends_[cycle_.rows[r]] - block_ends_[r] != advance) {
                return -1;
            }
        }
        auto const first = cycle_.begin + block * cycle_.period;
        for (auto i = first; i < first + cycle_.period; ++i) {
            auto const own = static_cast<std::size_t>(steps_[i].own);
            if (steps_[i].own != no_slot && slots_[own] - slots_[own - static_cast<std::size_t>(cycle_.shift)] != advance) {
                return -1;
            }
        }
        return advance;
    }

    /// Runs blocks until everything of one is later by the same time than in the block before, for as many blocks in succession as inputs come from, and
    /// skips the rest.
    constexpr void run_blocks(array_view<stage_times const> times)
    {
        std::size_t steady = 0;
        std::int64_t before = -1;
        for (std::size_t block = 0; block < cycle_.blocks; ++block) {
            auto const first = cycle_.begin + block * cycle_.period;
            run(times, first, first + cycle_.period);
            auto const advance = block > 0 ? advance_of(block) : -1;
            steady = advance < 0 ? 0 : advance == before ? steady + 1 : 1;
            before = advance;
            if (steady >= cycle_.lookback) {
                skip_blocks(block, advance);
                return;
            }
            for (std::size_t r = 0; r < block_ends_.size(); ++r) {
                block_ends_[r] = ends_[cycle_.rows[r]];
            }
        }
    }

    constexpr void skip_blocks(std::size_t last, std::int64_t advance)
    {
        for (auto const row : cycle_.rows) {
            ends_[row] += static_cast<std::int64_t>(cycle_.blocks - 1 - last) * advance;
        }
        for (auto const& late : cycle_.late) {
            auto const block = (late.step - cycle_.begin) / cycle_.period;
            if (block > last) {
                auto const skipped = block - last;
                auto const slot = static_cast<std::size_t>(late.slot);
                slots_[slot] = slots_[slot - skipped * static_cast<std::size_t>(cycle_.shift)] + static_cast<std::int64_t>(skipped) * advance;
            }
        }
    }

    struct recorder : no_observer {
        constexpr recorder(program const* of, replay* records, item_range items_of)
            : p{of}, into{records}, items{items_of}, part(of->rows.size(), 0), next(of->rows.size(), 0)
        {
        }
        program const* p;
        replay* into;
        item_range items;
        std::vector<std::int8_t> part;  ///< row -> of the pair that is open, which comes next
        std::vector<std::size_t> next;  ///< row -> its next instruction
        constexpr void overlap(row_ref r, instruction)
        {
            part[r.row] = 1;
            ++next[r.row];
        }
        constexpr void compute(row_ref r, instruction i)
        {
            auto const own = part[r.row];
            into->add(*p, items, r.row, own, i, own == 1 ? p->rows[r.row][next[r.row] + 1] : i);
            part[r.row] = own == 1 ? 2 : 0;
            ++next[r.row];
        }
    };

    constexpr void add(program const& p, item_range items, std::size_t row, std::int8_t part, instruction i, instruction partner)
    {
        replay_step s{static_cast<std::int32_t>(row), part, i.kind, i.stage, partner.stage};
        if (i.kind != instruction_kind::weight_gradient) {
            s.own = slot(items, i.stage, i.item, i.kind == instruction_kind::forward);
        }
        take_input(p, items, i, s.input, s.sender);
        if (part == 1) {
            take_input(p, items, partner, s.second_input, s.second_sender);
        }
        steps_.push_back(s);
    }

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
        return time_of_instruction(times[static_cast<std::size_t>(stage % chain_)], kind);
    }

    std::vector<replay_step> steps_;
    replay_cycle cycle_{};
    std::vector<std::int64_t> block_ends_{};  ///< cycle_.rows -> when they were free before the last block
    std::vector<std::int64_t> slots_;         ///< (stage, item, forward or gradient) -> when it is there
    std::vector<std::int64_t> ends_;          ///< row -> when it is free
    int chain_;
};

}  // namespace rheo::inline v0::detail
