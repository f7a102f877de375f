#pragma once
// SPDX-License-Identifier: Apache-2.0

// Where stages live: the placements that schedules choose from, as lists stage -> rank.

#include <vector>

#include "rheo/units/expects.hpp"

namespace rheo::inline v0 {

/// Chunk after chunk in the same order: stage s lives on rank s % ranks. @pre ranks >= 1, chunks >= 1
template <class OnlyWhenCalled = void>
constexpr std::vector<int> loop_placement(int ranks, int chunks)
{
    expects(ranks >= 1 && chunks >= 1, "a placement needs a rank and a chunk");
    std::vector<int> placement;
    for (int s = 0; s < ranks * chunks; ++s) {
        placement.push_back(s % ranks);
    }
    return placement;
}

/// Every other chunk in reverse, so that neighbouring chunks meet on one rank: 0 1 2 2 1 0 0 1 2. @pre as loop_placement
template <class OnlyWhenCalled = void>
constexpr std::vector<int> v_placement(int ranks, int chunks)
{
    auto placement = loop_placement(ranks, chunks);
    for (int s = 0; s < ranks * chunks; ++s) {
        if (s / ranks % 2 == 1) {
            placement[static_cast<std::size_t>(s)] = ranks - 1 - s % ranks;
        }
    }
    return placement;
}

/// The placement followed by a second copy of the model that runs the other way. @pre ranks >= 1
template <class OnlyWhenCalled = void>
constexpr std::vector<int> both_directions(std::vector<int> placement, int ranks)
{
    auto const stages = placement.size();
    for (decltype(placement.size()) s = 0; s < stages; ++s) {
        placement.push_back(ranks - 1 - placement[s]);
    }
    return placement;
}

}  // namespace rheo::inline v0
