#pragma once
// SPDX-License-Identifier: Apache-2.0

// One collective under way: each of those that take part begins for itself, has a queue of chunks for each level, of which so many are under way
// at once, and is through when all its chunks are.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "rheo/simulate/collectives/detail/collective_board.hpp"
#include "rheo/simulate/collectives/detail/direct_exchange.hpp"
#include "rheo/simulate/collectives/detail/step_by_step.hpp"
#include "rheo/units/expects.hpp"

namespace rheo::inline v0 {

namespace detail {

template <class Model, class Wire>
class collective_play {
public:
    /// @pre the parts can be played: there is a phase, and none is of one member
    collective_play(Wire wire, collective_parts<Model> parts) : board_{std::move(wire), std::move(parts)}
    {
        for (auto const& phase : board_.phases()) {
            queues_of_each_ = std::max(queues_of_each_, static_cast<std::size_t>(phase.queue) + 1);
        }
        queues_.resize(static_cast<std::size_t>(board_.members()) * queues_of_each_);
        through_.resize(static_cast<std::size_t>(board_.members()));
    }

    int members() const { return board_.members(); }

    /// A member begins now.
    void begin(rank_id rank)
    {
        for (std::int32_t chunk = 0; chunk < board_.chunks(); ++chunk) {
            enter(rank, chunk, 0);
        }
    }

    /// The time of a note has come. @returns whether its member is through with everything
    bool happen(collective_note const& note)
    {
        bool const ends = is_direct(board_.request().form) ? happen_in_direct(board_, note) : happen_in_steps(board_, note);
        return ends && end(note);
    }

private:
    struct chunk_queue {
        std::vector<std::pair<std::int32_t, std::int16_t>> entered;  ///< chunk, phase
        std::size_t begun = 0;                                       ///< of these
        int active = 0;
    };

    static bool is_direct(collective_form form) { return form == collective_form::direct || form == collective_form::slice_owner; }

    chunk_queue& queue_of(rank_id rank, int queue) { return queues_[at(rank) * queues_of_each_ + static_cast<std::size_t>(queue)]; }

    void enter(rank_id rank, std::int32_t chunk, std::int16_t phase)
    {
        auto const queue = board_.phases()[static_cast<std::size_t>(phase)].queue;
        queue_of(rank, queue).entered.push_back({chunk, phase});
        begin_next(rank, queue);
    }

    void begin_next(rank_id rank, int queue)
    {
        auto& q = queue_of(rank, queue);
        while (q.begun < q.entered.size() && q.active < board_.request().active_chunks) {
            auto const [chunk, phase] = q.entered[q.begun++];
            ++q.active;
            collective_note const note{rank, chunk, phase, collective_event::handed_over, 0};
            if (is_direct(board_.request().form)) {
                begin_direct(board_, note);
            } else if (begin_steps(board_, note)) {
                expects(false, "a phase does not end where it begins");
            }
        }
    }

    /// A member is through with a phase. @returns whether it is with everything
    bool end(collective_note const& note)
    {
        auto const queue = board_.phase_of(note).queue;
        --queue_of(note.rank, queue).active;
        auto const next = static_cast<std::int16_t>(note.phase + 1);
        bool const is_last = static_cast<std::size_t>(next) == board_.phases().size();
        if (is_last) {
            ++through_[at(note.rank)];
        } else {
            enter(note.rank, note.chunk, next);
        }
        begin_next(note.rank, queue);
        return is_last && through_[at(note.rank)] == board_.chunks();
    }

    collective_board<Model, Wire> board_;
    std::size_t queues_of_each_ = 0;
    std::vector<chunk_queue> queues_;
    std::vector<std::int32_t> through_;  ///< member -> chunks
};

}  // namespace detail
}  // namespace rheo::inline v0
