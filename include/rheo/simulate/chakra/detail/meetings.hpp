#pragma once
// SPDX-License-Identifier: Apache-2.0

// Collectives of traces: the k-th that a member begins in a group meets the k-th of the others. Each is played on the network of all, for each
// member from the time at which it begins.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "rheo/simulate/chakra/detail/rank_symmetry.hpp"
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

    /// @param ranks of members, @param played member -> the one that is played for it
    group_wire(network& carrier, std::vector<std::int32_t> const& ranks, std::vector<std::int32_t> const& played, std::uint32_t meeting)
        : network_{&carrier}, ranks_{&ranks}, played_{&played}, meeting_{meeting}
    {
    }

    typename Model::time now() const { return network_->now(); }
    void alarm(typename Model::time at, collective_note const& note) { network_->alarm(at, {play_event::collective, meeting_, 0, note}); }
    void send(rank_id from, rank_id to, bytes size, collective_note note)
    {
        note.rank = {(*played_)[static_cast<std::size_t>(note.rank.value)]};
        network_->send(rank_of(from), rank_of(to), size, network_->now(), {play_event::collective, meeting_, 0, note});
    }

private:
    rank_id rank_of(rank_id member) const { return {(*ranks_)[static_cast<std::size_t>(member.value)]}; }

    network* network_;
    std::vector<std::int32_t> const* ranks_;
    std::vector<std::int32_t> const* played_;
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
        std::size_t missing;                                              ///< members that are played and have not begun
        std::size_t under_way;                                            ///< and those that are not through
        std::unique_ptr<collective_play<Model, group_wire<Model>>> play;  ///< none: one member alone, or all are through
    };

    meetings(chakra_trace_set const& traces, array_view<level const> levels, chakra_play_rules<Model> const& rules, rank_symmetry const& symmetry)
        : traces_{&traces}, levels_{levels}, rules_{&rules}, symmetry_{&symmetry}
    {
        for (std::size_t g = 0; g < traces.groups.size(); ++g) {
            auto& state = groups_.emplace_back();
            auto const& ranks = taking_part(traces, g);
            state.first_pair = leaders_.size();
            state.begun.resize(ranks.size());
            for (std::size_t m = 0; m < ranks.size(); ++m) {
                state.numbers.emplace_back(ranks[m], static_cast<std::int32_t>(m));
                leaders_.push_back(leaders_.size());
            }
            std::sort(state.numbers.begin(), state.numbers.end());
        }
        join_equal_pairs();
        for (auto& state : groups_) {
            for (std::size_t m = 0; m < state.begun.size(); ++m) {
                auto const leader = leader_of(state.first_pair + m);
                bool const is_own = leader >= state.first_pair;  // else the group itself is played as another one
                state.played.push_back(static_cast<std::int32_t>(is_own ? leader - state.first_pair : m));
                state.missing += leader == state.first_pair + m ? 1 : 0;
            }
        }
    }

    meeting& operator[](std::uint32_t number) { return meetings_[number]; }
    std::int32_t rank_of(meeting const& at, rank_id member) const
    {
        return symmetry_->representative(taking_part(*traces_, at.group)[static_cast<std::size_t>(member.value)]);
    }

    /// A member begins a collective. @returns the meeting, and the member's number in it
    std::pair<std::uint32_t, rank_id> join(network& carrier, std::uint32_t rank, std::uint32_t step)
    {
        auto const& s = traces_->ranks[rank].steps[step];
        auto const [g, member] = played_pair(s.group, rank);
        auto& state = groups_[g];
        auto const k = state.begun[static_cast<std::size_t>(member.value)]++;
        if (k == state.meetings.size()) {
            state.meetings.push_back(open(carrier, g, s));
        }
        auto const number = state.meetings[k];
        auto& m = meetings_[number];
        m.members[static_cast<std::size_t>(member.value)].step = step;
        --m.missing;
        return {number, member};
    }

    /// A member that has not come to the meeting in which this one is. @pre the rank has begun that step, a collective, and it does not end
    std::size_t absent(std::uint32_t rank, std::uint32_t step) const
    {
        auto const [g, member] = played_pair(traces_->ranks[rank].steps[step].group, rank);
        for (auto const number : groups_[g].meetings) {
            auto const& m = meetings_[number];
            for (std::size_t other = 0; m.members[static_cast<std::size_t>(member.value)].step == step && other < m.members.size(); ++other) {
                if (m.members[other].step == UINT32_MAX) {
                    return static_cast<std::size_t>(taking_part(*traces_, g)[other]);
                }
            }
        }
        return rank;
    }

    /// A collective to which all have come and that does not end; its number.
    std::optional<std::uint32_t> stuck() const
    {
        auto const found = std::find_if(meetings_.begin(), meetings_.end(), [](meeting const& m) { return m.missing == 0 && m.under_way > 0; });
        return found == meetings_.end() ? std::nullopt : std::optional{static_cast<std::uint32_t>(found - meetings_.begin())};
    }

private:
    struct group_state {
        std::size_t first_pair = 0;                                  ///< of a group and a member
        std::vector<std::pair<std::int32_t, std::int32_t>> numbers;  ///< rank, member; by rank
        std::vector<std::int32_t> played;                            ///< member -> the one that is played for it
        std::size_t missing = 0;                                     ///< how many are played
        std::vector<std::size_t> begun;                              ///< member -> how many collectives it has begun
        std::vector<std::uint32_t> meetings;
    };

    /// Pairs of a group and a member that are alike are played as the first of them.
    void join_equal_pairs()
    {
        for (std::size_t k = 0; k < symmetry_->members.size(); ++k) {
            for (std::size_t g = 0; g < groups_.size() && symmetry_->periods[k] < symmetry_->members[k]; ++g) {
                auto const to = symmetry_->group_images[k][g];
                for (std::size_t m = 0; to != SIZE_MAX && m < groups_[g].begun.size(); ++m) {
                    auto const rank = symmetry_->moved_on(taking_part(*traces_, g)[m], k);
                    auto const a = leader_of(groups_[g].first_pair + m);
                    auto const b = leader_of(groups_[to].first_pair + static_cast<std::size_t>(number_of(to, rank).value));
                    leaders_[std::max(a, b)] = std::min(a, b);
                }
            }
        }
    }

    std::size_t leader_of(std::size_t pair) const
    {
        while (leaders_[pair] != pair) {
            pair = leaders_[pair];
        }
        return pair;
    }

    /// The group and the member as which a rank takes part in a group.
    std::pair<std::size_t, rank_id> played_pair(std::uint64_t name, std::uint32_t rank) const
    {
        auto const named = static_cast<std::size_t>(find_group(traces_->groups, name) - traces_->groups.data());
        auto const own = groups_[named].first_pair + static_cast<std::size_t>(number_of(named, static_cast<std::int32_t>(rank)).value);
        auto const leader = leader_of(own);
        auto const after = std::upper_bound(groups_.begin(), groups_.end(), leader, [](std::size_t pair, group_state const& g) { return pair < g.first_pair; });
        auto const group = static_cast<std::size_t>(after - groups_.begin()) - 1;
        return {group, rank_id{static_cast<std::int32_t>(leader - groups_[group].first_pair)}};
    }

    rank_id number_of(std::size_t g, std::int32_t rank) const
    {
        auto const& numbers = groups_[g].numbers;
        return {std::lower_bound(numbers.begin(), numbers.end(), std::pair{rank, std::int32_t{0}})->second};
    }

    std::uint32_t open(network& carrier, std::size_t g, chakra_step const& s)
    {
        auto const number = static_cast<std::uint32_t>(meetings_.size());
        auto const& ranks = taking_part(*traces_, g);
        auto const& state = groups_[g];
        meeting made{g, s.collective, s.bytes, std::vector<meeting_member>(ranks.size()), state.missing, state.missing, nullptr};
        for (std::size_t m = 0; m < ranks.size(); ++m) {
            made.members[m].is_through = static_cast<std::size_t>(state.played[m]) != m;
        }
        if (ranks.size() > 1) {
            made.play = std::make_unique<collective_play<Model, group_wire<Model>>>(group_wire<Model>{carrier, ranks, state.played, number}, parts_of(g, s));
        }
        meetings_.push_back(std::move(made));
        return number;
    }

    collective_parts<Model> parts_of(std::size_t g, chakra_step const& s) const
    {
        auto const& taking = taking_part(*traces_, g);
        bool const all = taking.size() == traces_->ranks.size();
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
        parts.members = static_cast<int>(taking.size());
        parts.chunks = static_cast<std::int32_t>(chunks.count);
        bool const by_level = goes_by_level(*traces_, s, taking.size(), levels_, *rules_);
        parts.phases = by_level ? phases_of(operation, collective_scope::by_level, chunks.each, levels_)
                                : std::vector<collective_phase>{{operation, 0, 1, parts.members, chunks.each}};
        for (std::size_t p = 0; p < parts.phases.size() && !rules_->of_consumers; ++p) {
            parts.phases[p].queue = static_cast<int>(p);  // else chunks on their way out and back could wait for each other where members begin apart
        }
        return parts;
    }

    chakra_trace_set const* traces_;
    array_view<level const> levels_;
    chakra_play_rules<Model> const* rules_;
    rank_symmetry const* symmetry_;
    std::vector<group_state> groups_;
    std::vector<std::size_t> leaders_;  ///< pair -> one before it that is like it; the first of them: itself
    std::vector<meeting> meetings_;
};

}  // namespace detail
}  // namespace rheo::inline v0
