#pragma once
// SPDX-License-Identifier: Apache-2.0

// Puts disjoint boxes together where two make up a box, one dimension after the other: what was cut along edges that turned out not to
// matter becomes one piece again.

#include <algorithm>
#include <cstddef>
#include <vector>

#include "rheo/tensor/nd_box.hpp"

namespace rheo::inline v0::detail {

/// A box with what has to be equal for two to be joined.
struct kept_apart_box {
    std::size_t kind;
    nd_box box;
};

/// @pre boxes of one kind are disjoint. Cost: O(dimensions x boxes x log boxes)
template <class OnlyWhenCalled = void>
constexpr void join_boxes(std::vector<kept_apart_box>& boxes)
{
    if (boxes.size() < 2) {
        return;
    }
    for (auto d = boxes.front().box.dimensions; d-- > 0;) {
        auto const without = [d](nd_box box) {
            box[d] = {};
            return box;
        };
        std::sort(boxes.begin(), boxes.end(), [&](kept_apart_box const& a, kept_apart_box const& b) {
            if (a.kind != b.kind) {
                return a.kind < b.kind;
            }
            for (int k = 0; k < a.box.dimensions; ++k) {
                if (k != d && a.box[k] != b.box[k]) {
                    return a.box[k] < b.box[k];
                }
            }
            return a.box[d].begin < b.box[d].begin;
        });
        std::size_t last = 0;
        for (std::size_t i = 1; i < boxes.size(); ++i) {
            auto& before = boxes[last];
            if (before.kind == boxes[i].kind && before.box[d].end == boxes[i].box[d].begin && without(before.box) == without(boxes[i].box)) {
                before.box[d].end = boxes[i].box[d].end;
            } else {
                boxes[++last] = boxes[i];
            }
        }
        boxes.resize(last + 1);
    }
}

}  // namespace rheo::inline v0::detail
