#pragma once
// SPDX-License-Identifier: Apache-2.0

// Whether a plan brings the addends of each sum: of every holder, each once, in the order of ranks; and whether it knows the formats.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "rheo/reshard/detail/replay_reshard.hpp"
#include "rheo/reshard/reshard_fault.hpp"
#include "rheo/reshard/reshard_plan.hpp"

namespace rheo::inline v0::detail {

/// Those of some roles of a tensor that are no sums.
constexpr role_set not_added(reshard_plan const& plan, tensor_id tensor, role_set roles)
{
    return role_set{static_cast<std::uint8_t>(roles.bits & ~sums_of(plan, tensor).bits)};
}

constexpr reshard_fault fault_of_formats(reshard_plan const& plan, array_layout const& from)
{
    for (std::size_t t = 0; t < plan.tensors.size(); ++t) {
        auto const& tensor = from.tensors[t];
        held_format const plain{plan.tensors[t].element};
        held_format const is{tensor.element, tensor.addends & roles_of(tensor)};
        if ((t < plan.held.size() ? plan.held[t] : plain) != is) {
            return {.error = reshard_error::wrong_format, .name = tensor.name};
        }
    }
    return {};
}

/// Boxes of one role of a tensor at ranks, and the rounds in which they come.
struct addend_box {
    rank_id rank;
    nd_box box;
    int round = 0;
};

/// What one rank wants and gets of one sum. @param comes by sender, its own included with round -1 @param held of all ranks
template <class OnlyWhenCalled = void>
constexpr reshard_fault fault_of_sum(std::vector<nd_box> const& wanted, std::vector<addend_box> const& comes, std::vector<addend_box> const& held, rank_id self,
                                     reshard_fault fault)
{
    std::vector<rank_id> adders;
    auto open = wanted;
    for (auto const& one : held) {
        adders.push_back(one.rank);
        subtract(open, one.box);
    }
    if (!open.empty()) {
        fault.error = reshard_error::never_comes;
        fault.box = open.front();
        return fault;
    }
    for (auto const& one : comes) {
        adders.push_back(one.rank);
    }
    std::sort(adders.begin(), adders.end());
    adders.erase(std::unique(adders.begin(), adders.end()), adders.end());
    for (auto const rank : adders) {
        std::vector<nd_box> expected;
        std::vector<nd_box> arrived;
        for (auto const& one : held) {
            for (auto const& want : wanted) {
                if (one.rank == rank && intersects(one.box, want)) {
                    expected.push_back(intersection(one.box, want));
                }
            }
        }
        for (auto const& one : comes) {
            if (one.rank == rank) {
                arrived.push_back(one.box);
            }
        }
        if (auto const wrong = fault_of_arrivals(expected, arrived, fault)) {
            return wrong;
        }
    }
    for (auto const& early : comes) {
        for (auto const& late : comes) {
            if (early.rank != self && late.rank != self && late.rank < early.rank && late.round > early.round && intersects(early.box, late.box)) {
                fault.error = reshard_error::addend_order;
                fault.box = intersection(early.box, late.box);
                fault.round = early.round;
                return fault;
            }
        }
    }
    return {};
}

/// All boxes of one role of a tensor in a layout.
template <class OnlyWhenCalled = void>
constexpr std::vector<addend_box> addends_in(array_layout const& layout, tensor_id tensor, tensor_role role)
{
    std::vector<addend_box> all;
    for (auto const& place : layout.places) {
        for (auto const& part : place.parts) {
            auto const box = data_of(layout.tensors[at(part.tensor)], part.box);
            for (auto const rank : place.ranks) {
                if (part.tensor == tensor && part.roles.has(role) && !is_empty(box)) {
                    all.push_back({rank, box});
                }
            }
        }
    }
    return all;
}

/// @pre the plan was replayed without fault @param to with the ranks that take its places
template <class OnlyWhenCalled = void>
constexpr reshard_fault fault_of_sums(reshard_plan const& plan, array_layout const& from, array_layout const& to)
{
    for (std::size_t t = 0; t < plan.held.size(); ++t) {
        tensor_id const tensor{static_cast<std::int32_t>(t)};
        for (int r = 0; r < tensor_roles; ++r) {
            auto const role = static_cast<tensor_role>(r);
            if (!sums_of(plan, tensor).has(role)) {
                continue;
            }
            auto const held = addends_in(from, tensor, role);
            std::vector<std::vector<addend_box>> comes;  // by receiver
            auto const add = [&](rank_id rank, addend_box const& one) {
                comes.resize(std::max(comes.size(), at(rank) + 1));
                comes[at(rank)].push_back(one);
            };
            for (auto const& move : plan.transfers) {
                if (move.tensor == tensor && move.roles.has(role)) {
                    add(move.to, {move.from, move.box, move.round});
                }
            }
            for (auto const& one : addends_in({to.tensors, plan.kept}, tensor, role)) {
                add(one.rank, {one.rank, one.box, -1});
            }
            std::vector<std::vector<nd_box>> wanted(comes.size());
            for (auto const& one : addends_in(to, tensor, role)) {
                wanted.resize(std::max(wanted.size(), at(one.rank) + 1));
                wanted[at(one.rank)].push_back(one.box);
            }
            comes.resize(wanted.size());
            for (std::size_t rank = 0; rank < wanted.size(); ++rank) {
                rank_id const self{static_cast<std::int32_t>(rank)};
                if (auto const fault = fault_of_sum(wanted[rank], comes[rank], held, self, {.rank = self, .name = plan.tensors[t].name})) {
                    return fault;
                }
            }
        }
    }
    return {};
}

}  // namespace rheo::inline v0::detail
