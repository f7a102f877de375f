#pragma once
// SPDX-License-Identifier: Apache-2.0

// Which boxes of two lists meet, without looking at all pairs: ten thousand flat ranges meet two or three others each.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "rheo/tensor/nd_box.hpp"
#include "rheo/units/array_view.hpp"

namespace rheo::inline v0::detail {

/// Boxes in the order of their first index in that dimension in which they differ most.
template <class OnlyWhenCalled = void>
class box_index {
public:
    constexpr explicit box_index(array_view<nd_box const> boxes) : boxes_{boxes}
    {
        for (std::size_t b = 0; b < boxes.size(); ++b) {
            order_.push_back(b);
        }
        if (boxes.size() <= few) {
            return;
        }
        std::size_t most = 0;
        std::vector<std::int64_t> begins;
        for (int d = 0; d < boxes.front().dimensions; ++d) {
            begins.clear();
            for (auto const& box : boxes) {
                begins.push_back(box[d].begin);
            }
            std::sort(begins.begin(), begins.end());
            auto const distinct = static_cast<std::size_t>(std::unique(begins.begin(), begins.end()) - begins.begin());
            if (distinct > most) {
                most = distinct;
                dimension_ = d;
            }
        }
        auto const d = dimension_;
        std::sort(order_.begin(), order_.end(),
                  [&](std::size_t a, std::size_t b) { return boxes[a][d].begin != boxes[b][d].begin ? boxes[a][d].begin < boxes[b][d].begin : a < b; });
        for (auto const& box : boxes) {
            longest_ = std::max(longest_, length(box[d]));
        }
    }

    /// The numbers of those that have an element in common with a box, ascending.
    constexpr std::vector<std::size_t> meeting(nd_box const& box) const
    {
        std::vector<std::size_t> found;
        if (boxes_.size() <= few) {
            for (auto const b : order_) {
                if (intersects(boxes_[b], box)) {
                    found.push_back(b);
                }
            }
            return found;
        }
        auto const d = dimension_;
        auto const from = box[d].begin - longest_;
        auto next = std::lower_bound(order_.begin(), order_.end(), from, [&](std::size_t b, std::int64_t begin) { return boxes_[b][d].begin < begin; });
        for (; next != order_.end() && boxes_[*next][d].begin < box[d].end; ++next) {
            if (intersects(boxes_[*next], box)) {
                found.push_back(*next);
            }
        }
        std::sort(found.begin(), found.end());
        return found;
    }

private:
    static constexpr std::size_t few = 16;

    array_view<nd_box const> boxes_;
    std::vector<std::size_t> order_{};
    int dimension_ = 0;
    std::int64_t longest_ = 0;
};

/// For each box of a list, those of another that it meets: looked up once, when it is asked for.
template <class OnlyWhenCalled = void>
class meeting_boxes {
public:
    constexpr meeting_boxes(array_view<nd_box const> boxes, array_view<nd_box const> others) : boxes_{boxes}, others_{others} {}

    constexpr std::vector<std::size_t> const& operator[](std::size_t box)
    {
        if (known_.empty()) {
            index_ = box_index<OnlyWhenCalled>{others_};
            known_.resize(boxes_.size(), 0);
            of_.resize(boxes_.size());
        }
        if (known_[box] == 0) {
            known_[box] = 1;
            of_[box] = index_.meeting(boxes_[box]);
        }
        return of_[box];
    }

private:
    array_view<nd_box const> boxes_;
    array_view<nd_box const> others_;
    box_index<OnlyWhenCalled> index_{{}};
    std::vector<char> known_{};
    std::vector<std::vector<std::size_t>> of_{};
};

}  // namespace rheo::inline v0::detail
