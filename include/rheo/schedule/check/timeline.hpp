#pragma once
// SPDX-License-Identifier: Apache-2.0

// When each instruction of a set of programs begins and ends, for given costs: the longest-path times
// of the one run that interpret.hpp defines. Ranks compute one thing at a time. Under rendezvous both
// ranks are held for the transfer; non-blocking, both continue at once and the message arrives the
// transfer's time after the later of them (links are not shared). A reduction ends its unit's time
// after its last post.

#include <algorithm>
#include <cstddef>
#include <type_traits>
#include <utility>
#include <vector>

#include "rheo/schedule/check/interpret.hpp"
#include "rheo/schedule/core/cost.hpp"
#include "rheo/schedule/core/program.hpp"
#include "rheo/schedule/core/transport.hpp"
#include "rheo/units/array_view.hpp"
#include "rheo/units/expects.hpp"

namespace rheo::inline v0 {

/// An instruction with its times. A transfer that holds its rank, and an await, begin when the rank reaches them: waiting
/// is part of them. A computation begins when its input is there.
struct timed_instruction {
    rheo::instruction instruction;
    seconds start;
    seconds end;

    friend constexpr bool operator==(timed_instruction, timed_instruction) = default;
};

/// The times of one rank, in program order.
struct timed_row {
    pipeline_id pipeline;
    int position;
    std::vector<timed_instruction> instructions;

    friend constexpr bool operator==(timed_row const&, timed_row const&) = default;
};

/// The times of a product of programs; of what ran before the stuck state when it is not sound.
struct timeline {
    verdict sound;
    std::vector<timed_row> rows;  ///< by pipeline, then position

    friend constexpr bool operator==(timeline const&, timeline const&) = default;
};

namespace detail {

/// When (stage, microbatch) facts became true, in one pipeline.
struct pipeline_times {
    item_range items;
    std::vector<seconds> activation;          ///< the forward's end, or its send when that is posted
    std::vector<seconds> gradient;            ///< the same for the backward
    std::vector<seconds> activation_awaited;  ///< when the next stage posted its receive
    std::vector<seconds> gradient_awaited;    ///< when the stage before did

    constexpr std::size_t slot(int stage, int item) const { return static_cast<std::size_t>(stage) * items.count + items.place(item); }
};

template <class Transport>
class clockwork {
public:
    constexpr clockwork(array_view<program const> programs, step_cost const& costs) : programs_{programs}, costs_{&costs}
    {
        expects(costs.pipelines.size() == programs.size(), "a timeline needs the costs of every pipeline");
        for (std::size_t p = 0; p < programs.size(); ++p) {
            auto const stages = programs[p].placement.size();
            expects(costs.pipelines[p].size() == stages, "a timeline needs the costs of every stage");
            auto const items = item_range_of(programs[p]);
            std::vector<seconds> const never(stages * items.count);
            times_.push_back({items, never, never, never, never});
            for (std::size_t position = 0; position < programs[p].rows.size(); ++position) {
                rows.push_back({pipeline_id{static_cast<int>(p)}, static_cast<int>(position), {}});
            }
        }
        clocks_.resize(rows.size());
    }

    constexpr void compute(row_ref r, instruction i)
    {
        auto start = std::max(clocks_[r.row], input_time(r, i));
        auto end = start + cost(r, i);
        auto const& row = programs_[at(r.pipeline)].rows[static_cast<std::size_t>(r.position)];
        auto const& before = rows[r.row].instructions;
        if (!before.empty() && before.back().instruction.kind == instruction_kind::overlap) {
            auto const partner = row[before.size() + 1];
            start = std::max(start, input_time(r, partner));
            end = start + cost(r, i) + cost(r, partner) - gain(r, i);
        } else if (before.size() > 1 && before[before.size() - 2].instruction.kind == instruction_kind::overlap) {
            start = before.back().start;
            end = before.back().end;
        }
        auto& t = times_[at(r.pipeline)];
        if (i.kind == instruction_kind::forward) {
            t.activation[t.slot(i.stage, i.item)] = end;
        } else if (i.kind != instruction_kind::weight_gradient) {
            t.gradient[t.slot(i.stage, i.item)] = end;
        }
        record(r, i, start, end);
    }

    constexpr void overlap(row_ref r, instruction i) { record(r, i, clocks_[r.row], clocks_[r.row]); }

    /// An eviction or a recomputation: it waits for no other rank.
    constexpr void keep(row_ref r, instruction i) { record(r, i, clocks_[r.row], clocks_[r.row] + cost(r, i)); }

    constexpr void transfer(row_ref sender, row_ref receiver, instruction i)
    {
        auto const end = std::max(clocks_[sender.row], clocks_[receiver.row]) + cost(sender, i);
        record(sender, i, clocks_[sender.row], end);
        record(receiver, counterpart(i), clocks_[receiver.row], end);
    }

    constexpr void send(row_ref r, instruction i)
    {
        auto& t = times_[at(r.pipeline)];
        auto& sent = i.kind == instruction_kind::send_activation ? t.activation : t.gradient;
        sent[t.slot(i.stage, i.item)] = clocks_[r.row];
        record(r, i, clocks_[r.row], clocks_[r.row]);
    }

    constexpr void receive(row_ref r, instruction i)
    {
        auto& t = times_[at(r.pipeline)];
        auto& awaited = i.kind == instruction_kind::receive_activation ? t.activation_awaited : t.gradient_awaited;
        auto const send = counterpart(i);
        awaited[t.slot(send.stage, send.item)] = clocks_[r.row];
        record(r, i, clocks_[r.row], clocks_[r.row]);
    }

    constexpr void post(row_ref r, instruction i)
    {
        auto const unit = static_cast<std::size_t>(i.item);
        if (unit >= posted_.size()) {
            posted_.resize(unit + 1);
        }
        posted_[unit] = std::max(posted_[unit], clocks_[r.row]);
        record(r, i, clocks_[r.row], clocks_[r.row]);
    }

    constexpr void await(row_ref r, instruction i)
    {
        auto const unit = static_cast<std::size_t>(i.item);
        auto const time = unit < costs_->reductions.size() ? costs_->reductions[unit] : seconds{0.0};
        record(r, i, clocks_[r.row], std::max(clocks_[r.row], posted_[unit] + time));
    }

    std::vector<timed_row> rows;

private:
    constexpr seconds cost(row_ref r, instruction i) const { return cost_of(costs_->pipelines[at(r.pipeline)], i); }

    constexpr seconds gain(row_ref r, instruction i) const { return costs_->pipelines[at(r.pipeline)][static_cast<std::size_t>(i.stage)].overlap_gain; }

    /// When the output of the neighbour stage is there, unless a transfer that held this rank has brought it.
    constexpr seconds input_time(row_ref r, instruction i) const
    {
        bool const up = i.kind == instruction_kind::forward;
        auto const source = i.stage + (up ? -1 : 1);
        auto const& t = times_[at(r.pipeline)];
        auto const& placement = programs_[at(r.pipeline)].placement;
        auto const chain = stages_per_copy(programs_[at(r.pipeline)]);
        if (std::is_same_v<Transport, rendezvous> || i.kind == instruction_kind::weight_gradient || (up ? i.stage % chain == 0 : (i.stage + 1) % chain == 0)) {
            return seconds{0.0};
        }
        auto const slot = t.slot(source, i.item);
        auto const ready = std::max((up ? t.activation : t.gradient)[slot], (up ? t.activation_awaited : t.gradient_awaited)[slot]);
        if (placement[static_cast<std::size_t>(source)] == r.position) {
            return ready;
        }
        auto const send = up ? instruction_kind::send_activation : instruction_kind::send_gradient;
        return ready + cost(r, {send, static_cast<std::int16_t>(source), i.item});
    }

    constexpr void record(row_ref r, instruction i, seconds start, seconds end)
    {
        rows[r.row].instructions.push_back({i, start, end});
        clocks_[r.row] = end;
    }

    array_view<program const> programs_;
    step_cost const* costs_;
    std::vector<pipeline_times> times_;
    std::vector<seconds> clocks_;  ///< row -> when it is free
    std::vector<seconds> posted_;  ///< unit -> its last post
};

}  // namespace detail

/// The timeline of the product of the programs from time 0. Cost: as the deadlock check. `limits` as in interpret.
/// @pre costs for every pipeline and stage
template <class Transport>
constexpr timeline make_timeline(array_view<program const> programs, step_cost const& costs, array_view<std::size_t const> limits = {})
{
    detail::clockwork<Transport> clock{programs, costs};
    auto sound = interpret<Transport>(programs, clock, limits);
    return {std::move(sound), std::move(clock.rows)};
}

/// The end of the last instruction.
template <class OnlyWhenCalled = void>
constexpr seconds makespan(timeline const& times)
{
    seconds last{0.0};
    for (auto const& row : times.rows) {
        if (!row.instructions.empty()) {
            last = std::max(last, row.instructions.back().end);
        }
    }
    return last;
}

/// The makespan of one pipeline; the default transport is for programs that only compute, whose
/// transfers then cost their time but block no rank. @pre the program is sound under the transport
template <class Transport = shared_memory>
constexpr seconds makespan(program const& p, stage_costs const& costs)
{
    auto const times = make_timeline<Transport>(array_view{&p, 1}, {{costs}, {}});
    expects(times.sound.ok, "a program that hangs has no makespan");
    return makespan(times);
}

}  // namespace rheo::inline v0
