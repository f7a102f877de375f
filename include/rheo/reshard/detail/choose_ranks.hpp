#pragma once
// SPDX-License-Identifier: Apache-2.0

// Which ranks take the places of the target layout, so that the fewest bytes are missing: any rank, or whole nodes. Exact, as
// transportation problems between classes; COSTA (Kabic et al., ISC 2021) solves the same by disjoint exchanges of two ranks,
// which leaves two thirds of the bytes on a cyclic shift of three ranks, where nothing has to move.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "rheo/reshard/detail/missing_pieces.hpp"
#include "rheo/reshard/detail/reshard_problem.hpp"
#include "rheo/reshard/detail/transportation.hpp"
#include "rheo/reshard/reshard_fault.hpp"
#include "rheo/reshard/reshard_plan.hpp"

namespace rheo::inline v0::detail {

/// A rank and its class.
struct ranked_class {
    rank_id rank;
    std::size_t of;

    friend constexpr auto operator<=>(ranked_class, ranked_class) = default;
};

template <class OnlyWhenCalled = void>
constexpr std::vector<ranked_class> by_rank(std::vector<rank_class> const& classes)
{
    std::vector<ranked_class> all;
    for (std::size_t c = 0; c < classes.size(); ++c) {
        for (auto const rank : classes[c].ranks) {
            all.push_back({rank, c});
        }
    }
    std::sort(all.begin(), all.end());
    return all;
}

/// A place of the target layout, the rank that takes it, and their classes.
struct taken_class {
    ranked_class place;
    ranked_class rank;
};

struct chosen_ranks {
    std::vector<taken_class> taken{};  ///< ascending by place
    std::int64_t least_needed = -1;    ///< dual value of the assignment; -1: pinned
    reshard_fault fault{};
};

/// Bytes that a rank of one class misses in a place of another.
class missing_bytes {
public:
    constexpr explicit missing_bytes(reshard_problem const& problem) : problem_{problem} {}

    constexpr std::int64_t wanted(std::size_t wants) const
    {
        std::int64_t sum = 0;
        for (auto const ref : problem_.wanted[wants].boxes) {
            sum += elements(problem_.arrays[ref.array].wanted[ref.box]) * problem_.arrays[ref.array].unit;
        }
        return sum;
    }

    constexpr std::int64_t held(std::size_t holds) const
    {
        std::int64_t sum = 0;
        for (auto const ref : problem_.held[holds].boxes) {
            sum += elements(problem_.arrays[ref.array].held[ref.box]) * problem_.arrays[ref.array].unit;
        }
        return sum;
    }

    constexpr std::int64_t common(std::size_t wants, std::size_t holds) const
    {
        std::int64_t sum = 0;
        auto const& own = problem_.held[holds].boxes;
        std::size_t first = 0;
        for (auto const want : problem_.wanted[wants].boxes) {
            auto const& array = problem_.arrays[want.array];
            while (first < own.size() && own[first].array < want.array) {
                ++first;
            }
            for (auto i = first; i < own.size() && own[i].array == want.array; ++i) {
                if (intersects(array.wanted[want.box], array.held[own[i].box])) {
                    sum += elements(intersection(array.wanted[want.box], array.held[own[i].box])) * array.unit;
                }
            }
        }
        return sum;
    }

private:
    reshard_problem const& problem_;
};

/// Deals the ranks of each class to places of each class as the answer says; a rank stays at its own place where it can.
/// @param places by row, ascending; @param ranks by column, ascending
template <class OnlyWhenCalled = void>
constexpr void deal_places(transportation_answer const& answer, std::vector<std::vector<ranked_class>> places, std::vector<std::vector<ranked_class>> ranks,
                           std::vector<taken_class>& taken)
{
    auto left = answer.taken;
    for (int pass = 0; pass < 2; ++pass) {
        for (std::size_t r = 0; r < places.size(); ++r) {
            for (std::size_t c = 0; c < ranks.size(); ++c) {
                auto& amount = left[r * ranks.size() + c];
                std::vector<ranked_class> other_places;
                for (auto const& place : places[r]) {
                    auto const same = [&](ranked_class const& rank) { return rank.rank.value >= 0 && (pass == 1 || rank.rank == place.rank); };
                    auto const found = amount > 0 ? std::find_if(ranks[c].begin(), ranks[c].end(), same) : ranks[c].end();
                    if (found == ranks[c].end()) {
                        other_places.push_back(place);
                    } else {
                        taken.push_back({place, *found});
                        found->rank = rank_id{-1};
                        --amount;
                    }
                }
                if (other_places.size() != places[r].size()) {
                    places[r] = other_places;
                    ranks[c].erase(std::remove_if(ranks[c].begin(), ranks[c].end(), [](ranked_class const& one) { return one.rank.value < 0; }),
                                   ranks[c].end());
                }
            }
        }
    }
}

/// The places or ranks of each class.
template <class OnlyWhenCalled = void>
constexpr std::vector<std::vector<ranked_class>> members_of(std::vector<rank_class> const& classes)
{
    std::vector<std::vector<ranked_class>> members;
    for (std::size_t c = 0; c < classes.size(); ++c) {
        members.emplace_back();
        for (auto const rank : classes[c].ranks) {
            members.back().push_back({rank, c});
        }
    }
    return members;
}

template <class OnlyWhenCalled = void>
constexpr chosen_ranks any_ranks(reshard_problem const& problem)
{
    transportation between;
    missing_bytes const bytes_of{problem};
    for (auto const& one : problem.wanted) {
        between.places.push_back(static_cast<std::int64_t>(one.ranks.size()));
    }
    for (auto const& one : problem.held) {
        between.ranks.push_back(static_cast<std::int64_t>(one.ranks.size()));
    }
    for (std::size_t w = 0; w < problem.wanted.size(); ++w) {
        auto const all = bytes_of.wanted(w);
        for (std::size_t h = 0; h < problem.held.size(); ++h) {
            between.cost.push_back(all - bytes_of.common(w, h));
        }
    }
    auto const answer = cheapest_transportation(between);
    chosen_ranks chosen;
    deal_places(answer, members_of(problem.wanted), members_of(problem.held), chosen.taken);
    chosen.least_needed = dual_value(between, answer);
    return chosen;
}

/// The ranks of a node in classes.
struct node_kind {
    std::vector<std::size_t> classes;                     ///< of its ranks, ascending
    std::vector<std::vector<ranked_class>> nodes{};       ///< each in the same order of classes

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
    missing_bytes const bytes_of{problem};
    std::vector<std::int64_t> cost;
    std::int64_t all = 1;
    for (std::size_t w = 0; w < problem.wanted.size(); ++w) {
        auto const wanted = bytes_of.wanted(w);
        all += wanted * static_cast<std::int64_t>(problem.wanted[w].ranks.size());
        for (std::size_t h = 0; h < problem.held.size(); ++h) {
            cost.push_back(wanted - bytes_of.common(w, h));
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
        chosen.fault = {.what = reshard_error::few_nodes, .number = places, .limit = nodes};
        return chosen;
    }
    auto const impossible = std::min(all, (std::int64_t{1} << 62) / (places + 1));
    for (auto const& target : targets) {
        for (auto const& source : sources) {
            outer.cost.push_back(source.classes.size() < target.classes.size()
                                     ? impossible
                                     : cheapest_transportation(
                                           between_nodes(classes_in(target.nodes.front()), classes_in(source.nodes.front()), cost, problem.held.size()))
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
                    chosen.fault = {.what = reshard_error::uneven_nodes,
                                    .number = static_cast<std::int64_t>(targets[t].classes.size()),
                                    .limit = static_cast<std::int64_t>(sources[s].classes.size())};
                    return chosen;
                }
                auto const target = classes_in(targets[t].nodes[next++]);
                auto const source = classes_in(sources[s].nodes[used[s]++]);
                deal_places(cheapest_transportation(between_nodes(target, source, cost, problem.held.size())), target, source, chosen.taken);
            }
        }
    }
    return chosen;
}

template <class OnlyWhenCalled = void>
constexpr chosen_ranks pinned_ranks(reshard_problem const& problem)
{
    chosen_ranks chosen;
    auto const held = by_rank(problem.held);
    for (auto const& place : by_rank(problem.wanted)) {
        auto const found = std::lower_bound(held.begin(), held.end(), ranked_class{place.rank, 0});
        if (found == held.end() || found->rank != place.rank) {
            chosen.fault = {.what = reshard_error::dead_rank, .rank = place.rank};
            return chosen;
        }
        chosen.taken.push_back({place, *found});
    }
    return chosen;
}

/// @pre each rank of the request has a node where whole nodes are asked for
template <class OnlyWhenCalled = void>
constexpr chosen_ranks choose_ranks(reshard_problem const& problem, reshard_request const& request)
{
    chosen_ranks chosen;  // no conditional expression: g++ 12 frees a vector in one twice while it compiles
    if (request.ranks == rank_choice::pinned) {
        chosen = pinned_ranks(problem);
    } else if (request.ranks == rank_choice::any) {
        chosen = any_ranks(problem);
    } else {
        chosen = whole_nodes(problem, request.node_of);
    }
    std::sort(chosen.taken.begin(), chosen.taken.end(), [](taken_class const& a, taken_class const& b) { return a.place < b.place; });
    return chosen;
}

/// Places and ranks of equal classes together.
template <class OnlyWhenCalled = void>
constexpr std::vector<receiver_group> group_receivers(std::vector<taken_class> taken)
{
    std::sort(taken.begin(), taken.end(), [](taken_class const& a, taken_class const& b) {
        return a.place.of != b.place.of ? a.place.of < b.place.of : a.rank.of != b.rank.of ? a.rank.of < b.rank.of : a.rank.rank < b.rank.rank;
    });
    std::vector<receiver_group> groups;
    for (auto const& one : taken) {
        if (groups.empty() || groups.back().wants != one.place.of || groups.back().holds != one.rank.of) {
            groups.push_back({one.place.of, one.rank.of, {}});
        }
        groups.back().ranks.push_back(one.rank.rank);
    }
    return groups;
}

}  // namespace rheo::inline v0::detail
