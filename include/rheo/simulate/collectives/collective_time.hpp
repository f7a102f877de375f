#pragma once
// SPDX-License-Identifier: Apache-2.0

// A collective played on a network, message by message: when the last rank is through. Before each message that a rank
// sends, and after the last that it receives, a hand-over passes, longer by the sums that are made of what came. The rules are
// those of ASTRA-sim's system layer, so that its figures come out to the nanosecond; trees, broadcasts and the executor's
// own reduction follow the same ones.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "rheo/simulate/collectives/detail/direct_exchange.hpp"
#include "rheo/simulate/collectives/detail/step_by_step.hpp"
#include "rheo/units/expects.hpp"
#include "rheo/units/result.hpp"

namespace rheo::inline v0 {

namespace detail {

/// Plays one collective. Each rank has a queue of chunks for each level, and so many of them are under way at once.
template <class Model>
class collective_run {
public:
    using time = typename Model::time;

    /// @pre collective_fault is empty
    collective_run(array_view<network_level<typename Model::link> const> levels, collective_request<Model> const& request)
        : board_{levels, request}, levels_{levels.size()}, queues_(static_cast<std::size_t>(board_.ranks()) * levels_)
    {
    }

    /// When the last rank is through.
    time play()
    {
        if (board_.phases().empty() || board_.phases().front().members == 1) {
            return {};  // who is alone has nothing to do
        }
        for (rank_id rank{0}; rank.value < board_.ranks(); ++rank) {
            for (std::int32_t chunk = 0; chunk < board_.chunks(); ++chunk) {
                enter(rank, chunk, 0);
            }
        }
        auto const form = board_.request().form;
        while (auto const note = board_.next()) {
            if (is_direct(form) ? happen_in_direct(board_, *note) : happen_in_steps(board_, *note)) {
                end(*note);
            }
        }
        expects(through_ == std::int64_t{board_.ranks()} * board_.chunks(), "a collective ends at all ranks");
        return last_;
    }

private:
    struct chunk_queue {
        std::vector<std::pair<std::int32_t, std::int16_t>> entered;  ///< chunk, phase
        std::size_t begun = 0;                                       ///< of these
        int active = 0;
    };

    static bool is_direct(collective_form form) { return form == collective_form::direct || form == collective_form::slice_owner; }

    chunk_queue& queue_of(rank_id rank, int queue) { return queues_[at(rank) * levels_ + static_cast<std::size_t>(queue)]; }

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

    void end(collective_note const& note)
    {
        auto const queue = board_.phase_of(note).queue;
        --queue_of(note.rank, queue).active;
        auto const next = static_cast<std::int16_t>(note.phase + 1);
        if (static_cast<std::size_t>(next) < board_.phases().size()) {
            enter(note.rank, note.chunk, next);
        } else {
            ++through_;
            last_ = board_.now();
        }
        begin_next(note.rank, queue);
    }

    collective_board<Model> board_;
    std::size_t levels_;
    std::vector<chunk_queue> queues_;
    time last_{};
    std::int64_t through_ = 0;
};

}  // namespace detail

/// What is wrong with a collective on a network, as a sentence; empty when nothing is.
template <class Model>
std::string collective_fault(array_view<network_level<typename Model::link> const> levels, collective_request<Model> const& request)
{
    if (auto fault = network_fault(levels); !fault.empty()) {
        return fault;
    }
    auto const words = std::string{name_of(request.operation)} + " as " + std::string{name_of(request.form)};
    if (!has_form(request.operation, request.form)) {
        return "there is no " + words;
    }
    auto const ranks = ranks_of(levels);
    auto const most_bytes = (std::int64_t{1} << 62) / ranks;  // all that is gathered fits
    constexpr auto most_chunks = 1 << 20;
    if (request.size.count < 0 || request.size.count > most_bytes || request.chunks < 1 || request.chunks > most_chunks || request.active_chunks < 1) {
        return words + " of " + std::to_string(request.size.count) + " bytes in " + std::to_string(request.chunks) + " chunks, " +
               std::to_string(request.active_chunks) + " at once: expected 0 to 2^62 bytes over all ranks, 1 to 2^20 chunks and at least 1 at once";
    }
    if (request.handover < typename Model::time{} || !Model::fits(request.handover)) {
        return words + ": a hand-over takes a finite time of at least 0";
    }
    if (request.memory && !(request.memory->count > 0.0 && request.memory->count <= std::numeric_limits<double>::max())) {
        return words + ": the rate at which memory adds is above zero and finite";
    }
    if (request.form == collective_form::slice_owner && (request.sum_bytes < 1 || request.value_bytes < 1)) {
        return words + ": the bytes of a sum and of a value are at least 1";
    }
    bool const by_level = request.scope == collective_scope::by_level && levels.size() > 1;
    if (by_level && (request.operation == collective::all_to_all || request.form == collective_form::slice_owner)) {
        return words + " goes over all ranks at once, not level by level";
    }
    auto const chunks = cut_into_chunks(request.operation, request.size, request.chunks, ranks);
    auto const phases = phases_of(request.operation, request.scope, chunks.each, levels);
    for (auto const& phase : phases) {
        if (request.form == collective_form::halving_doubling && !std::has_single_bit(static_cast<unsigned>(phase.members))) {
            return words + " needs a power of two of ranks, not " + std::to_string(phase.members);
        }
    }
    if (chunks.count * static_cast<std::int64_t>(phases.size()) > (std::int64_t{1} << 24) / ranks) {
        return words + " of " + std::to_string(chunks.count) + " chunks over " + std::to_string(ranks) + " ranks is too large to be played";
    }
    return {};
}

/// When the last rank is through with the collective, all ranks beginning at time 0. Cost: the links that all messages take, log their number.
template <class Model>
result<typename Model::time> collective_time(array_view<network_level<typename Model::link> const> levels, collective_request<Model> const& request)
{
    if (auto fault = collective_fault<Model>(levels, request); !fault.empty()) {
        return failure{std::move(fault)};
    }
    auto const time = detail::collective_run<Model>{levels, request}.play();
    if (!Model::fits(time)) {
        return failure{std::string{name_of(request.operation)} + " takes more than the largest time of this network model (2^63 - 1 ns where time is whole)"};
    }
    return time;
}

}  // namespace rheo::inline v0
