#pragma once
// SPDX-License-Identifier: Apache-2.0

// The reordering of a repeated building block (Qi et al., NeurIPS 2024, section 3.4, greedy as in the authors' repository): while
// the pipeline fills and drains, the repetition leaves slots idle that later instructions could use. First every instruction
// goes, in the order of the slots, to the earliest idle slot behind what it needs; then, while the pipeline drains, forwards
// and input gradients go before weight gradients, which take what stays idle. No rank's activations ever exceed the peak of
// the repetition, since nothing is moved that would make them. Instructions only move to earlier slots, so what comes out
// is never longer than the repetition.

#include <algorithm>
#include <cstddef>
#include <vector>

#include "rheo/schedule/core/program.hpp"
#include "rheo/schedule/core/row_builder.hpp"
#include "rheo/schedule/transform/building_block.hpp"

namespace rheo::inline v0 {

namespace detail {

/// A repeated block slot by slot, at one slot per instruction.
template <class OnlyWhenCalled = void>
class slot_table {
public:
    constexpr slot_table(building_block const& block, int ranks, int microbatches)
        : block_{&block},
          stages_{block.placement.size()},
          microbatches_{static_cast<std::size_t>(microbatches)},
          slots_(3 * stages_ * microbatches_, 0),
          rows_(static_cast<std::size_t>(ranks))
    {
        for (std::size_t o = 0; o < slots_.size(); ++o) {
            auto const slot = slot_of(block, split_kinds[kind_of(o)], stage_of(o)) + static_cast<int>(o % microbatches_) * block.period;
            put(o, static_cast<std::size_t>(slot));
        }
        for (auto const& row : rows_) {
            for (auto const held : held_after(row)) {
                peak_ = std::max(peak_, held);
            }
        }
    }

    /// Moves each instruction to the earliest idle slot, as long as its rank's activations stay within the peak.
    constexpr void advance()
    {
        std::vector<std::vector<int>> held;
        for (auto const& row : rows_) {
            held.push_back(held_after(row));
        }
        for (std::size_t slot = 0; slot < length(); ++slot) {
            for (std::size_t rank = 0; rank < rows_.size(); ++rank) {
                auto const o = at(rank, slot);
                if (o == idle) {
                    continue;
                }
                auto begin = earliest(o);
                for (auto t = slot; kind_of(o) == 0 && t-- > begin;) {  // a forward adds to all that lies between
                    begin = held[rank][t] < peak_ ? begin : t + 1;
                }
                while (begin < slot && rows_[rank][begin] != idle) {
                    ++begin;
                }
                for (auto t = begin; t < slot; ++t) {
                    held[rank][t] += holds(o);
                }
                rows_[rank][slot] = idle;
                put(o, begin);
            }
        }
    }

    /// Closes idle slots in the order of the rows.
    constexpr void squeeze()
    {
        auto const before = rows_;
        auto const end = length();
        for (auto& row : rows_) {
            row.clear();
        }
        for (std::size_t slot = 0; slot < end; ++slot) {
            for (std::size_t rank = 0; rank < before.size(); ++rank) {
                if (slot < before[rank].size() && before[rank][slot] != idle) {
                    put(before[rank][slot], std::max(rows_[rank].size(), earliest(before[rank][slot])));
                }
            }
        }
    }

    /// From the last microbatch's entry on: forwards and input gradients first, weight gradients where it stays idle.
    constexpr void advance_drain()
    {
        auto const begin = slots_[microbatches_ - 1] + 1;
        std::vector<drain> drains(rows_.size());
        for (std::size_t rank = 0; rank < rows_.size(); ++rank) {
            lay_weights(rank, {});
            drains[rank] = drain_from(rank, begin);
        }
        for (auto slot = begin; slot < length(); ++slot) {
            for (std::size_t rank = 0; rank < rows_.size(); ++rank) {
                auto const o = at(rank, slot);
                if (o == idle || kind_of(o) == 2) {
                    continue;
                }
                bool moved = false;
                for (auto t = std::max(begin, earliest(o)); t < slot && !moved; ++t) {
                    if (at(rank, t) == idle || kind_of(at(rank, t)) == 2) {
                        moved = advance_to(o, t, drains[rank]);
                    }
                }
            }
        }
    }

    constexpr program what() const
    {
        auto result = placed_program(static_cast<int>(rows_.size()), block_->placement);
        for (auto const& row : rows_) {
            for (auto const o : row) {
                if (o != idle) {
                    auto const microbatch = microbatch_id{static_cast<int>(o % microbatches_)};
                    add(result, stage_id{static_cast<int>(stage_of(o))}, split_kinds[kind_of(o)], microbatch);
                }
            }
        }
        return result;
    }

private:
    static constexpr auto idle = static_cast<std::size_t>(-1);

    /// What a rank brings into its drain: where that begins, the weight gradients that wait, the activations that it holds.
    struct drain {
        std::size_t begin = 0;
        std::vector<std::size_t> waiting = {};
        int held = 0;
    };

    constexpr std::size_t index(std::size_t kind, std::size_t stage, std::size_t microbatch) const
    {
        return (kind * stages_ + stage) * microbatches_ + microbatch;
    }
    constexpr std::size_t kind_of(std::size_t o) const { return o / microbatches_ / stages_; }
    constexpr std::size_t stage_of(std::size_t o) const { return o / microbatches_ % stages_; }
    constexpr int holds(std::size_t o) const { return kind_of(o) == 0 ? 1 : kind_of(o) == 2 ? -1 : 0; }

    constexpr std::size_t length() const
    {
        std::size_t slots = 0;
        for (auto const& row : rows_) {
            slots = std::max(slots, row.size());
        }
        return slots;
    }

    constexpr std::size_t at(std::size_t rank, std::size_t slot) const { return slot < rows_[rank].size() ? rows_[rank][slot] : idle; }

    constexpr void put(std::size_t o, std::size_t slot)
    {
        auto& row = rows_[static_cast<std::size_t>(block_->placement[stage_of(o)])];
        row.resize(std::max(row.size(), slot + 1), idle);
        row[slot] = o;
        slots_[o] = slot;
    }

    /// The first slot behind all that the instruction needs, the same one of the microbatch before included.
    constexpr std::size_t earliest(std::size_t o) const
    {
        auto const kind = kind_of(o);
        auto const s = stage_of(o);
        auto const m = o % microbatches_;
        std::size_t slot = m > 0 ? slots_[o - 1] + 1 : 0;
        auto const after = [&](std::size_t needed) { slot = std::max(slot, slots_[needed] + 1); };
        if (kind == 0 && s > 0) {
            after(index(0, s - 1, m));
        }
        if (kind > 0) {
            after(index(kind - 1, s, m));
        }
        if (kind == 1 && s + 1 < stages_) {
            after(index(1, s + 1, m));
        }
        return slot;
    }

    /// Slot -> the activations that the rank holds behind it.
    constexpr std::vector<int> held_after(std::vector<std::size_t> const& row) const
    {
        std::vector<int> held;
        for (auto const o : row) {
            held.push_back((held.empty() ? 0 : held.back()) + (o == idle ? 0 : holds(o)));
        }
        return held;
    }

    constexpr drain drain_from(std::size_t rank, std::size_t begin) const
    {
        drain result{begin};
        std::size_t taken = 0;
        for (std::size_t slot = 0; slot < std::min(begin, rows_[rank].size()); ++slot) {
            auto const o = rows_[rank][slot];
            if (o != idle) {
                result.held += holds(o);
                if (kind_of(o) == 1) {
                    result.waiting.push_back(index(2, stage_of(o), o % microbatches_));
                }
                taken += kind_of(o) == 2 ? 1 : 0;
            }
        }
        result.waiting.erase(result.waiting.begin(), result.waiting.begin() + static_cast<std::ptrdiff_t>(taken));
        return result;
    }

    /// Puts an instruction of the drain into an earlier slot that is idle or has a weight gradient, if it fits; else nothing is changed.
    constexpr bool advance_to(std::size_t o, std::size_t slot, drain const& from)
    {
        auto const rank = static_cast<std::size_t>(block_->placement[stage_of(o)]);
        auto& row = rows_[rank];
        std::vector<std::size_t> before;
        for (auto t = from.begin; t < row.size(); ++t) {
            before.push_back(row[t]);
        }
        row[slots_[o]] = idle;
        put(o, slot);
        if (lay_weights(rank, from)) {
            return true;
        }
        row.resize(from.begin + before.size());
        for (std::size_t k = 0; k < before.size(); ++k) {
            row[from.begin + k] = before[k];
            if (before[k] != idle) {
                slots_[before[k]] = from.begin + k;
            }
        }
        return false;
    }

    /// Takes the weight gradients of the drain out and puts each, in the order of the input gradients, into the next idle slot.
    /// Returns whether the rank's activations stay within the peak.
    constexpr bool lay_weights(std::size_t rank, drain from)
    {
        auto& row = rows_[rank];
        std::size_t next = 0;
        bool fits = true;
        for (auto slot = from.begin; slot < row.size() || next < from.waiting.size(); ++slot) {
            auto o = at(rank, slot);
            if (o != idle && kind_of(o) != 2) {
                if (kind_of(o) == 1) {
                    from.waiting.push_back(index(2, stage_of(o), o % microbatches_));
                }
            } else if (next < from.waiting.size()) {
                o = from.waiting[next++];
                put(o, slot);
            } else if (o != idle) {
                o = row[slot] = idle;
            }
            from.held += o == idle ? 0 : holds(o);
            fits = fits && from.held <= peak_;
        }
        return fits;
    }

    building_block const* block_;
    std::size_t stages_;
    std::size_t microbatches_;
    std::vector<std::size_t> slots_;              ///< (kind, stage, microbatch) -> slot
    std::vector<std::vector<std::size_t>> rows_;  ///< rank -> slot -> instruction, or idle
    int peak_ = 0;
};

}  // namespace detail

/// The compute program of `microbatches` repetitions, reordered. Cost: slots x ranks, and for the drain its length squared x ranks x
/// the tries. @pre repeats(block, ranks)
template <class OnlyWhenCalled = void>
constexpr program reordered(building_block const& block, int ranks, int microbatches)
{
    expects(repeats(block, ranks), "this building block meets itself when it is repeated");
    if (microbatches == 0) {
        return detail::placed_program(ranks, block.placement);
    }
    detail::slot_table table{block, ranks, microbatches};
    table.advance();
    table.squeeze();
    table.advance_drain();
    table.squeeze();
    return table.what();
}

#ifdef RHEO_COMPILED  // in rheo::compiled
extern template program reordered<>(building_block const&, int, int);
#endif

}  // namespace rheo::inline v0
