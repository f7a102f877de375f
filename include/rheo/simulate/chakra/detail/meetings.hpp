#pragma once
// SPDX-License-Identifier: Apache-2.0

// Collectives of traces: the k-th that a member begins in a group meets the k-th of the others. Each is played on the network of all, for each
// member from the time at which it begins.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "rheo/simulate/chakra/play_rules.hpp"
#include "rheo/simulate/collectives/chunks.hpp"
#include "rheo/simulate/collectives/detail/collective_play.hpp"
#include "rheo/simulate/network/message_network.hpp"
#include "rheo/trace/chakra/trace_set.hpp"

namespace rheo::inline v0 {

namespace detail {

enum class play_event : std::uint8_t {
    step_ends,   ///< of a rank
    arrives,     ///< a message
    collective,  ///< something in a meeting
};

/// What happens on the network, and to what.
struct play_note {
    play_event kind;
    std::uint32_t subject;  ///< rank, message or meeting
    std::uint32_t step;
    collective_note inner;
};

/// The network as a collective of a group sees it.
template <class Model>
class group_wire {
public:
    using network = message_network<Model, play_note>;

    group_wire(network& carrier, std::vector<std::int32_t> const& ranks, std::uint32_t meeting) : network_{&carrier}, ranks_{&ranks}, meeting_{meeting} {}

    typename Model::time now() const { return network_->now(); }
    void alarm(typename Model::time at, collective_note const& note) { network_->alarm(at, {play_event::collective, meeting_, 0, note}); }
    void send(rank_id from, rank_id to, bytes size, collective_note const& note)
    {
        network_->send(rank_of(from), rank_of(to), size, network_->now(), {play_event::collective, meeting_, 0, note});
    }

private:
    rank_id rank_of(rank_id member) const { return {(*ranks_)[static_cast<std::size_t>(member.value)]}; }

    network* network_;
    std::vector<std::int32_t> const* ranks_;
    std::uint32_t meeting_;
};

struct meeting_member {
    std::uint32_t step = UINT32_MAX;  ///< that has begun
    bool is_through = false;
};

/// @pre chakra_play_fault of traces and rules is empty
template <class Model>
class meetings {
public:
    using network = message_network<Model, play_note>;
    using level = network_level<typename Model::link>;

    struct meeting {
        std::size_t group;
        chakra_collective what;
        std::int64_t bytes;
        std::vector<meeting_member> members;
        std::size_t begun = 0;
        std::size_t through = 0;
        std::unique_ptr<collective_play<Model, group_wire<Model>>> play;  ///< none: one member alone, or all are through
    };

    meetings(chakra_trace_set const& traces, array_view<level const> levels, chakra_play_rules<Model> const& rules)
        : traces_{&traces}, levels_{levels}, rules_{&rules}
    {
        for (auto const& group : traces.groups) {
            auto& state = groups_.emplace_back();
            auto const& ranks = is_all(group) ? traces.groups.front().ranks : group.ranks;
            state.begun.resize(ranks.size());
            for (std::size_t m = 0; m < ranks.size(); ++m) {
                state.numbers.emplace_back(ranks[m], static_cast<std::int32_t>(m));
            }
            std::sort(state.numbers.begin(), state.numbers.end());
        }
    }

    meeting& operator[](std::uint32_t number) { return meetings_[number]; }
    std::int32_t rank_of(meeting const& at, rank_id member) const { return ranks_of_group(at.group)[static_cast<std::size_t>(member.value)]; }

    /// A member begins a collective. @returns the meeting, and the member's number in it
    std::pair<std::uint32_t, rank_id> join(network& carrier, std::uint32_t rank, std::uint32_t step)
    {
        auto const& s = traces_->ranks[rank].steps[step];
        auto const g = static_cast<std::size_t>(find_group(traces_->groups, s.group) - traces_->groups.data());
        auto const member = number_of(g, rank);
        auto& state = groups_[g];
        auto const k = state.begun[static_cast<std::size_t>(member.value)]++;
        if (k == state.meetings.size()) {
            state.meetings.push_back(open(carrier, g, s));
        }
        auto const number = state.meetings[k];
        auto& m = meetings_[number];
        m.members[static_cast<std::size_t>(member.value)].step = step;
        ++m.begun;
        return {number, member};
    }

    /// A member that has not come to the meeting in which this one is. @pre the rank has begun that step, a collective, and it does not end
    std::size_t absent(std::uint32_t rank, std::uint32_t step) const
    {
        auto const g = static_cast<std::size_t>(find_group(traces_->groups, traces_->ranks[rank].steps[step].group) - traces_->groups.data());
        auto const member = static_cast<std::size_t>(number_of(g, rank).value);
        for (auto const number : groups_[g].meetings) {
            auto const& m = meetings_[number];
            for (std::size_t other = 0; m.members[member].step == step && other < m.members.size(); ++other) {
                if (m.members[other].step == UINT32_MAX) {
                    return static_cast<std::size_t>(ranks_of_group(g)[other]);
                }
            }
        }
        return rank;
    }

private:
    struct group_state {
        std::vector<std::pair<std::int32_t, std::int32_t>> numbers;  ///< rank, member; by rank
        std::vector<std::size_t> begun;                              ///< member -> how many collectives it has begun
        std::vector<std::uint32_t> meetings;
    };

    bool is_all(chakra_group const& group) const { return group.ranks.size() == traces_->ranks.size(); }

    /// A group of all ranks has them in their order, however it was written.
    std::vector<std::int32_t> const& ranks_of_group(std::size_t g) const
    {
        return is_all(traces_->groups[g]) ? traces_->groups.front().ranks : traces_->groups[g].ranks;
    }

    rank_id number_of(std::size_t g, std::uint32_t rank) const
    {
        auto const& numbers = groups_[g].numbers;
        return {std::lower_bound(numbers.begin(), numbers.end(), std::pair{static_cast<std::int32_t>(rank), std::int32_t{0}})->second};
    }

    std::uint32_t open(network& carrier, std::size_t g, chakra_step const& s)
    {
        auto const number = static_cast<std::uint32_t>(meetings_.size());
        auto const& ranks = ranks_of_group(g);
        meeting made{g, s.collective, s.bytes, std::vector<meeting_member>(ranks.size()), 0, 0, nullptr};
        if (ranks.size() > 1) {
            made.play = std::make_unique<collective_play<Model, group_wire<Model>>>(group_wire<Model>{carrier, ranks, number}, parts_of(g, s));
        }
        meetings_.push_back(std::move(made));
        return number;
    }

    collective_parts<Model> parts_of(std::size_t g, chakra_step const& s) const
    {
        bool const all = is_all(traces_->groups[g]);
        auto const operation = operation_of(s.collective);
        auto const form = form_of(s.collective, *rules_, all);
        auto const ranks = static_cast<int>(traces_->ranks.size());
        bytes const size{s.collective == chakra_collective::barrier ? 0 : s.bytes};
        auto const chunks = cut_into_chunks(operation, size, rules_->chunks, ranks);
        collective_parts<Model> parts;
        parts.request = {.operation = operation,
                         .form = form,
                         .active_chunks = rules_->active_chunks,
                         .handover = all ? rules_->handover : rules_->group_handover,
                         .memory = rules_->memory};
        parts.members = static_cast<int>(ranks_of_group(g).size());
        parts.chunks = static_cast<std::int32_t>(chunks.count);
        bool const by_level = all && form != collective_form::tree && form != collective_form::slice_owner && operation != collective::all_to_all &&
                              ranks == rheo::ranks_of(levels_);
        parts.phases = phases_of(operation, by_level ? collective_scope::by_level : collective_scope::all_ranks, chunks.each, levels_);
        if (!by_level) {
            parts.phases = {{operation, 0, 1, parts.members, chunks.each}};
        }
        return parts;
    }

    chakra_trace_set const* traces_;
    array_view<level const> levels_;
    chakra_play_rules<Model> const* rules_;
    std::vector<group_state> groups_;
    std::vector<meeting> meetings_;
};

}  // namespace detail
}  // namespace rheo::inline v0
