#pragma once
// SPDX-License-Identifier: Apache-2.0

// The rounds of a reduction: straight to the owner of each slice and back, or first among the holders of each node.
//
// Node first, holder i of the k in a node owns the i-th k-th of the unit there. It gets that part from the others of its node, and the parts of all nodes are
// summed by slices between nodes: where nodes have different numbers of holders, each stretch of the unit that no node cuts is a slice for itself, whose
// n-th part the n-th node sums. Sums come back as values, between nodes and then in them. Between nodes a unit goes once for each node, not for each holder:
// the order of sums is free because they are of integers.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "rheo/simulate/collectives/message_order.hpp"
#include "rheo/simulate/network/network_level.hpp"
#include "rheo/simulate/played_step/detail/exchange_messages.hpp"
#include "rheo/topology/tagged_index.hpp"
#include "rheo/units/array_view.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

namespace detail {

/// What is reduced.
struct reduced_unit {
    std::int64_t elements;
    int sum_bytes;    ///< of an element on the way to its owner
    int value_bytes;  ///< and back
};

/// Two rounds: integers to owners, values back. @param pairs of all holders, by sender
template <class OnlyWhenCalled = void>
std::vector<exchange_round> owner_rounds(std::vector<exchange_pair> const& pairs, std::size_t holders, reduced_unit unit)
{
    std::vector<exchange_round> rounds;
    for (auto const element : {unit.sum_bytes, unit.value_bytes}) {
        auto const slice = unit.elements * element / static_cast<std::int64_t>(holders);
        exchange_round round{{}, {std::vector<rank_id>(holders)}};
        for (rank_id m{0}; at(m) < holders; ++m) {
            round.groups[0][at(m)] = m;
        }
        round.messages.reserve(pairs.size());
        for (auto const& p : pairs) {
            round.messages.push_back({p.from, p.to, {slice * p.others}});
        }
        rounds.push_back(std::move(round));
    }
    return rounds;
}

/// The holders of each node, by the order of nodes. @param node_size ranks of a node
template <class OnlyWhenCalled = void>
std::vector<std::vector<rank_id>> holders_by_node(std::vector<rank_id> const& ranks, std::int32_t node_size)
{
    std::map<std::int32_t, std::vector<rank_id>> nodes;
    for (rank_id m{0}; at(m) < ranks.size(); ++m) {
        nodes[ranks[at(m)].value / node_size].push_back(m);
    }
    std::vector<std::vector<rank_id>> holders;
    for (auto& [node, of_node] : nodes) {
        std::sort(of_node.begin(), of_node.end(), [&](rank_id a, rank_id b) { return ranks[at(a)] < ranks[at(b)]; });
        holders.push_back(std::move(of_node));
    }
    return holders;
}

/// Each of the holders gets its part of the elements as sums, and sends it to all others as values.
template <class Level>
void add_exchange(exchange_round& sums, exchange_round& values, array_view<Level const> levels, std::vector<rank_id> const& ranks,
                  std::vector<rank_id> const& holders, std::int64_t elements, reduced_unit unit, message_count count)
{
    std::vector<rank_id> places;
    for (auto const holder : holders) {
        places.push_back(ranks[at(holder)]);
    }
    auto const members = static_cast<int>(holders.size());
    for (auto const& p : pairs_of(levels, places, count)) {
        auto const to_owner =
            count == message_count::each ? owned_slice(elements, members, p.to.value, unit.sum_bytes) : bytes{elements / members * p.others * unit.sum_bytes};
        auto const own = owned_slice(elements, members, p.from.value, unit.value_bytes);
        sums.messages.push_back({holders[at(p.from)], holders[at(p.to)], to_owner});
        values.messages.push_back({holders[at(p.from)], holders[at(p.to)], {own.count * p.others}});
    }
}

/// Four rounds: sums in nodes and between nodes, values between nodes and in nodes. @param levels the first of them is the node
template <class Level>
std::vector<exchange_round> node_first_rounds(array_view<Level const> levels, std::vector<rank_id> const& ranks, reduced_unit unit, message_count count)
{
    auto const nodes = holders_by_node(ranks, levels[0].members);
    std::vector<exchange_round> rounds(4);
    std::vector<std::int64_t> cuts{0, unit.elements};
    for (auto const& holders : nodes) {
        add_exchange(rounds[0], rounds[3], levels, ranks, holders, unit.elements, unit, count);
        for (std::size_t i = 0; i < holders.size(); ++i) {
            cuts.push_back(slice_begin(unit.elements, static_cast<int>(holders.size()), static_cast<int>(i)));
        }
    }
    std::sort(cuts.begin(), cuts.end());
    cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
    if (unit.elements == 0) {
        cuts.push_back(0);  // nodes wait for each other all the same
    }
    for (std::size_t c = 0; c + 1 < cuts.size(); ++c) {
        std::vector<rank_id> owners;  // of the stretch in each node
        for (auto const& holders : nodes) {
            auto const members = static_cast<int>(holders.size());
            int owner = 0;
            while (owner + 1 < members && slice_begin(unit.elements, members, owner + 1) <= cuts[c]) {
                ++owner;
            }
            owners.push_back(holders[static_cast<std::size_t>(owner)]);
        }
        add_exchange(rounds[1], rounds[2], levels, ranks, owners, cuts[c + 1] - cuts[c], unit, count);
    }
    std::vector<rank_id> all;
    for (auto const& holders : nodes) {
        all.insert(all.end(), holders.begin(), holders.end());
    }
    for (std::size_t r = 0; r < rounds.size(); ++r) {
        rounds[r].messages = in_order_of_senders(std::move(rounds[r].messages));
        if (count == message_count::joined) {
            rounds[r].groups = r == 0 || r == 3 ? nodes : std::vector<std::vector<rank_id>>{all};
        }
    }
    return rounds;
}

}  // namespace detail
}  // namespace rheo::inline v0
