#pragma once
// SPDX-License-Identifier: Apache-2.0

// A program as a network of events (activity on arc): every computation is an arc from its beginning to its end,
// whatever waits for something is an arc of least time from one event to a later one. It is made by an observer of
// the one interpretation, with the timeline's conventions, so a plan on the network and the timeline of the same
// program with the same times agree. Transfers and reductions are arcs of constant time. Of two computations that
// overlap, one comes after the other and both end together: what overlapping gains is in no profile.
//
// Events are numbered in an order in which each comes after all that it waits for; event 0 is the beginning and the
// last one the end. A computation that waits for one event only begins at that event: to begin later is to take longer.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "rheo/schedule/check/interpret.hpp"
#include "rheo/schedule/core/cost.hpp"
#include "rheo/schedule/core/program.hpp"
#include "rheo/units/array_view.hpp"
#include "rheo/units/expects.hpp"

namespace rheo::inline v0 {

/// A computation of the program: where it stands, and its arc.
struct operation {
    int row;    ///< among the rows of all pipelines
    int place;  ///< in its row
    rheo::instruction instruction;
    int arc;

    friend constexpr bool operator==(operation, operation) = default;
};

struct event_arc {
    int from;
    int to;
    int operation = -1;            ///< -1: an arc of constant least time
    std::int64_t nanoseconds = 0;  ///< that time

    friend constexpr bool operator==(event_arc, event_arc) = default;
};

struct event_network {
    int events = 0;
    int rows = 0;
    int stages = 0;  ///< of one copy of the model: stage s of a profile is stage s, s + stages, ... of the program
    std::vector<event_arc> arcs;
    std::vector<operation> operations;  ///< by row, then place

    friend constexpr bool operator==(event_network const&, event_network const&) = default;
};

namespace detail {

/// What the interpretation leads to, with events instead of times. -1 stands for an event that never happened.
template <class Transport>
class event_recorder {
public:
    constexpr event_recorder(array_view<program const> programs, step_cost const& fixed) : programs_{programs}, fixed_{&fixed}
    {
        network.events = 1;
        for (auto const& p : programs) {
            network.stages = std::max(network.stages, stages_per_copy(p));
            auto const items = item_count(p);
            auto const slots = p.placement.size() * items;
            tables_.push_back({items, std::vector<int>(slots, -1), std::vector<int>(slots, -1), std::vector<int>(slots, -1), std::vector<int>(slots, -1)});
            for (std::size_t row = 0; row < p.rows.size(); ++row) {
                first_of_row_.push_back(static_cast<int>(network.operations.size()));
                for (std::size_t place = 0; place < p.rows[row].size(); ++place) {
                    if (is_compute(p.rows[row][place].kind)) {
                        network.operations.push_back({network.rows, static_cast<int>(place), p.rows[row][place], -1});
                    }
                }
                ++network.rows;
            }
        }
        clocks_.resize(static_cast<std::size_t>(network.rows), 0);
        overlapped_.resize(static_cast<std::size_t>(network.rows), 0);
    }

    constexpr void compute(row_ref r, instruction i)
    {
        auto const which = first_of_row_[r.row]++;
        auto& o = network.operations[static_cast<std::size_t>(which)];
        std::vector<event_arc> waits{{clocks_[r.row], 0}};
        add_inputs(r, i, waits);
        auto& overlapped = overlapped_[r.row];
        bool const opens = overlapped == 1;
        if (opens) {  // the pair begins when both have their inputs
            add_inputs(r, programs_[at(r.pipeline)].rows[static_cast<std::size_t>(r.position)][static_cast<std::size_t>(o.place) + 1], waits);
        }
        auto const begin = event_after(waits);
        auto const end = network.events++;
        o.arc = static_cast<int>(network.arcs.size());
        network.arcs.push_back({begin, end, which});
        note(r, i, end);
        if (overlapped == 2) {  // and both end with the second
            note(r, network.operations[static_cast<std::size_t>(which) - 1].instruction, end);
        }
        overlapped = opens ? 2 : 0;
        clocks_[r.row] = end;
    }

    constexpr void overlap(row_ref r, instruction) { overlapped_[r.row] = 1; }

    constexpr void keep(row_ref, instruction) { expects(false, "clocks are planned for programs that keep their activations"); }

    constexpr void transfer(row_ref sender, row_ref receiver, instruction i)
    {
        auto const time = time_of(sender, i);
        clocks_[sender.row] = clocks_[receiver.row] = event_after({{clocks_[sender.row], 0, -1, time}, {clocks_[receiver.row], 0, -1, time}});
    }

    constexpr void send(row_ref r, instruction i)
    {
        auto& t = tables_[at(r.pipeline)];
        (i.kind == instruction_kind::send_activation ? t.activation : t.gradient)[t.slot(i.stage, i.item)] = clocks_[r.row];
    }

    constexpr void receive(row_ref r, instruction i)
    {
        auto& t = tables_[at(r.pipeline)];
        auto const from = counterpart(i);
        (i.kind == instruction_kind::receive_activation ? t.activation_awaited : t.gradient_awaited)[t.slot(from.stage, from.item)] = clocks_[r.row];
    }

    constexpr void post(row_ref r, instruction i)
    {
        auto const unit = static_cast<std::size_t>(i.item);
        if (unit >= posts_.size()) {
            posts_.resize(unit + 1);
        }
        auto const time = unit < fixed_->reductions.size() ? in_whole_nanoseconds(fixed_->reductions[unit]) : 0;
        posts_[unit].push_back({clocks_[r.row], 0, -1, time});
    }

    constexpr void await(row_ref r, instruction i)
    {
        auto waits = posts_[static_cast<std::size_t>(i.item)];
        waits.push_back({clocks_[r.row], 0});
        clocks_[r.row] = event_after(waits);
    }

    constexpr void finish()
    {
        std::vector<event_arc> last;
        for (auto const clock : clocks_) {
            last.push_back({clock, 0});
        }
        connect(last, network.events);
        if (network.arcs.empty() || network.arcs.back().to != network.events) {
            network.arcs.push_back({0, network.events});
        }
        ++network.events;
    }

    event_network network;

private:
    struct table {
        std::size_t items;
        std::vector<int> activation;
        std::vector<int> gradient;
        std::vector<int> activation_awaited;
        std::vector<int> gradient_awaited;

        constexpr std::size_t slot(int stage, int item) const { return static_cast<std::size_t>(stage) * items + static_cast<std::size_t>(item); }
    };

    /// What a computation waits for besides its rank, unless a transfer that held the rank has brought it.
    constexpr void add_inputs(row_ref r, instruction i, std::vector<event_arc>& waits) const
    {
        bool const up = i.kind == instruction_kind::forward;
        auto const source = i.stage + (up ? -1 : 1);
        auto const& t = tables_[at(r.pipeline)];
        auto const& p = programs_[at(r.pipeline)];
        auto const chain = stages_per_copy(p);
        if (std::is_same_v<Transport, rendezvous> || i.kind == instruction_kind::weight_gradient || (up ? i.stage % chain == 0 : (i.stage + 1) % chain == 0)) {
            return;
        }
        auto const slot = t.slot(source, i.item);
        auto const send = up ? instruction_kind::send_activation : instruction_kind::send_gradient;
        bool const local = p.placement[static_cast<std::size_t>(source)] == r.position;
        auto const time = local ? 0 : time_of(r, {send, static_cast<std::int16_t>(source), i.item});
        for (auto const event : {(up ? t.activation : t.gradient)[slot], (up ? t.activation_awaited : t.gradient_awaited)[slot]}) {
            if (event >= 0) {
                waits.push_back({event, 0, -1, time});
            }
        }
    }

    constexpr void note(row_ref r, instruction i, int end)
    {
        auto& t = tables_[at(r.pipeline)];
        if (i.kind == instruction_kind::forward) {
            t.activation[t.slot(i.stage, i.item)] = end;
        } else if (i.kind != instruction_kind::weight_gradient) {
            t.gradient[t.slot(i.stage, i.item)] = end;
        }
    }

    constexpr std::int64_t time_of(row_ref r, instruction i) const
    {
        auto const& costs = fixed_->pipelines;
        return costs.empty() ? 0 : in_whole_nanoseconds(cost_of(costs[at(r.pipeline)], i));
    }

    /// Arcs to `to`; the beginning is before everything, and of two arcs from one event the longer one counts.
    constexpr void connect(std::vector<event_arc> const& waits, int to)
    {
        for (std::size_t k = 0; k < waits.size(); ++k) {
            bool counts = waits[k].from > 0 || waits[k].nanoseconds > 0 || waits.size() == 1;
            for (std::size_t j = 0; j < waits.size(); ++j) {
                bool const longer = waits[j].nanoseconds > waits[k].nanoseconds || (waits[j].nanoseconds == waits[k].nanoseconds && j < k);
                counts = counts && !(j != k && waits[j].from == waits[k].from && longer);
            }
            if (counts) {
                network.arcs.push_back({waits[k].from, to, -1, waits[k].nanoseconds});
            }
        }
    }

    /// The event at which all of this has come: the one event itself where there is nothing else to wait for.
    constexpr int event_after(std::vector<event_arc> const& waits)
    {
        auto const before = network.arcs.size();
        connect(waits, network.events);
        if (network.arcs.size() == before) {
            return 0;
        }
        if (network.arcs.size() == before + 1 && network.arcs.back().nanoseconds == 0) {
            auto const event = network.arcs.back().from;
            network.arcs.pop_back();
            return event;
        }
        return network.events++;
    }

    array_view<program const> programs_;
    step_cost const* fixed_;
    std::vector<table> tables_;
    std::vector<int> clocks_;        ///< row -> the event at which it is free
    std::vector<int> first_of_row_;  ///< row -> the number of its next operation
    std::vector<int> overlapped_;    ///< row -> 1: the next two overlap, 2: the next one is the second of them
    std::vector<std::vector<event_arc>> posts_;
};

}  // namespace detail

/// The answer of make_event_network: a network, or what is wrong with the programs.
struct made_event_network {
    verdict sound;
    event_network network;

    constexpr explicit operator bool() const { return sound.ok; }
};

/// The network of a product of programs under a transport; `fixed` holds the times of transfers and reductions
/// (its times of computations are not looked at; no pipelines: transfers take no time). Cost: that of the deadlock check.
template <class Transport = shared_memory>
constexpr made_event_network make_event_network(array_view<program const> programs, step_cost const& fixed = {})
{
    expects(fixed.pipelines.empty() || fixed.pipelines.size() == programs.size(), "a network needs the transfer times of every pipeline");
    detail::event_recorder<Transport> recorder{programs, fixed};
    auto sound = interpret<Transport>(programs, recorder);
    recorder.finish();
    return {std::move(sound), std::move(recorder.network)};
}

/// The same for one program, whose transfers take no time. @pre the program is sound under the transport
template <class Transport = shared_memory>
constexpr event_network make_event_network(program const& p)
{
    auto made = make_event_network<Transport>(array_view{&p, 1});
    expects(made.sound.ok, "a program that hangs has no network");
    return made.network;
}

}  // namespace rheo::inline v0
