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

/// Where the i-th of `parts` equal parts begins.
constexpr std::int64_t part_begin(std::int64_t elements, std::size_t parts, std::size_t i)
{
    return elements * static_cast<std::int64_t>(i) / static_cast<std::int64_t>(parts);
}

/// Four rounds: sums in nodes and between nodes, values between nodes and in nodes. @param levels the first of them is the node
template <class Level>
std::vector<exchange_round> node_first_rounds(array_view<Level const> levels, std::vector<rank_id> const& ranks, reduced_unit unit, exchange_detail detail)
{
    auto const nodes = holders_by_node(ranks, levels[0].members);
    std::vector<exchange_round> rounds(4);
    std::vector<std::int64_t> cuts{0, unit.elements};
    for (auto const& holders : nodes) {
        std::vector<rank_id> places;
        for (std::size_t i = 0; i < holders.size(); ++i) {
            places.push_back(ranks[at(holders[i])]);
            cuts.push_back(part_begin(unit.elements, holders.size(), i));
        }
        for (auto const& p : pairs_of(levels, places, detail)) {
            auto const part_of = [&](rank_id i) {
                return part_begin(unit.elements, holders.size(), at(i) + 1) - part_begin(unit.elements, holders.size(), at(i));
            };
            auto const owned = detail == exchange_detail::each ? part_of(p.to) : unit.elements / static_cast<std::int64_t>(holders.size()) * p.others;
            auto const own = part_of(p.from);
            rounds[0].messages.push_back({holders[at(p.from)], holders[at(p.to)], {owned * unit.sum_bytes}});
            rounds[3].messages.push_back({holders[at(p.from)], holders[at(p.to)], {own * p.others * unit.value_bytes}});
        }
    }
    std::sort(cuts.begin(), cuts.end());
    cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
    if (unit.elements == 0) {
        cuts.push_back(0);  // nodes wait for each other all the same
    }
    for (std::size_t c = 0; c + 1 < cuts.size(); ++c) {
        auto const stretch = cuts[c + 1] - cuts[c];
        std::vector<rank_id> owners;  // of the stretch in each node
        std::vector<rank_id> places;
        for (auto const& holders : nodes) {
            std::size_t owner = 0;
            while (owner + 1 < holders.size() && part_begin(unit.elements, holders.size(), owner + 1) <= cuts[c]) {
                ++owner;
            }
            owners.push_back(holders[owner]);
            places.push_back(ranks[at(holders[owner])]);
        }
        auto const part_of = [&](rank_id n) { return part_begin(stretch, nodes.size(), at(n) + 1) - part_begin(stretch, nodes.size(), at(n)); };
        for (auto const& p : pairs_of(levels, places, detail)) {
            auto const summed = detail == exchange_detail::each ? part_of(p.to) : stretch / static_cast<std::int64_t>(nodes.size()) * p.others;
            rounds[1].messages.push_back({owners[at(p.from)], owners[at(p.to)], {summed * unit.sum_bytes}});
            rounds[2].messages.push_back({owners[at(p.from)], owners[at(p.to)], {part_of(p.from) * p.others * unit.value_bytes}});
        }
    }
    for (std::size_t r = 0; r < rounds.size(); ++r) {
        rounds[r].messages = in_order_of_senders(std::move(rounds[r].messages));
        bool const is_inside = r == 0 || r == 3;
        if (detail == exchange_detail::joined && is_inside) {
            rounds[r].groups = nodes;
        } else if (detail == exchange_detail::joined) {
            rounds[r].groups.emplace_back();
            for (auto const& holders : nodes) {
                rounds[r].groups.back().insert(rounds[r].groups.back().end(), holders.begin(), holders.end());
            }
        }
    }
    return rounds;
}

}  // namespace detail
}  // namespace rheo::inline v0
