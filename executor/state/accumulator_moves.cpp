// SPDX-License-Identifier: Apache-2.0
#include "executor/state/accumulator_moves.hpp"

#include <array>
#include <bit>
#include <cstdint>
#include <deque>
#include <span>

#include "executor/device/staging_buffer.hpp"

namespace rheo::inline v0 {

namespace {

// Items of messages, three per use: sums, state, states of rows.
int move_item(use_id use, int part) { return use.value * 3 + part; }

/// An accumulator's state as it travels.
using packed_state = std::array<std::int64_t, 5>;

packed_state packed(gradient_accumulator const& from)
{
    auto const& state = from.state;
    return {state.scale_log2, std::bit_cast<std::int32_t>(state.max_abs), state.overflow ? 1 : 0, state.not_finite ? 1 : 0, from.not_finite_at.value};
}

void unpack(packed_state const& words, gradient_accumulator& into)
{
    into.state = {.scale_log2 = static_cast<int>(words[0]),
                  .max_abs = std::bit_cast<float>(static_cast<std::int32_t>(words[1])),
                  .overflow = words[2] != 0,
                  .not_finite = words[3] != 0};
    into.not_finite_at.value = static_cast<std::int32_t>(words[4]);
}

/// The moves as this rank takes part in them. Buffers live until their messages were waited for.
class accumulator_round {
public:
    accumulator_round(mpi::messenger& messages, resident_state& state, std::size_t moves) : messages_{messages}, state_{state}, incoming_(moves)
    {
        staged_.reserve(moves);
    }

    void send(accumulator_move const& move)
    {
        auto& mine = state_.accumulator(move.use);
        states_.push_back(packed(mine));
        if (mine.rows.empty()) {
            post(move, 0, sent(integers_, mine.sums));
        } else {
            post(move, 0, sent(short_integers_, mine.sums_in_32));
            post(move, 2, std::as_bytes(sent(rows_, mine.rows)));
        }
        post(move, 1, std::span<std::int64_t const>{states_.back()});
    }

    void receive(accumulator_move const& move, std::size_t place)
    {
        auto const t = state_.info().uses[at(move.use)].tensor;
        auto const count = static_cast<std::size_t>(elements(state_.info(t).shape));
        bool const in_rows = state_.sums_in_rows(state_.info(t));
        auto& s = staged_.emplace_back(staged_accumulator{move.use});
        auto& where = state_.backend().messages();
        s.sums.reset(
            new gradient_accumulator{{where, in_rows ? 0 : count}, {where, in_rows ? count : 0}, {where, in_rows ? state_.scales_of(t).size() : 0}, *s.state});
        if (in_rows) {
            await(move, 0, std::span<std::int32_t>{s.sums->sums_in_32});
            await(move, 2, std::as_writable_bytes(std::span{s.sums->rows.data(), s.sums->rows.size()}));
        } else {
            await(move, 0, std::span<std::int64_t>{s.sums->sums});
        }
        await(move, 1, std::span<std::int64_t>{incoming_[place]});
    }

    std::vector<staged_accumulator> wait(std::vector<accumulator_move> const& moves)
    {
        for (auto const& tickets : {receipts_, sends_}) {
            for (auto const ticket : tickets) {
                messages_.wait(ticket);
            }
        }
        for (std::size_t i = 0, s = 0; i < moves.size(); ++i) {
            if (moves[i].to == messages_.members().self) {
                unpack(incoming_[i], *staged_[s++].sums);
            }
        }
        return std::move(staged_);
    }

private:
    template <class T>
    std::span<T const> sent(std::deque<array<T>>& copies, array<T> const& from)
    {
        return on_host(state_.backend(), copies, from.data(), from.size());
    }
    template <class T>
    void post(accumulator_move const& move, int part, std::span<T> data)
    {
        sends_.push_back(messages_.send(move.to, mpi::channel::move, move_item(move.use, part), data));
    }
    template <class T>
    void await(accumulator_move const& move, int part, std::span<T> data)
    {
        receipts_.push_back(messages_.receive(move.from, mpi::channel::move, move_item(move.use, part), data));
    }

    mpi::messenger& messages_;
    resident_state& state_;
    std::vector<staged_accumulator> staged_;
    std::vector<packed_state> incoming_;  ///< by move
    std::deque<packed_state> states_;
    std::deque<array<std::int64_t>> integers_;
    std::deque<array<std::int32_t>> short_integers_;
    std::deque<array<row_sum_state>> rows_;
    std::vector<mpi::messenger::ticket> sends_;
    std::vector<mpi::messenger::ticket> receipts_;
};

}  // namespace

std::vector<staged_accumulator> move_accumulators(mpi::messenger& messages, std::vector<accumulator_move> const& moves, resident_state& state,
                                                  std::function<void()> const& begun)
{
    auto const self = messages.members().self;
    accumulator_round mine{messages, state, moves.size()};
    for (std::size_t i = 0; i < moves.size(); ++i) {
        if (moves[i].from == self) {
            mine.send(moves[i]);
        } else if (moves[i].to == self) {
            mine.receive(moves[i], i);
        }
    }
    begun();
    return mine.wait(moves);
}

}  // namespace rheo::inline v0
