#pragma once
// SPDX-License-Identifier: Apache-2.0

// Two questions about a set of boxes: do two of them overlap, and do they leave a gap?

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "rheo/reshard/detail/split_box.hpp"
#include "rheo/tensor/nd_box.hpp"
#include "rheo/units/array_view.hpp"

namespace rheo::inline v0::detail {

/// Two of the boxes with a common element, by a sweep along the first dimension.
template <class OnlyWhenCalled = void>
constexpr std::optional<std::pair<std::size_t, std::size_t>> overlapping(array_view<nd_box const> boxes)
{
    if (boxes.size() <= few_boxes) {
        for (std::size_t i = 1; i < boxes.size(); ++i) {
            for (std::size_t k = 0; k < i; ++k) {
                if (intersects(boxes[k], boxes[i])) {
                    return std::pair{k, i};
                }
            }
        }
        return std::nullopt;
    }
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < boxes.size(); ++i) {
        if (!is_empty(boxes[i])) {
            order.push_back(i);
        }
    }
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return boxes[a][0].begin < boxes[b][0].begin; });
    std::vector<std::size_t> open;
    for (auto const i : order) {
        std::size_t left = 0;
        for (auto const o : open) {
            if (boxes[o][0].end > boxes[i][0].begin) {
                if (intersects(boxes[o], boxes[i])) {
                    return std::pair{o, i};
                }
                open[left++] = o;
            }
        }
        open.resize(left);
        open.push_back(i);
    }
    return std::nullopt;
}

/// The first elements of a box that none of the others has. @param boxes ascending, distinct
template <class OnlyWhenCalled = void>
constexpr std::optional<nd_box> first_gap(nd_box const& all, std::vector<nd_box> const& boxes)
{
    std::int64_t sum = 0;
    auto const whole = count_elements(all);  // none: more than the boxes can have, which have been counted
    bool is_small = whole.has_value();
    for (auto const& box : boxes) {
        is_small = is_small && !__builtin_add_overflow(sum, elements(intersection(all, box)), &sum);
    }
    if (is_small && sum == *whole && (boxes.size() == 1 || !overlapping(boxes))) {
        return std::nullopt;
    }
    std::vector<std::size_t> candidates;
    for (std::size_t b = 0; b < boxes.size(); ++b) {
        candidates.push_back(b);
    }
    std::optional<nd_box> gap;
    std::vector<std::size_t> covering;
    split_box(all, boxes, candidates, covering, [&](nd_box const& piece, std::vector<std::size_t> const& by) {
        if (by.empty() && !gap) {
            gap = piece;
        }
    });
    return gap;
}

}  // namespace rheo::inline v0::detail
