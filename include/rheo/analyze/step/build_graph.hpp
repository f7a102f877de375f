#pragma once
// SPDX-License-Identifier: Apache-2.0

// From the records of a step to its graph. A message that was there before it was needed does not show how long it took: it is taken to have taken
// what messages between the two ranks typically take where they are waited for, and no longer than it can have. Sums of reductions alike.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rheo/analyze/distribution.hpp"
#include "rheo/analyze/step/detail/message_places.hpp"
#include "rheo/analyze/step/recorded_step.hpp"
#include "rheo/analyze/step/step_class.hpp"
#include "rheo/analyze/step/step_graph.hpp"
#include "rheo/trace/event.hpp"
#include "rheo/units/result.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

namespace detail {

/// Builds the graph of one step.
template <class OnlyWhenCalled = void>
class step_graph_builder {
public:
    step_graph_builder(recorded_step const& step, bool sends_wait) : step_{&step}, sends_wait_{sends_wait} {}

    result<step_graph> build()
    {
        for (std::uint32_t r = 0; r < step_->rows.size(); ++r) {
            add_row(r);
        }
        add_hubs();
        await_messages();
        await_hubs();
        lay_out();
        if (!put_in_order(graph_)) {
            return failure{"step " + std::to_string(step_->step.value) + ": the recorded operations wait for each other in a circle"};
        }
        return std::move(graph_);
    }

private:
    void add_row(std::uint32_t r)
    {
        auto const& row = step_->rows[r];
        graph_.ranks.push_back(row.rank);
        graph_.begins.push_back(row.begin);
        auto before = no_step_node;
        for (auto const& e : row.events) {
            if (!is_instruction(e.activity) && e.activity != activity::decide && e.activity != activity::update) {
                continue;
            }
            auto const n = static_cast<std::uint32_t>(graph_.nodes.size());
            auto const ready = before == no_step_node ? row.begin : graph_.nodes[before].end;
            step_node node{&e, r, before};
            node.end = std::max(e.end, ready);
            auto const start = std::max(e.start, ready);
            node.host = start - ready;
            node.own = node.end - start;
            node.own_class = class_of(e.activity);
            bool const at_once =
                is_work(node.own_class) && before != no_step_node && graph_.nodes[before].event->start == e.start && is_work(graph_.nodes[before].own_class);
            graph_.nodes.push_back(node);
            note(e, n, at_once ? before : n);
            before = n;
        }
    }

    /// Notes what other nodes look for. @param starting waits for the operation's input: of two that are computed at once it is the first
    void note(trace_event const& e, std::uint32_t n, std::uint32_t starting)
    {
        using enum activity;
        switch (e.activity) {
        case send_activation: sends_.push_back({place_of(e, e.stage.value + 1, false), n}); break;  // by the stage that receives
        case send_gradient: sends_.push_back({place_of(e, e.stage.value - 1, true), n}); break;
        case receive_activation: receives_.push_back({place_of(e, e.stage.value, false), n}); break;
        case receive_gradient: receives_.push_back({place_of(e, e.stage.value, true), n}); break;
        case forward: inputs_.push_back({place_of(e, e.stage.value, false), starting}); break;
        case backward:
        case input_gradient: inputs_.push_back({place_of(e, e.stage.value, true), starting}); break;
        case post_reduction: posts_.push_back({e.item, n}); break;
        case await_reduction: awaits_.push_back({e.item, n}); break;
        case decide: votes_.push_back(n); break;
        default: break;
        }
    }

    /// A node that ends with the last of some others.
    std::uint32_t add_hub(std::vector<std::uint32_t> members)
    {
        step_node hub;
        hub.end = seconds{-std::numeric_limits<double>::infinity()};
        for (auto const m : members) {
            hub.end = std::max(hub.end, graph_.nodes[m].end);
        }
        hub_members_.push_back(std::move(members));
        graph_.nodes.push_back(hub);
        return static_cast<std::uint32_t>(graph_.nodes.size() - 1);
    }

    void add_hubs()
    {
        first_hub_ = graph_.nodes.size();
        std::sort(posts_.begin(), posts_.end());
        std::sort(awaits_.begin(), awaits_.end());
        for (std::size_t begin = 0; begin < awaits_.size();) {
            auto const unit = awaits_[begin].unit;
            auto end = begin;
            while (end < awaits_.size() && awaits_[end].unit == unit) {
                ++end;
            }
            std::vector<std::uint32_t> members;
            auto const first = std::lower_bound(posts_.begin(), posts_.end(), unit_node{unit, 0});
            for (auto post = first; post != posts_.end() && post->unit == unit; ++post) {
                members.push_back(post->node);
            }
            if (!members.empty()) {
                units_.push_back({begin, end, add_hub(std::move(members))});
            }
            begin = end;
        }
        std::vector<std::uint32_t> last;  // of each rank before its vote
        for (auto const vote : votes_) {
            if (graph_.nodes[vote].before != no_step_node) {
                last.push_back(graph_.nodes[vote].before);
            }
        }
        vote_hub_ = last.empty() ? no_step_node : add_hub(std::move(last));
        awaited_by_.resize(first_hub_);
    }

    void await_messages()
    {
        std::sort(sends_.begin(), sends_.end());
        std::sort(inputs_.begin(), inputs_.end());
        std::vector<std::uint32_t> waiting;  // operations with an input from another rank
        for (auto const& [at, receive] : receives_) {
            auto const send = find_node(sends_, at);
            if (send == no_step_node) {
                ++graph_.unmatched;
            } else if (sends_wait_) {
                meet(send, receive);
            } else if (auto const input = find_node(inputs_, at); input != no_step_node && graph_.nodes[input].row == graph_.nodes[receive].row) {
                if (awaited_by_[input].empty()) {
                    waiting.push_back(input);
                }
                if (awaited_by_[input].count + 2 <= awaited_by_[input].nodes.size()) {  // more are records of no schedule
                    awaited_by_[input].add(send);
                    awaited_by_[input].add(receive);
                }
            }
        }
        time_messages(waiting);
    }

    /// What the messages took that operations waited for, and those that were there before.
    void time_messages(std::vector<std::uint32_t> const& waiting)
    {
        std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<seconds>> waited;  // sender's and receiver's row -> what messages took
        std::vector<std::uint32_t> early;
        for (auto const n : waiting) {
            auto& node = graph_.nodes[n];
            node.lag_class = step_class::message;
            auto const since = last_end(n);
            if (start_of(node) - node.host <= since) {  // it waited from then on
                node.lag = start_of(node) - since;
                node.host = {};
                waited[rows_of(n, last_send(n))].push_back(node.lag);
            } else {
                early.push_back(n);
            }
        }
        message_times typically;
        std::vector<seconds> all;
        for (auto& [rows, times] : waited) {
            all.insert(all.end(), times.begin(), times.end());
            typically.between[rows] = middle_of(std::move(times));
        }
        if (!all.empty()) {
            typically.anywhere = middle_of(std::move(all));
        }
        for (auto const n : early) {
            auto& node = graph_.nodes[n];
            auto const reached = start_of(node);
            auto const since = last_end(n);
            auto const typical = typical_of(n, typically);
            bool const in_flight = typical ? reached - node.host <= since + *typical : node.host > seconds{};  // the message came after the rank did
            node.lag = in_flight ? reached - since : std::min(typical.value_or(seconds{}), reached - since);
            node.host = in_flight ? seconds{} : node.host;
        }
    }

    struct message_times {
        std::map<std::pair<std::uint32_t, std::uint32_t>, seconds> between;  ///< sender's and receiver's row
        std::optional<seconds> anywhere;
    };

    /// What the messages of an operation typically take; nothing where none was waited for.
    std::optional<seconds> typical_of(std::uint32_t n, message_times const& typically) const
    {
        std::optional<seconds> typical;
        auto const& awaited = awaited_by_[n];
        for (std::size_t k = 0; k < awaited.count; k += 2) {  // sends and receives in turn
            if (auto const like = typically.between.find(rows_of(n, awaited.nodes[k])); like != typically.between.end()) {
                typical = std::max(typical.value_or(seconds{}), like->second);
            }
        }
        return typical ? typical : typically.anywhere;
    }

    /// Both ends of a message are held until it is there.
    void meet(std::uint32_t send, std::uint32_t receive)
    {
        for (auto const& [self, other] : {std::pair{send, receive}, std::pair{receive, send}}) {
            auto& node = graph_.nodes[self];
            auto const awaited = graph_.nodes[other].before;
            if (awaited != no_step_node) {
                awaited_by_[self] = {{awaited}, 1};
                node.lag_class = step_class::message;
                node.lag = node.end - graph_.nodes[awaited].end;
                node.own = {};
            }
        }
    }

    void await_hubs()
    {
        std::vector<seconds> waited;  // what sums took that were waited for, a time for each unit
        for (auto const& unit : units_) {
            auto least = seconds{std::numeric_limits<double>::infinity()};
            for (auto k = unit.begin; k < unit.end; ++k) {
                auto const n = awaits_[k].node;
                least = waited_for(n, unit.hub) ? std::min(least, graph_.nodes[n].end - graph_.nodes[unit.hub].end) : least;
            }
            if (least < seconds{std::numeric_limits<double>::infinity()}) {
                waited.push_back(least);
            }
        }
        auto const typical = waited.empty() ? seconds{} : middle_of(std::move(waited));
        for (auto const& unit : units_) {
            auto const posted = graph_.nodes[unit.hub].end;
            for (auto k = unit.begin; k < unit.end; ++k) {
                auto const n = awaits_[k].node;
                auto& node = graph_.nodes[n];
                bool const waits = waited_for(n, unit.hub);
                node.lag_class = step_class::reduction;
                node.lag = waits ? node.end - posted : std::min(typical, start_of(node) - posted);
                node.own = waits ? seconds{} : node.own;
                awaited_by_[n] = {{unit.hub}, 1};
            }
        }
        for (auto const n : votes_) {
            auto& node = graph_.nodes[n];
            if (vote_hub_ == no_step_node || node.before == no_step_node) {
                continue;
            }
            awaited_by_[n] = {{vote_hub_}, 1};
            node.lag_class = step_class::vote;
            node.lag = node.end - graph_.nodes[vote_hub_].end;
            node.host = node.own = {};
        }
    }

    /// Whether a rank waited for a sum: it came before the last post, or spent more than a twentieth of the sum's time.
    bool waited_for(std::uint32_t n, std::uint32_t hub) const
    {
        auto const& node = graph_.nodes[n];
        auto const posted = graph_.nodes[hub].end;
        return start_of(node) <= posted || node.own * 20.0 > node.end - posted;
    }

    seconds start_of(step_node const& node) const { return node.end - node.own; }

    seconds last_end(std::uint32_t n) const
    {
        seconds last{-std::numeric_limits<double>::infinity()};
        for (auto const m : awaited_by_[n]) {
            last = std::max(last, graph_.nodes[m].end);
        }
        return last;
    }

    /// Of the sends that an operation awaits. @pre it awaits sends and receives, in turn
    std::uint32_t last_send(std::uint32_t n) const
    {
        auto const& awaited = awaited_by_[n];
        auto last = awaited.nodes[0];
        for (std::size_t k = 2; k < awaited.count; k += 2) {
            last = graph_.nodes[awaited.nodes[k]].end > graph_.nodes[last].end ? awaited.nodes[k] : last;
        }
        return last;
    }

    std::pair<std::uint32_t, std::uint32_t> rows_of(std::uint32_t receiver, std::uint32_t sender) const
    {
        return {graph_.nodes[sender].row, graph_.nodes[receiver].row};
    }

    static seconds middle_of(std::vector<seconds> times)
    {
        auto const middle = times.size() / 2;
        return nth_smallest(std::move(times), middle);
    }

    /// Lays out what is awaited.
    void lay_out()
    {
        auto const put = [this](step_node& node, auto const& awaited) {
            node.first_awaited = static_cast<std::uint32_t>(graph_.awaits.size());
            graph_.awaits.insert(graph_.awaits.end(), awaited.begin(), awaited.end());
            node.awaited = static_cast<std::uint32_t>(graph_.awaits.size()) - node.first_awaited;
        };
        for (std::size_t n = 0; n < first_hub_; ++n) {
            put(graph_.nodes[n], awaited_by_[n]);
        }
        for (std::size_t k = 0; k < hub_members_.size(); ++k) {
            put(graph_.nodes[first_hub_ + k], hub_members_[k]);
        }
    }

    recorded_step const* step_;
    bool sends_wait_;
    step_graph graph_;
    std::vector<placed_node> sends_;
    std::vector<placed_node> receives_;
    std::vector<placed_node> inputs_;
    std::vector<unit_node> posts_;
    std::vector<unit_node> awaits_;
    std::vector<std::uint32_t> votes_;
    struct awaited_unit {
        std::size_t begin;  ///< in awaits_
        std::size_t end;
        std::uint32_t hub;
    };
    std::vector<awaited_unit> units_;
    std::vector<std::vector<std::uint32_t>> hub_members_;
    std::size_t first_hub_ = 0;
    std::uint32_t vote_hub_ = no_step_node;
    std::vector<few_nodes> awaited_by_;  ///< of nodes that are no hubs
};

}  // namespace detail

/// The graph of a step. @param sends_wait its sends and receives were held until the message was there (run.rendezvous). A refusal says that the
/// records contradict each other. Cost: n log n.
template <class OnlyWhenCalled = void>
result<step_graph> graph_of(recorded_step const& step, bool sends_wait = false)
{
    return detail::step_graph_builder<>{step, sends_wait}.build();
}

}  // namespace rheo::inline v0
