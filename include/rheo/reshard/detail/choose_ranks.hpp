#pragma once
// SPDX-License-Identifier: Apache-2.0

// Which ranks take the places of the target layout, so that the fewest bytes are missing: any rank, or whole nodes. Exact, as
// assignments and transportation problems between classes; COSTA (Kabic et al., ISC 2021) solves the same by disjoint exchanges of two ranks,
// which leaves two thirds of the bytes on a cyclic shift of three ranks, where nothing has to move.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "rheo/reshard/detail/choose_nodes.hpp"
#include "rheo/reshard/detail/heaviest_assignment.hpp"
#include "rheo/reshard/detail/missing_pieces.hpp"
#include "rheo/reshard/detail/reshard_problem.hpp"
#include "rheo/reshard/detail/taken_places.hpp"
#include "rheo/reshard/reshard_fault.hpp"
#include "rheo/reshard/reshard_plan.hpp"

namespace rheo::inline v0::detail {

/// Only classes that have something in common with a place are looked at: any others take what is left.
template <class OnlyWhenCalled = void>
constexpr chosen_ranks any_ranks(reshard_problem const& problem)
{
    heaviest_problem between;
    missing_bytes<OnlyWhenCalled> bytes_of{problem};
    for (auto const& one : problem.held) {
        between.ranks.push_back(static_cast<std::int64_t>(one.ranks.size()));
    }
    std::int64_t needed = 0;
    for (std::size_t w = 0; w < problem.wanted.size(); ++w) {
        between.places.push_back(static_cast<std::int64_t>(problem.wanted[w].ranks.size()));
        needed += bytes_of.needed(w) * between.places.back();
        for (auto const& one : bytes_of.shared(w)) {
            between.pairs.push_back({w, one.of, one.bytes});
        }
    }
    auto const answer = heaviest_assignment(between);
    std::vector<taken_amount> amounts;
    for (std::size_t p = 0; p < between.pairs.size(); ++p) {
        if (answer.taken[p] > 0) {
            amounts.push_back({between.pairs[p].row, between.pairs[p].column, answer.taken[p]});
        }
    }
    chosen_ranks chosen;
    place_dealer<>{members_of(problem.wanted), members_of(problem.held), chosen.taken}.deal(std::move(amounts));
    chosen.least_needed = needed - dual_value(between, answer);
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
            chosen.fault = {.error = reshard_error::dead_rank, .rank = place.rank};
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
