#pragma once
// SPDX-License-Identifier: Apache-2.0

// From the layout that is there to the layout that is wanted: which copies, from whom, in which rounds.
// Nothing moves that is there, so the bytes are the fewest for these two layouts; that the second one is
// well chosen is the assignment's part (recompose). Sources are spread over the holders, so that no one
// rank feeds all others. Set algebra on boxes as in Tenplex (SOSP'24).

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "rheo/reshard/copy.hpp"
#include "rheo/reshard/detail/missing_boxes.hpp"
#include "rheo/reshard/layout.hpp"
#include "rheo/topology/tagged_index.hpp"
#include "rheo/units/array_view.hpp"
#include "rheo/units/expects.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

struct copy_plan_request {
    std::vector<rank_parts> held;         ///< ascending by rank
    std::vector<rank_parts> wanted;       ///< ascending by rank
    std::vector<bytes> element_bytes;     ///< tensor -> bytes of one element, all roles that travel together
    std::optional<bytes> round_budget{};  ///< most bytes that a rank receives in one round; none: one round

    friend constexpr bool operator==(copy_plan_request const&, copy_plan_request const&) = default;
};

struct copy_plan_answer {
    std::vector<std::vector<copy>> rounds{};  ///< ascending by receiver and tensor within a round
    std::vector<tensor_part> lost{};          ///< wanted but without a holder, ascending by tensor, each once
    bytes moved{};

    friend constexpr bool operator==(copy_plan_answer const&, copy_plan_answer const&) = default;
};

namespace detail {

template <class OnlyWhenCalled = void>
constexpr void expects_layout(array_view<rank_parts const> layout, std::size_t tensors)
{
    for (std::size_t i = 0; i < layout.size(); ++i) {
        expects(i == 0 || layout[i - 1].rank < layout[i].rank, "a layout lists its ranks once each, ascending");
        for (auto const& part : layout[i].parts) {
            expects(part.tensor.value >= 0 && at(part.tensor) < tensors, "a layout names a tensor whose element size is not given");
        }
    }
}

/// The boxes of each tensor, ascending by rank.
template <class OnlyWhenCalled = void>
constexpr std::vector<std::vector<placed_box>> boxes_by_tensor(array_view<rank_parts const> layout, std::size_t tensors)
{
    std::vector<std::vector<placed_box>> boxes(tensors);
    for (auto const& rank : layout) {
        for (auto const& part : rank.parts) {
            boxes[at(part.tensor)].push_back({rank.rank, part.box});
        }
    }
    return boxes;
}

}  // namespace detail

/// Each wanted element that a rank does not hold comes exactly once, from a rank that holds it. Sources
/// are chosen for the boxes with the fewest holders first, then the largest, each time the holder that
/// sends the fewest bytes so far, ties to the lowest rank.
/// @pre ranks ascend in both layouts, and each tensor they name has an element size
/// @return the copies in rounds, what is lost, and the bytes moved. Cost: about parts + copies x holders.
template <class OnlyWhenCalled = void>
constexpr copy_plan_answer copy_plan(copy_plan_request const& request)
{
    detail::expects_layout(request.held, request.element_bytes.size());
    detail::expects_layout(request.wanted, request.element_bytes.size());
    std::vector<detail::missing_box> missing;
    auto const held = detail::boxes_by_tensor(request.held, request.element_bytes.size());
    auto const wanted = detail::boxes_by_tensor(request.wanted, request.element_bytes.size());
    for (std::size_t t = 0; t < request.element_bytes.size(); ++t) {
        detail::append_missing(missing, held[t], wanted[t], tensor_id{static_cast<std::int32_t>(t)});
    }

    copy_plan_answer answer;
    std::vector<copy> copies;
    std::vector<std::size_t> order;
    for (auto const& box : missing) {
        if (box.holders.empty()) {
            bool known = false;
            for (auto const& part : answer.lost) {
                known = known || part == box.part;
            }
            if (!known) {
                answer.lost.push_back(box.part);
            }
        }
        auto const size = elements(box.part.box) * request.element_bytes[at(box.part.tensor)];
        order.push_back(copies.size());
        copies.push_back({box.holders.empty() ? box.to : box.holders.front(), box.to, box.part, size});
    }
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        auto const few_a = missing[a].holders.size();
        auto const few_b = missing[b].holders.size();
        return few_a != few_b ? few_a < few_b : copies[a].size != copies[b].size ? copies[a].size > copies[b].size : a < b;
    });
    std::vector<bytes> sent(request.held.size());
    auto const sender = [&](rank_id rank) -> bytes& {
        std::size_t i = 0;
        while (request.held[i].rank != rank) {
            ++i;
        }
        return sent[i];
    };
    for (auto const i : order) {
        auto& next = copies[i];
        for (auto const holder : missing[i].holders) {
            if (sender(holder) < sender(next.from)) {
                next.from = holder;
            }
        }
        if (!missing[i].holders.empty()) {
            sender(next.from) += next.size;
        }
    }

    std::vector<std::size_t> kept;
    for (std::size_t i = 0; i < copies.size(); ++i) {
        if (!missing[i].holders.empty()) {
            kept.push_back(i);
            answer.moved += copies[i].size;
        }
    }
    std::sort(kept.begin(), kept.end(), [&](std::size_t a, std::size_t b) { return copies[a].to != copies[b].to ? copies[a].to < copies[b].to : a < b; });
    std::vector<copy> ordered;
    for (auto const i : kept) {
        ordered.push_back(copies[i]);
    }
    answer.rounds = in_rounds(ordered, request.round_budget);
    return answer;
}

}  // namespace rheo::inline v0
