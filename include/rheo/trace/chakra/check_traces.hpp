#pragma once
// SPDX-License-Identifier: Apache-2.0

// What the traces of all ranks owe each other: every send has its receive with the same size and tag, and every group meets as a whole, its
// members with the same collectives in the same order.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "rheo/trace/chakra/node.hpp"
#include "rheo/trace/chakra/trace_set.hpp"

namespace rheo::inline v0 {

namespace detail {

/// One end of a message.
struct message_end {
    std::int32_t from;
    std::int32_t to;
    std::int32_t tag;
    std::int64_t bytes;
    std::uint32_t step;  // in the trace of its rank

    constexpr auto key() const { return std::tuple{from, to, tag, bytes}; }
};

template <class OnlyWhenCalled = void>
std::vector<message_end> message_ends(chakra_trace_set const& traces, chakra_node_type type)
{
    std::vector<message_end> all;
    for (std::size_t r = 0; r < traces.ranks.size(); ++r) {
        auto const rank = static_cast<std::int32_t>(r);
        auto const& steps = traces.ranks[r].steps;
        for (std::size_t i = 0; i < steps.size(); ++i) {
            auto const& s = steps[i];
            if (s.type == type) {
                bool const sends = type == chakra_node_type::comm_send;
                all.push_back({sends ? rank : s.peer, sends ? s.peer : rank, s.tag, s.bytes, static_cast<std::uint32_t>(i)});
            }
        }
    }
    std::stable_sort(all.begin(), all.end(), [](auto const& a, auto const& b) { return a.key() < b.key(); });
    return all;
}

template <class OnlyWhenCalled = void>
std::string without_partner(chakra_trace_set const& traces, message_end const& end, bool sends)
{
    auto const rank = static_cast<std::size_t>(sends ? end.from : end.to);
    return label_of(traces.ranks[rank].steps[end.step], rank) + (sends ? " has no receive" : " has no send") + " on rank " +
           std::to_string(sends ? end.to : end.from) + " with " + std::to_string(end.bytes) + " bytes and tag " + std::to_string(end.tag);
}

}  // namespace detail

/// Which message has only one end; empty: none.
template <class OnlyWhenCalled = void>
std::string check_messages(chakra_trace_set const& traces)
{
    auto const sends = detail::message_ends(traces, chakra_node_type::comm_send);
    auto const receives = detail::message_ends(traces, chakra_node_type::comm_recv);
    for (std::size_t i = 0; i < std::max(sends.size(), receives.size()); ++i) {
        if (i == receives.size() || (i < sends.size() && sends[i].key() < receives[i].key())) {
            return detail::without_partner(traces, sends[i], true);
        }
        if (i == sends.size() || receives[i].key() < sends[i].key()) {
            return detail::without_partner(traces, receives[i], false);
        }
    }
    return {};
}

/// Which group does not meet; empty: all do.
template <class OnlyWhenCalled = void>
std::string check_collectives(chakra_trace_set const& traces)
{
    std::vector<std::vector<std::vector<std::uint32_t>>> steps;  // group -> member -> its collectives
    for (auto const& group : traces.groups) {
        steps.emplace_back(group.ranks.size());
    }
    for (std::size_t r = 0; r < traces.ranks.size(); ++r) {
        for (std::size_t i = 0; i < traces.ranks[r].steps.size(); ++i) {
            auto const& s = traces.ranks[r].steps[i];
            if (s.type == chakra_node_type::comm_coll) {
                auto const* const group = find_group(traces.groups, s.group);
                auto const member = std::find(group->ranks.begin(), group->ranks.end(), static_cast<std::int32_t>(r)) - group->ranks.begin();
                steps[static_cast<std::size_t>(group - traces.groups.data())][static_cast<std::size_t>(member)].push_back(static_cast<std::uint32_t>(i));
            }
        }
    }
    for (std::size_t g = 0; g < steps.size(); ++g) {
        auto const& ranks = traces.groups[g].ranks;
        auto const name = g == 0 ? std::string{"all ranks"} : "group " + std::to_string(traces.groups[g].name);
        for (std::size_t m = 1; m < ranks.size(); ++m) {
            auto const first = static_cast<std::size_t>(ranks[0]);
            auto const other = static_cast<std::size_t>(ranks[m]);
            if (steps[g][m].size() != steps[g][0].size()) {
                return name + ": rank " + std::to_string(first) + " has " + std::to_string(steps[g][0].size()) + " collectives, rank " + std::to_string(other) +
                       " has " + std::to_string(steps[g][m].size()) + "; all members must take part in each";
            }
            for (std::size_t k = 0; k < steps[g][m].size(); ++k) {
                auto const& a = traces.ranks[first].steps[steps[g][0][k]];
                auto const& b = traces.ranks[other].steps[steps[g][m][k]];
                if (a.collective != b.collective || a.bytes != b.bytes) {
                    auto const described = [](chakra_step const& s) {
                        return std::string{name_of(s.collective)} + " of " + std::to_string(s.bytes) + " bytes";
                    };
                    return name + ": collective " + std::to_string(k + 1) + " is " + described(a) + " in " + label_of(a, first) + ", but " + described(b) +
                           " in " + label_of(b, other) + "; members must have the same collectives in one order";
                }
            }
        }
    }
    return {};
}

}  // namespace rheo::inline v0
