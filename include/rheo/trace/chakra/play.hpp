#pragma once
// SPDX-License-Identifier: Apache-2.0

// Plays traces by the rule of consumers, to find those that hang: per rank one computation of the device, one of the host, and one message or
// collective (receives are free) are under way at once; what is ready is begun by ascending id. Computations take their duration; the
// network is as quick as can be: a message arrives, and a collective ends, one nanosecond after it can.

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <queue>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "rheo/trace/chakra/hang.hpp"
#include "rheo/trace/chakra/node.hpp"
#include "rheo/trace/chakra/rank_program.hpp"
#include "rheo/trace/chakra/trace_set.hpp"
#include "rheo/units/result.hpp"

namespace rheo::inline v0 {

/// When each rank has ended its last step, in nanoseconds.
using chakra_ends = std::vector<std::uint64_t>;

namespace detail {

template <class OnlyWhenCalled = void>
class trace_player {
public:
    explicit trace_player(chakra_trace_set const& traces) : traces_{&traces}, ends_(traces.ranks.size())
    {
        for (auto const& group : traces.groups) {
            groups_.push_back({std::vector<std::size_t>(group.ranks.size()), {}});
        }
        for (auto const& trace : traces.ranks) {
            programs_.emplace_back(trace, true);
        }
    }

    result<chakra_ends> play()
    {
        for (std::size_t r = 0; r < programs_.size(); ++r) {
            begin_ready(r);
        }
        std::vector<std::size_t> touched;
        while (!events_.empty() && error_.empty()) {
            now_ = events_.top().time;
            touched.clear();
            while (!events_.empty() && events_.top().time == now_) {  // what ends together has ended before anything begins
                auto const over = events_.top();
                events_.pop();
                end(over.rank, over.step);
                touched.push_back(over.rank);
            }
            for (auto const rank : touched) {
                begin_ready(rank);
            }
        }
        for (std::size_t r = 0; r < programs_.size() && error_.empty(); ++r) {
            error_ = programs_[r].is_over() ? std::string{} : explain_hang(*traces_, r, [this](std::size_t rank) { return blocked(rank); });
        }
        return error_.empty() ? result<chakra_ends>{ends_} : failure{error_};
    }

private:
    static constexpr std::uint32_t nothing = UINT32_MAX;

    struct event {
        std::uint64_t time;
        std::size_t rank;
        std::uint32_t step;

        friend constexpr auto operator<=>(event const&, event const&) = default;
    };

    struct meeting {
        std::vector<std::pair<std::size_t, std::uint32_t>> members;  // ranks that have come, and their steps
    };

    struct group_state {
        std::vector<std::size_t> begun;  // member -> how many collectives it has begun
        std::vector<meeting> meetings;
    };

    struct mailbox {
        std::size_t arrived = 0;
        std::queue<std::uint32_t> waiting;  // receives that have begun
    };

    chakra_step const& step_of(std::size_t rank, std::uint32_t step) const { return traces_->ranks[rank].steps[step]; }

    void begin_ready(std::size_t rank)
    {
        programs_[rank].begin_ready([&](std::uint32_t step) { begin(rank, step); });
    }

    void begin(std::size_t rank, std::uint32_t step)
    {
        auto const& s = step_of(rank, step);
        auto const here = static_cast<std::int32_t>(rank);
        switch (s.type) {
        case chakra_node_type::comm_recv: {
            auto& box = boxes_[{s.peer, here, s.tag, s.bytes}];
            box.waiting.push(step);
            deliver(rank, box);
            break;
        }
        case chakra_node_type::comm_coll: join(rank, step); break;
        case chakra_node_type::comm_send: events_.push({now_ + 1, rank, step}); break;
        default: events_.push({now_ + std::max<std::uint64_t>(1, 1000 * s.duration_micros), rank, step});
        }
    }

    /// Ends receives for which a message has come.
    void deliver(std::size_t rank, mailbox& box)
    {
        for (; box.arrived > 0 && !box.waiting.empty(); --box.arrived) {
            events_.push({now_, rank, box.waiting.front()});
            box.waiting.pop();
        }
    }

    /// The k-th collective that a member begins in a group meets the k-th of the others.
    void join(std::size_t rank, std::uint32_t step)
    {
        auto const& s = step_of(rank, step);
        auto const* const group = find_group(traces_->groups, s.group);
        auto& state = groups_[static_cast<std::size_t>(group - traces_->groups.data())];
        auto const member = std::find(group->ranks.begin(), group->ranks.end(), static_cast<std::int32_t>(rank)) - group->ranks.begin();
        auto const k = state.begun[static_cast<std::size_t>(member)]++;
        state.meetings.resize(std::max(state.meetings.size(), k + 1));
        auto& members = state.meetings[k].members;
        members.emplace_back(rank, step);
        auto const& first = step_of(members.front().first, members.front().second);
        if (first.collective != s.collective || first.bytes != s.bytes) {
            error_ =
                label_of(first, members.front().first) + " meets " + label_of(s, rank) + ", another collective: their group does not begin its in one order";
        } else if (members.size() == group->ranks.size()) {
            for (auto const& [other, its] : members) {
                events_.push({now_ + 1, other, its});
            }
        }
    }

    void end(std::size_t rank, std::uint32_t step)
    {
        auto const& s = step_of(rank, step);
        ends_[rank] = now_;
        if (s.type == chakra_node_type::comm_send) {
            auto& box = boxes_[{static_cast<std::int32_t>(rank), s.peer, s.tag, s.bytes}];
            ++box.arrived;
            deliver(static_cast<std::size_t>(s.peer), box);
        }
        programs_[rank].end(step);
    }

    /// What a rank that hangs is waiting for: its collective, else its first receive.
    chakra_wait blocked(std::size_t rank) const
    {
        chakra_wait message{nothing, rank};
        for (std::uint32_t i = 0; i < programs_[rank].steps(); ++i) {
            auto const& s = step_of(rank, i);
            if (!programs_[rank].is_under_way(i)) {
                continue;
            }
            if (s.type == chakra_node_type::comm_coll) {
                return {i, absent(rank, s)};
            }
            if (message.step == nothing && s.type == chakra_node_type::comm_recv) {
                message = {i, static_cast<std::size_t>(s.peer)};
            }
        }
        return message;
    }

    /// A member that has begun fewer collectives of the group than this one.
    std::size_t absent(std::size_t rank, chakra_step const& collective) const
    {
        auto const* const group = find_group(traces_->groups, collective.group);
        auto const& begun = groups_[static_cast<std::size_t>(group - traces_->groups.data())].begun;
        auto const own = std::find(group->ranks.begin(), group->ranks.end(), static_cast<std::int32_t>(rank)) - group->ranks.begin();
        for (std::size_t m = 0; m < group->ranks.size(); ++m) {
            if (begun[m] < begun[static_cast<std::size_t>(own)]) {
                return static_cast<std::size_t>(group->ranks[m]);
            }
        }
        return rank;
    }

    chakra_trace_set const* traces_;
    std::vector<rank_program<>> programs_;
    std::vector<group_state> groups_;
    std::map<std::tuple<std::int32_t, std::int32_t, std::int32_t, std::int64_t>, mailbox> boxes_;  // source, destination, tag, bytes
    std::priority_queue<event, std::vector<event>, std::greater<>> events_;
    std::uint64_t now_ = 0;
    chakra_ends ends_;
    std::string error_;
};

}  // namespace detail

/// Plays the traces to their end. @pre check_messages and check_collectives find nothing  @returns why they hang, with the ranks that wait for each other
template <class OnlyWhenCalled = void>
result<chakra_ends> play(chakra_trace_set const& traces)
{
    return detail::trace_player<>{traces}.play();
}

}  // namespace rheo::inline v0
