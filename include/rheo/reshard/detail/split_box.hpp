#pragma once
// SPDX-License-Identifier: Apache-2.0

// Cuts a box along the edges of others until each piece lies in or out of every one of them. The cuts are chosen one by one, only where
// an edge passes through what is left, and where the fewest of the others are cut themselves: n dimensions do not multiply the edges
// as a grid of all of them would.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "rheo/tensor/nd_box.hpp"
#include "rheo/units/array_view.hpp"

namespace rheo::inline v0::detail {

/// Where to cut a region.
struct chosen_cut {
    int dimension = -1;
    std::int64_t at = 0;
    std::size_t through = 0;    ///< others that the cut goes through
    std::size_t imbalance = 0;  ///< by how many more others lie on one side
};

constexpr void take_better(chosen_cut& best, chosen_cut cut)
{
    if (best.dimension < 0 || cut.through < best.through || (cut.through == best.through && cut.imbalance < best.imbalance)) {
        best = cut;
    }
}

inline constexpr std::size_t few_boxes = 12;  ///< up to here it is quicker to count without sorting

/// @pre at least one of the others has an edge inside the region
template <class OnlyWhenCalled = void>
constexpr chosen_cut choose_cut(nd_box const& region, array_view<nd_box const> boxes, std::vector<std::size_t> const& partial)
{
    chosen_cut best;
    if (partial.size() <= few_boxes) {
        for (int d = 0; d < region.dimensions; ++d) {
            for (auto const b : partial) {
                for (auto const x : {boxes[b][d].begin, boxes[b][d].end}) {
                    if (region[d].begin < x && x < region[d].end) {
                        std::size_t before = 0;
                        std::size_t behind = 0;
                        for (auto const other : partial) {
                            before += boxes[other][d].end <= x ? 1U : 0U;
                            behind += boxes[other][d].begin >= x ? 1U : 0U;
                        }
                        take_better(best, {d, x, partial.size() - before - behind, before > behind ? before - behind : behind - before});
                    }
                }
            }
        }
        return best;
    }
    std::vector<std::int64_t> begins;
    std::vector<std::int64_t> ends;
    for (int d = 0; d < region.dimensions; ++d) {
        begins.clear();
        ends.clear();
        for (auto const b : partial) {
            begins.push_back(boxes[b][d].begin);
            ends.push_back(boxes[b][d].end);
        }
        std::sort(begins.begin(), begins.end());
        std::sort(ends.begin(), ends.end());
        auto const consider = [&](std::int64_t x) {
            if (x <= region[d].begin || region[d].end <= x) {
                return;
            }
            auto const before = static_cast<std::size_t>(std::upper_bound(ends.begin(), ends.end(), x) - ends.begin());
            auto const begun = static_cast<std::size_t>(std::lower_bound(begins.begin(), begins.end(), x) - begins.begin());
            auto const behind = partial.size() - begun;
            take_better(best, {d, x, begun - before, before > behind ? before - behind : behind - before});
        };
        for (std::size_t i = 0; i < partial.size(); ++i) {
            if (i == 0 || begins[i] != begins[i - 1]) {
                consider(begins[i]);
            }
            if (i == 0 || ends[i] != ends[i - 1]) {
                consider(ends[i]);
            }
        }
    }
    return best;
}

/// Calls visit(piece, covering) for disjoint pieces that make up the region; `covering` lists the boxes that contain the piece, in no order.
/// @param candidates the boxes that may meet the region @param covering those that contain it already; left as it was
template <class Visit>
constexpr void split_box(nd_box const& region, array_view<nd_box const> boxes, std::vector<std::size_t> const& candidates, std::vector<std::size_t>& covering,
                         Visit const& visit)
{
    auto const known = covering.size();
    std::vector<std::size_t> partial;
    for (auto const b : candidates) {
        if (contains(boxes[b], region)) {
            covering.push_back(b);
        } else if (intersects(boxes[b], region)) {
            partial.push_back(b);
        }
    }
    if (partial.empty()) {
        visit(region, covering);
    } else {
        auto const cut = choose_cut(region, boxes, partial);
        auto side = region;
        side[cut.dimension].end = cut.at;
        split_box(side, boxes, partial, covering, visit);
        side[cut.dimension] = {cut.at, region[cut.dimension].end};
        split_box(side, boxes, partial, covering, visit);
    }
    covering.resize(known);
}

}  // namespace rheo::inline v0::detail
