#pragma once
// SPDX-License-Identifier: Apache-2.0

// Pairs of holders that send to each other in an exchange of all with all: each pair by itself, or, for each level of the network, what a rank sends to all
// holders from which it differs there as one message to one of them. So links carry the bytes of all messages, and a few stand for the square of the holders.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "rheo/simulate/network/network_level.hpp"
#include "rheo/topology/tagged_index.hpp"
#include "rheo/units/array_view.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

namespace detail {

/// From holder to holder, by their numbers.
struct exchange_pair {
    rank_id from;
    rank_id to;
    int others;  ///< holders that the message is for
};

/// How many messages an exchange has.
enum class message_count : unsigned char {
    each,    ///< one for each pair
    joined,  ///< of a sender, one for each level
};

/// @param ranks of the holders, distinct
template <class OnlyWhenCalled = void>
std::vector<exchange_pair> all_pairs_of(std::vector<rank_id> const& ranks)
{
    std::vector<exchange_pair> pairs;
    for (rank_id from{0}; at(from) < ranks.size(); ++from) {
        for (std::size_t k = 1; k < ranks.size(); ++k) {
            pairs.push_back({from, rank_id{static_cast<std::int32_t>((at(from) + k) % ranks.size())}, 1});
        }
    }
    return pairs;
}

/// @param ranks of the holders, distinct
template <class Level>
std::vector<exchange_pair> joined_pairs_of(array_view<Level const> levels, std::vector<rank_id> const& ranks)
{
    std::vector<std::int32_t> order(ranks.size());
    for (std::size_t m = 0; m < order.size(); ++m) {
        order[m] = static_cast<std::int32_t>(m);
    }
    std::sort(order.begin(), order.end(), [&](auto a, auto b) { return ranks[static_cast<std::size_t>(a)] < ranks[static_cast<std::size_t>(b)]; });
    auto const rank_at = [&](std::size_t place) { return ranks[static_cast<std::size_t>(order[place])].value; };
    std::vector<exchange_pair> pairs;
    std::int32_t stride = 1;
    for (auto const& level : levels) {
        auto const outer = stride * level.members;
        for (std::size_t first = 0; first < order.size();) {  // of a group at the level
            auto last = first;
            while (last < order.size() && rank_at(last) / outer == rank_at(first) / outer) {
                ++last;
            }
            for (auto begin = first; begin < last;) {  // of a member of the group
                auto end = begin;
                while (end < last && rank_at(end) / stride == rank_at(begin) / stride) {
                    ++end;
                }
                auto const others = static_cast<int>(last - first - (end - begin));
                for (auto place = begin; place < end && others > 0; ++place) {
                    auto const there = end + (place - begin) % static_cast<std::size_t>(others);  // spread over what is behind the member, then around
                    auto const to = first + (there - first) % (last - first);
                    pairs.push_back({rank_id{order[place]}, rank_id{order[to]}, others});
                }
                begin = end;
            }
            first = last;
        }
        stride = outer;
    }
    return pairs;
}

/// Each sender's together.
template <class OnlyWhenCalled = void>
std::vector<exchange_pair> sender_order(std::vector<exchange_pair> pairs)
{
    std::stable_sort(pairs.begin(), pairs.end(), [](auto const& a, auto const& b) { return a.from < b.from; });
    return pairs;
}

template <class Level>
std::vector<exchange_pair> pairs_of(array_view<Level const> levels, std::vector<rank_id> const& ranks, message_count count)
{
    return count == message_count::each ? all_pairs_of(ranks) : joined_pairs_of(levels, ranks);
}

struct exchange_message {
    rank_id from;  ///< numbers of holders
    rank_id to;
    bytes size;
};

/// Messages that holders send before they go on to the next round.
struct exchange_round {
    std::vector<exchange_message> messages;  ///< by sender
    /// Those that go on together: a holder is through with the round when all of its group have begun it, and its messages have come. None: it looks at
    /// its messages alone.
    std::vector<std::vector<rank_id>> groups;
};

/// One message for each pair, by sender.
template <class OnlyWhenCalled = void>
std::vector<exchange_message> in_order_of_senders(std::vector<exchange_message> messages)
{
    std::stable_sort(messages.begin(), messages.end(), [](auto const& a, auto const& b) { return std::pair{a.from, a.to} < std::pair{b.from, b.to}; });
    std::size_t kept = 0;
    for (std::size_t k = 0; k < messages.size(); ++k) {
        if (kept > 0 && messages[kept - 1].from == messages[k].from && messages[kept - 1].to == messages[k].to) {
            messages[kept - 1].size += messages[k].size;
        } else {
            messages[kept++] = messages[k];
        }
    }
    messages.resize(kept);
    return messages;
}

}  // namespace detail
}  // namespace rheo::inline v0
