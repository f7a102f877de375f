#pragma once
// SPDX-License-Identifier: Apache-2.0

// The player of a step: each row goes through its program as far as it can, and what it waits for wakes it. Computations take their costs; a message
// enters the network when its send and its receive are posted; reductions are played by unit_sums.hpp. What interpret.hpp means by a program.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "rheo/schedule/core/instruction.hpp"
#include "rheo/schedule/core/pipeline_facts.hpp"
#include "rheo/simulate/network/message_network.hpp"
#include "rheo/simulate/network/model_time.hpp"
#include "rheo/simulate/played_step/detail/unit_sums.hpp"
#include "rheo/simulate/played_step/played_step.hpp"
#include "rheo/simulate/step.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

namespace detail {

/// The messages of a pipeline: slots by the stage that sends, item and direction.
template <class Time>
class message_slots {
public:
    struct slot {
        Time entered{};  ///< the network
        bool sent = false;
        bool awaited = false;
        bool arrived = false;
    };

    explicit message_slots(std::vector<modelled_pipeline> const& pipelines)
    {
        for (auto const& pipeline : pipelines) {
            auto const items = item_range_of(pipeline.program);
            begins_.push_back({slots_.size(), items});
            slots_.resize(slots_.size() + 2 * items.count * pipeline.program.placement.size());
        }
    }

    std::size_t number(std::size_t pipeline, int stage, std::int32_t item, bool up) const
    {
        auto const& b = begins_[pipeline];
        return b.slot + 2 * (static_cast<std::size_t>(stage) * b.items.count + b.items.place(item)) + (up ? 0 : 1);
    }

    slot& operator[](std::size_t number) { return slots_[number]; }
    slot const& operator[](std::size_t number) const { return slots_[number]; }

private:
    struct pipeline_begin {
        std::size_t slot;
        item_range items;
    };

    std::vector<pipeline_begin> begins_;
    std::vector<slot> slots_;
};

/// Who wants to know when messages enter the network and arrive.
template <class Observer>
concept observes_messages = Observer::sees_messages;

/// @tparam Observer is called with each instruction that a row ends: (row, place in its program, begin, end)
template <class Model, class Observer>
class step_player {
public:
    using time = typename Model::time;
    using level = network_level<typename Model::link>;
    using network = message_network<Model, step_note>;

    /// @param step the first block of `fold`
    step_player(modelled_step const& step, array_view<level const> levels, step_rules<Model> const& rules, step_losses const& losses, Observer& observer,
                step_fold const& fold = {})
        : step_{&step},
          network_{fold.periods.empty() ? network{levels, rules.links} : network{levels, array_view<std::int32_t const>{fold.periods}}},
          times_{rules.times},
          slots_{step.pipelines},
          sums_{step, levels, rules, fold},
          observer_{&observer}
    {
        for (std::size_t p = 0; p < step.pipelines.size(); ++p) {
            first_row_.push_back(rows_.size());
            auto const& pipeline = step.pipelines[p];
            for (std::size_t position = 0; position < pipeline.program.rows.size(); ++position) {
                row_state row{&pipeline, &pipeline.program.rows[position], p, pipeline.ranks[position]};
                if (!losses.losses.empty()) {
                    row.stop = model_time<Model>(losses.heard - step.begin);
                    for (auto const& loss : losses.losses) {
                        row.is_lost = row.is_lost || loss.rank == row.rank;
                        row.stop = loss.rank == row.rank ? std::min(row.stop, model_time<Model>(loss.at - step.begin)) : row.stop;
                    }
                    last_stop_ = std::max(last_stop_, row.stop);
                }
                rows_.push_back(row);
            }
        }
        is_cut_ = !losses.losses.empty();
    }

    step_player(step_player const&) = delete;
    step_player& operator=(step_player const&) = delete;

    /// @returns nothing if a row hangs  @pre ranks of the network
    bool play()
    {
        for (std::uint32_t r = 0; r < rows_.size(); ++r) {
            advance(r);
        }
        while (auto const event = network_.next()) {
            if (is_cut_ && event->at > last_stop_ && computing_ == 0) {
                break;
            }
            happen(event->note);
        }
        return is_cut_ || std::all_of(rows_.begin(), rows_.end(), [](row_state const& row) { return row.next == row.program->size(); });
    }

    played_step<time> result() const
    {
        played_step<time> played;
        for (auto const& row : rows_) {
            auto const position = static_cast<int>(&row - &rows_[first_row_[row.pipeline]]);
            played_row<time> of{pipeline_id{static_cast<int>(row.pipeline)}, position, row.rank, row.next, row.since, row.times};
            if (is_cut_) {
                of.end = row.is_lost ? row.stop : std::max(row.since, row.stop);
                of.times.bubble += of.end - row.since;
            }
            played.end = row.is_lost ? played.end : std::max(played.end, of.end);
            played.rows.push_back(of);
        }
        if (!is_cut_) {
            auto const vote = model_time<Model>(step_->decide);
            auto const update = model_time<Model>(step_->update);
            for (auto& row : played.rows) {
                row.times.bubble += played.end - row.end;
                row.times.vote = vote;
                row.times.update = update;
            }
            played.end = Model::sum(played.end, Model::sum(vote, update));
        }
        return played;
    }

private:
    struct row_state {
        modelled_pipeline const* of;
        std::vector<instruction> const* program;
        std::size_t pipeline;
        rank_id rank;
        std::size_t next = 0;
        std::size_t under_way = 0;        ///< instructions of the computation that runs; 0: none
        time since{};                     ///< when the last instruction has ended, or the computation has begun
        time stop = endless_time<Model>;  ///< when the row hears of a loss, or is lost
        bool is_lost = false;
        rank_step_times<time> times{};
    };
    struct input {
        bool is_there = true;
        bool is_message = false;
        time entered{};
    };

    time now() const { return network_.now(); }

    bool is_gone(std::uint32_t r) const { return rows_[r].is_lost && rows_[r].stop < now(); }

    /// Advances a row as far as it can.
    void advance(std::uint32_t r)
    {
        auto& row = rows_[r];
        while (row.under_way == 0 && row.next < row.program->size() && now() < row.stop && step_on(r, (*row.program)[row.next])) {
        }
    }

    /// @returns whether the instruction has ended at once
    bool step_on(std::uint32_t r, instruction i)
    {
        auto& row = rows_[r];
        if (is_send(i.kind) || is_receive(i.kind)) {
            post_message(r, i);
            return ends(row, r, 1);
        }
        if (i.kind == instruction_kind::post_reduction) {
            ends(row, r, 1);  // first: others that are through by it go on at once
            sums_.post(network_, r, reduction_of(i), [this](std::uint32_t other) { advance(other); });
            return true;
        }
        if (i.kind == instruction_kind::await_reduction) {
            if (!sums_.is_through(r, reduction_of(i))) {
                return false;
            }
            account_wait(row, sums_.last_post(reduction_of(i)), row.times.reductions);
            return ends(row, r, 1);
        }
        if (i.kind == instruction_kind::evict) {
            return ends(row, r, 1);
        }
        begin_computation(r, i);
        return false;
    }

    /// Instructions that take no time of their own have ended; waiting for them is theirs.
    bool ends(row_state& row, std::uint32_t r, std::size_t count)
    {
        (*observer_)(r, row.next, row.since, now());
        row.next += count;
        row.since = now();
        return true;
    }

    /// What a row has waited since its last instruction: from `begun` on for what is under way, before that for nothing.
    void account_wait(row_state& row, time begun, time& under_way)
    {
        auto const from = std::min(std::max(row.since, begun), now());
        row.times.bubble += from - row.since;
        under_way += now() - from;
    }

    void begin_computation(std::uint32_t r, instruction i)
    {
        auto& row = rows_[r];
        auto const& costs = row.of->costs;
        bool const is_pair = i.kind == instruction_kind::overlap;
        auto const first = is_pair ? (*row.program)[row.next + 1] : i;
        auto there = input_of(row, first);
        auto takes = time_of(r, row.next + (is_pair ? 1 : 0), first);
        if (is_pair) {
            auto const second = (*row.program)[row.next + 2];
            auto const other = input_of(row, second);
            there = {there.is_there && other.is_there, there.is_message || other.is_message, std::max(there.entered, other.entered)};
            takes = takes + time_of(r, row.next + 2, second) - (times_ == nullptr ? costs[static_cast<std::size_t>(first.stage)].overlap_gain : seconds{});
        }
        if (!there.is_there) {
            return;
        }
        account_wait(row, there.is_message ? there.entered : now(), row.times.messages);
        row.since = now();
        row.under_way = is_pair ? 3 : 1;
        ++computing_;
        network_.alarm(Model::sum(now(), model_time<Model>(takes)), {step_event::computed, r, 0, {}});
    }

    seconds time_of(std::uint32_t r, std::size_t place, instruction i) const
    {
        return times_ == nullptr ? cost_of(rows_[r].of->costs, i) : (*times_)[r][place];
    }

    input input_of(row_state const& row, instruction i) const
    {
        bool const up = i.kind == instruction_kind::forward;
        if (!up && i.kind != instruction_kind::backward && i.kind != instruction_kind::input_gradient) {
            return {};
        }
        auto const& placement = row.of->program.placement;
        auto const chain = stages_per_copy(row.of->program);
        auto const source = i.stage + (up ? -1 : 1);
        if ((up ? i.stage : i.stage + 1) % chain == 0 || placement[static_cast<std::size_t>(source)] == placement[static_cast<std::size_t>(i.stage)]) {
            return {};
        }
        auto const& slot = slots_[slots_.number(row.pipeline, source, i.item, up)];
        return {slot.arrived, true, slot.entered};
    }

    void post_message(std::uint32_t r, instruction i)
    {
        auto const& row = rows_[r];
        bool const up = i.kind == instruction_kind::send_activation || i.kind == instruction_kind::receive_activation;
        auto const sender = is_send(i.kind) ? i.stage : i.stage + (up ? -1 : 1);
        auto const number = slots_.number(row.pipeline, sender, i.item, up);
        auto& slot = slots_[number];
        (is_send(i.kind) ? slot.sent : slot.awaited) = true;
        if (!slot.sent || !slot.awaited) {
            return;
        }
        slot.entered = now();
        auto const& placement = row.of->program.placement;
        auto const from = static_cast<std::size_t>(placement[static_cast<std::size_t>(sender)]);
        auto const to = static_cast<std::size_t>(placement[static_cast<std::size_t>(sender + (up ? 1 : -1))]);
        auto const size = static_cast<std::size_t>(up ? sender : sender - 1);
        if constexpr (observes_messages<Observer>) {
            auto const first = first_row_[row.pipeline];
            auto const kind = up ? instruction_kind::send_activation : instruction_kind::send_gradient;
            observer_->enters(number, static_cast<std::uint32_t>(first + from), static_cast<std::uint32_t>(first + to),
                              {kind, static_cast<std::int16_t>(sender), i.item});
        }
        network_.send(row.of->ranks[from], row.of->ranks[to], size < row.of->boundary.size() ? row.of->boundary[size] : bytes{}, now(),
                      {step_event::arrives, static_cast<std::uint32_t>(number), static_cast<std::uint32_t>(first_row_[row.pipeline] + to), {}});
    }

    void happen(step_note const& note)
    {
        switch (note.kind) {
        case step_event::computed: end_computation(note.subject); break;
        case step_event::arrives:
            if (is_gone(note.row)) {
                break;  // it arrives nowhere
            }
            slots_[note.subject].arrived = true;
            if constexpr (observes_messages<Observer>) {
                observer_->arrives(note.subject, slots_[note.subject].entered, now());
            }
            advance(note.row);
            break;
        case step_event::sums: sums_.happen(note, [&](std::uint32_t row) { advance(row); }); break;
        }
    }

    void end_computation(std::uint32_t r)
    {
        auto& row = rows_[r];
        --computing_;
        if (is_gone(r)) {
            return;  // it never ended
        }
        row.times.computing += now() - row.since;
        for (std::size_t k = 0; k < row.under_way; ++k) {
            (*observer_)(r, row.next + k, row.since, now());
        }
        row.next += std::exchange(row.under_way, 0);
        row.since = now();
        advance(r);
    }

    modelled_step const* step_;
    network network_;
    std::vector<std::vector<seconds>> const* times_;
    message_slots<time> slots_;
    unit_sums<Model> sums_;
    Observer* observer_;
    std::vector<row_state> rows_;
    std::vector<std::size_t> first_row_;  ///< by pipeline
    time last_stop_{};
    std::size_t computing_ = 0;  ///< rows
    bool is_cut_ = false;
};

}  // namespace detail
}  // namespace rheo::inline v0
