#pragma once
// SPDX-License-Identifier: Apache-2.0

// One copy of state between two ranks, and rounds of them. Received state waits in a staging area until
// the recovery is agreed upon, and ranks have only so much room for it, so copies come in rounds: a
// round begins when the one before it has ended, and no rank receives more than the budget in one.

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "rheo/reshard/layout.hpp"
#include "rheo/topology/tagged_index.hpp"
#include "rheo/units/array_view.hpp"
#include "rheo/units/expects.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

struct copy {
    rank_id from;
    rank_id to;
    tensor_part part;
    bytes size;

    friend constexpr bool operator==(copy const&, copy const&) = default;
};

/// Puts the copies into as few rounds as first fit by falling size finds, no rank receiving more than the
/// budget in a round; a copy larger than the budget is the only one of its receiver in its round. Within a
/// round the copies keep the order given. Without a budget all are one round.
/// @pre the budget, if any, is positive. Cost: O(copies x (rounds + log copies)).
template <class OnlyWhenCalled = void>
constexpr std::vector<std::vector<copy>> in_rounds(array_view<copy const> copies, std::optional<bytes> budget)
{
    expects(!budget || budget->count > 0, "the memory budget of a round must be positive");
    std::vector<std::vector<copy>> rounds;
    if (!budget) {
        if (!copies.empty()) {
            rounds.emplace_back(copies.begin(), copies.end());
        }
        return rounds;
    }
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < copies.size(); ++i) {
        order.push_back(i);
    }
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return copies[a].to != copies[b].to ? copies[a].to < copies[b].to : copies[a].size != copies[b].size ? copies[a].size > copies[b].size : a < b;
    });
    std::vector<std::size_t> round_of(copies.size(), 0);
    std::vector<bytes> received;  // by the present receiver, per round
    std::size_t most = 0;
    for (std::size_t k = 0; k < order.size(); ++k) {
        auto const& next = copies[order[k]];
        if (k == 0 || copies[order[k - 1]].to != next.to) {
            received.clear();
        }
        std::size_t round = 0;
        while (round < received.size() && received[round] + next.size > *budget) {
            ++round;
        }
        if (round == received.size()) {
            received.push_back({});
        }
        received[round] += next.size;
        round_of[order[k]] = round;
        most = std::max(most, round + 1);
    }
    rounds.resize(most);
    for (std::size_t i = 0; i < copies.size(); ++i) {
        rounds[round_of[i]].push_back(copies[i]);
    }
    return rounds;
}

}  // namespace rheo::inline v0
