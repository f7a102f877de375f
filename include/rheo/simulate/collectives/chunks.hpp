#pragma once
// SPDX-License-Identifier: Apache-2.0

// How the buffer of a collective is cut into chunks, and through which phases a chunk goes. As ASTRA-sim cuts and orders them.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "rheo/simulate/collectives/collective.hpp"
#include "rheo/simulate/network/network_level.hpp"
#include "rheo/units/array_view.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

struct chunk_sizes {
    std::int64_t count;
    bytes each;

    friend constexpr bool operator==(chunk_sizes, chunk_sizes) = default;
};

/// Equal chunks, as many as are needed with the size rounded down. None is smaller than a byte per rank; that of an all_gather or gather may be.
/// @pre size >= 0, chunks >= 1, ranks >= 1
constexpr chunk_sizes cut_into_chunks(collective operation, bytes size, int chunks, int ranks)
{
    auto const each = size.count / chunks;
    bool const is_part = operation == collective::all_gather || operation == collective::gather;
    if (!is_part && each < ranks) {
        return {chunks, {ranks}};
    }
    return {each == 0 ? chunks : (size.count + each - 1) / each, {each}};
}

/// One part of a chunk's way: a collective among the ranks that differ only in their place in one level, or among all.
struct collective_phase {
    collective operation;
    int queue;    ///< chunks of a level wait in one queue; 0 for all ranks
    int stride;   ///< between the ranks of a group
    int members;  ///< of a group
    bytes size;   ///< of the chunk when it begins

    friend constexpr bool operator==(collective_phase const&, collective_phase const&) = default;
};

/// The phases of a chunk. Levels of one member have none. @pre network_fault(levels) is empty
template <class Link>
std::vector<collective_phase> phases_of(collective operation, collective_scope scope, bytes chunk, array_view<network_level<Link> const> levels)
{
    if (scope == collective_scope::all_ranks) {
        return {{operation, 0, 1, ranks_of(levels), chunk}};
    }
    std::vector<collective_phase> inward;  // what, from the inside out
    int stride = 1;
    for (std::size_t k = 0; k < levels.size(); ++k) {
        if (levels[k].members > 1) {
            inward.push_back({operation, static_cast<int>(k), stride, levels[k].members, chunk});
        }
        stride *= levels[k].members;
    }
    if (operation == collective::all_gather || operation == collective::broadcast) {
        std::reverse(inward.begin(), inward.end());
    }
    std::vector<collective_phase> phases;
    auto const add = [&](collective_phase phase, collective as) {
        phase.operation = as;
        phase.size = chunk;
        phases.push_back(phase);
        if (as == collective::reduce_scatter) {
            chunk.count /= phase.members;
        } else if (as == collective::all_gather) {
            chunk.count *= phase.members;
        }
    };
    if (operation != collective::all_reduce || inward.size() < 2) {
        for (auto const& phase : inward) {
            add(phase, operation);
        }
        return phases;
    }
    for (std::size_t k = 0; k + 1 < inward.size(); ++k) {
        add(inward[k], collective::reduce_scatter);
    }
    add(inward.back(), collective::all_reduce);
    for (auto k = inward.size() - 1; k-- > 0;) {
        add(inward[k], collective::all_gather);
    }
    return phases;
}

}  // namespace rheo::inline v0
