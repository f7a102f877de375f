#pragma once
// SPDX-License-Identifier: Apache-2.0

// Plays traces by the rule of consumers, to find those that hang: per rank one computation of the device, one of the host, and one message or
// collective (receives are free) are under way at once; what is ready is begun by ascending id. Computations take their duration; the
// network is as quick as can be: a message arrives, and a collective ends, one nanosecond after it can.

#include <algorithm>
#include <array>
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
#include "rheo/trace/chakra/trace_set.hpp"
#include "rheo/units/result.hpp"

namespace rheo::inline v0 {

/// When each rank has ended its last step, in nanoseconds.
using chakra_ends = std::vector<std::uint64_t>;

namespace detail {

/// What only one step of a rank can have at once.
enum class play_channel : std::uint8_t { device, host, network, none };

constexpr play_channel channel_of(chakra_step const& step)
{
    switch (step.type) {
    case chakra_node_type::comp: return step.on_host ? play_channel::host : play_channel::device;
    case chakra_node_type::comm_recv: return play_channel::none;
    default: return play_channel::network;
    }
}

template <class OnlyWhenCalled = void>
class trace_player {
public:
    explicit trace_player(chakra_trace_set const& traces) : traces_{&traces}, ranks_(traces.ranks.size()), ends_(traces.ranks.size())
    {
        for (auto const& group : traces.groups) {
            groups_.push_back({std::vector<std::size_t>(group.ranks.size()), {}});
        }
        for (std::size_t r = 0; r < ranks_.size(); ++r) {
            auto const& trace = traces.ranks[r];
            auto& rank = ranks_[r];
            rank.waits.resize(trace.steps.size());
            rank.ended.resize(trace.steps.size());
            rank.followers.resize(trace.steps.size());
            for (std::uint32_t i = 0; i < trace.steps.size(); ++i) {
                rank.waits[i] = static_cast<std::uint32_t>(trace.waits_for(i).size());
                for (auto const other : trace.waits_for(i)) {
                    rank.followers[other].push_back(i);
                }
                if (rank.waits[i] == 0) {
                    make_ready(r, i);
                }
            }
        }
    }

    result<chakra_ends> play()
    {
        for (std::size_t r = 0; r < ranks_.size(); ++r) {
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
        for (std::size_t r = 0; r < ranks_.size() && error_.empty(); ++r) {
            error_ = std::find(ranks_[r].ended.begin(), ranks_[r].ended.end(), false) != ranks_[r].ended.end()
                         ? explain_hang(*traces_, r, [this](std::size_t rank) { return blocked(rank); })
                         : std::string{};
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

    using by_id = std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>>;  // steps stand by ascending id

    struct rank_state {
        std::vector<std::uint32_t> waits;  // step -> how many that it waits for have not ended
        std::vector<bool> ended;
        std::vector<std::vector<std::uint32_t>> followers;
        std::array<by_id, 4> ready;
        std::array<std::uint32_t, 3> under_way{nothing, nothing, nothing};
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

    void make_ready(std::size_t rank, std::uint32_t step) { ranks_[rank].ready[static_cast<std::size_t>(channel_of(step_of(rank, step)))].push(step); }

    void begin_ready(std::size_t rank)
    {
        auto& state = ranks_[rank];
        for (std::size_t c = 0; c < state.ready.size(); ++c) {
            bool const is_free = c == static_cast<std::size_t>(play_channel::none);
            while (!state.ready[c].empty() && (is_free || state.under_way[c] == nothing)) {
                auto const step = state.ready[c].top();
                state.ready[c].pop();
                if (!is_free) {
                    state.under_way[c] = step;
                }
                begin(rank, step);
            }
        }
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
        auto& state = ranks_[rank];
        auto const& s = step_of(rank, step);
        state.ended[step] = true;
        ends_[rank] = now_;
        if (auto const c = channel_of(s); c != play_channel::none) {
            state.under_way[static_cast<std::size_t>(c)] = nothing;
        }
        if (s.type == chakra_node_type::comm_send) {
            auto& box = boxes_[{static_cast<std::int32_t>(rank), s.peer, s.tag, s.bytes}];
            ++box.arrived;
            deliver(static_cast<std::size_t>(s.peer), box);
        }
        for (auto const next : state.followers[step]) {
            if (--state.waits[next] == 0) {
                make_ready(rank, next);
            }
        }
    }

    /// What a rank that hangs is waiting for: its collective, else its first receive.
    chakra_wait blocked(std::size_t rank) const
    {
        auto const& state = ranks_[rank];
        if (auto const step = state.under_way[static_cast<std::size_t>(play_channel::network)]; step != nothing) {
            auto const* const group = find_group(traces_->groups, step_of(rank, step).group);
            auto const& meetings = groups_[static_cast<std::size_t>(group - traces_->groups.data())];
            auto const at = [&](std::size_t r) {
                return static_cast<std::size_t>(std::find(group->ranks.begin(), group->ranks.end(), static_cast<std::int32_t>(r)) - group->ranks.begin());
            };
            for (std::size_t m = 0; m < group->ranks.size(); ++m) {
                if (meetings.begun[m] < meetings.begun[at(rank)]) {
                    return {step, static_cast<std::size_t>(group->ranks[m])};
                }
            }
        }
        for (std::uint32_t i = 0; i < state.ended.size(); ++i) {
            if (!state.ended[i] && state.waits[i] == 0 && step_of(rank, i).type == chakra_node_type::comm_recv) {
                return {i, static_cast<std::size_t>(step_of(rank, i).peer)};
            }
        }
        return {nothing, rank};  // not reached: what is ready has begun, and all else ends
    }

    chakra_trace_set const* traces_;
    std::vector<rank_state> ranks_;
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
