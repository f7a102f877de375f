#pragma once
// SPDX-License-Identifier: Apache-2.0

// Whole nodes take the places of whole nodes: a transportation problem between kinds of nodes, whose costs are transportation problems
// between the ranks of two nodes.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "rheo/reshard/detail/reshard_problem.hpp"
#include "rheo/reshard/detail/taken_places.hpp"
#include "rheo/reshard/detail/transportation.hpp"
#include "rheo/reshard/reshard_fault.hpp"

namespace rheo::inline v0::detail {

/// The ranks of a node in classes.
struct node_kind {
    std::vector<std::size_t> classes;                ///< of its ranks, ascending
    std::vector<std::vector<ranked_class>> nodes{};  ///< each in the same order of classes

    friend constexpr bool operator==(node_kind const&, node_kind const&) = default;
};

/// Nodes by what their ranks hold or want.
template <class OnlyWhenCalled = void>
constexpr std::vector<node_kind> node_kinds(std::vector<ranked_class> const& ranks, std::vector<node_id> const& node_of)
{
    std::vector<std::vector<ranked_class>> nodes;
    for (auto const& one : ranks) {
        auto const node = at(node_of[at(one.rank)]);
        if (node >= nodes.size()) {
            nodes.resize(node + 1);
        }
        nodes[node].push_back(one);
    }
    std::vector<node_kind> kinds;
    for (auto& node : nodes) {
        std::sort(node.begin(), node.end(), [](ranked_class const& a, ranked_class const& b) { return a.of != b.of ? a.of < b.of : a.rank < b.rank; });
        std::vector<std::size_t> classes;
        for (auto const& one : node) {
            classes.push_back(one.of);
        }
        auto const same = std::find_if(kinds.begin(), kinds.end(), [&](node_kind const& kind) { return kind.classes == classes; });
        if (same != kinds.end()) {
            same->nodes.push_back(node);
        } else if (!classes.empty()) {
            kinds.push_back({classes, {node}});
        }
    }
    return kinds;
}

/// Members of one node by class, in the order of the classes.
template <class OnlyWhenCalled = void>
constexpr std::vector<std::vector<ranked_class>> classes_in(std::vector<ranked_class> const& node)
{
    std::vector<std::vector<ranked_class>> groups;
    for (auto const& one : node) {
        if (groups.empty() || groups.back().front().of != one.of) {
            groups.emplace_back();
        }
        groups.back().push_back(one);
    }
    for (auto& group : groups) {
        std::sort(group.begin(), group.end());
    }
    return groups;
}

/// The places of one node taken by ranks of another. @param cost of (wanted class, held class), row-major
template <class OnlyWhenCalled = void>
constexpr transportation between_nodes(std::vector<std::vector<ranked_class>> const& places, std::vector<std::vector<ranked_class>> const& ranks,
                                       std::vector<std::int64_t> const& cost, std::size_t held_classes)
{
    transportation problem;
    for (auto const& group : places) {
        problem.places.push_back(static_cast<std::int64_t>(group.size()));
    }
    for (auto const& group : ranks) {
        problem.ranks.push_back(static_cast<std::int64_t>(group.size()));
    }
    for (auto const& group : places) {
        for (auto const& other : ranks) {
            problem.cost.push_back(cost[group.front().of * held_classes + other.front().of]);
        }
    }
    return problem;
}

template <class OnlyWhenCalled = void>
constexpr chosen_ranks whole_nodes(reshard_problem const& problem, std::vector<node_id> const& node_of)
{
    missing_bytes<OnlyWhenCalled> bytes_of{problem};
    std::vector<std::int64_t> cost;
    std::int64_t all = 0;
    for (std::size_t w = 0; w < problem.wanted.size(); ++w) {
        auto const needed = bytes_of.needed(w);
        all += needed * static_cast<std::int64_t>(problem.wanted[w].ranks.size());
        cost.resize(cost.size() + problem.held.size(), needed);
        for (auto const& one : bytes_of.shared(w)) {
            cost[w * problem.held.size() + one.of] -= one.bytes;
        }
    }
    auto const targets = node_kinds(by_rank(problem.wanted), node_of);
    auto const sources = node_kinds(by_rank(problem.held), node_of);
    transportation outer;
    std::int64_t places = 0;
    for (auto const& kind : targets) {
        outer.places.push_back(static_cast<std::int64_t>(kind.nodes.size()));
        places += outer.places.back();
    }
    std::int64_t nodes = 0;
    for (auto const& kind : sources) {
        outer.ranks.push_back(static_cast<std::int64_t>(kind.nodes.size()));
        nodes += outer.ranks.back();
    }
    chosen_ranks chosen;
    if (nodes < places) {
        chosen.fault = {.error = reshard_error::few_nodes, .number = places, .limit = nodes};
        return chosen;
    }
    if (auto const most = (std::int64_t{1} << 62) / (places + 1); all >= most) {
        chosen.fault = {.error = reshard_error::large_nodes, .number = all, .limit = most};
        return chosen;
    }
    auto const impossible = all + 1;
    for (auto const& target : targets) {
        for (auto const& source : sources) {
            outer.cost.push_back(
                source.classes.size() < target.classes.size()
                    ? impossible
                    : cheapest_transportation(between_nodes(classes_in(target.nodes.front()), classes_in(source.nodes.front()), cost, problem.held.size()))
                          .cost);
        }
    }
    auto const answer = cheapest_transportation(outer);
    chosen.least_needed = dual_value(outer, answer);
    std::vector<std::size_t> used(sources.size(), 0);
    for (std::size_t t = 0; t < targets.size(); ++t) {
        std::size_t next = 0;
        for (std::size_t s = 0; s < sources.size(); ++s) {
            for (auto count = answer.taken[t * sources.size() + s]; count > 0; --count) {
                if (sources[s].classes.size() < targets[t].classes.size()) {
                    chosen.fault = {.error = reshard_error::uneven_nodes,
                                    .number = static_cast<std::int64_t>(targets[t].classes.size()),
                                    .limit = static_cast<std::int64_t>(sources[s].classes.size())};
                    return chosen;
                }
                auto const target = classes_in(targets[t].nodes[next++]);
                auto const source = classes_in(sources[s].nodes[used[s]++]);
                auto const inner = cheapest_transportation(between_nodes(target, source, cost, problem.held.size()));
                std::vector<taken_amount> amounts;
                for (std::size_t i = 0; i < inner.taken.size(); ++i) {
                    if (inner.taken[i] > 0) {
                        amounts.push_back({i / source.size(), i % source.size(), inner.taken[i]});
                    }
                }
                place_dealer<>{target, source, chosen.taken}.deal(amounts);
            }
        }
    }
    return chosen;
}

}  // namespace rheo::inline v0::detail
