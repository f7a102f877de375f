#pragma once
// SPDX-License-Identifier: Apache-2.0

// Rounds under a budget of received bytes. Transfers are cut, so that every round of a receiver is full before its next begins; then
// the most loaded receiver needs ceil(missing / budget) rounds, and no plan needs fewer. Elements are whole: where
// their sizes divide each other, as those of all dtypes do, the largest first leaves no more unused than any other order.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "rheo/reshard/detail/deal_rows.hpp"
#include "rheo/reshard/reshard_plan.hpp"
#include "rheo/tensor/nd_box.hpp"

namespace rheo::inline v0::detail {

struct cut_box {
    std::vector<nd_box> first{};
    std::vector<nd_box> rest{};
};

/// The first elements of a box in row-major order, and the others. @pre 0 <= count <= elements(box)
template <class OnlyWhenCalled = void>
constexpr cut_box first_elements(nd_box box, std::int64_t count)
{
    cut_box cut;
    while (true) {
        auto const all = elements(box);
        if (count == all || count == 0) {
            if (all > 0) {
                (count == 0 ? cut.rest : cut.first).push_back(box);
            }
            return cut;
        }
        auto const d = row_dimension(box);
        auto const row = all / length(box[d]);
        auto const middle = box[d].begin + count / row;
        auto part = box;
        part[d].end = middle;
        if (!is_empty(part)) {
            cut.first.push_back(part);
        }
        count -= elements(part);
        part = box;
        part[d].begin = middle + (count > 0 ? 1 : 0);
        if (!is_empty(part)) {
            cut.rest.push_back(part);
        }
        if (count == 0) {
            return cut;
        }
        box[d] = {middle, middle + 1};
    }
}

/// One receiver's transfers in rounds. @pre the budget holds an element of each
template <class OnlyWhenCalled = void>
constexpr void fill_rounds(std::vector<transfer>& filled, std::vector<transfer> const& received, bytes budget)
{
    auto const unit_of = [](transfer const& t) { return t.size.count / elements(t.box); };
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < received.size(); ++i) {
        order.push_back(i);
    }
    std::sort(order.begin(), order.end(),
              [&](std::size_t a, std::size_t b) { return unit_of(received[a]) != unit_of(received[b]) ? unit_of(received[a]) > unit_of(received[b]) : a < b; });
    std::vector<std::int64_t> room;
    std::size_t round = 0;
    std::int64_t unit = 0;
    for (auto const i : order) {
        if (unit_of(received[i]) != unit) {
            unit = unit_of(received[i]);
            round = 0;  // smaller elements fit where larger ones left room
        }
        std::vector<nd_box> left{received[i].box};
        while (!left.empty()) {
            if (round == room.size()) {
                room.push_back(budget.count);
            }
            if (room[round] < unit) {
                ++round;
                continue;
            }
            auto const box = left.back();
            left.pop_back();
            auto cut = first_elements(box, std::min(elements(box), room[round] / unit));
            for (auto const& part : cut.first) {
                auto piece = received[i];
                piece.round = static_cast<int>(round);
                piece.box = part;
                piece.size = bytes{elements(part) * unit};
                room[round] -= piece.size.count;
                filled.push_back(piece);
            }
            left.insert(left.end(), cut.rest.begin(), cut.rest.end());
        }
    }
}

}  // namespace rheo::inline v0::detail
