#pragma once
// SPDX-License-Identifier: Apache-2.0

// What each rank has while a plan runs: boxes by rank, to which transfers add and from which drops take.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "rheo/reshard/array_layout.hpp"
#include "rheo/reshard/layout_fault.hpp"
#include "rheo/reshard/reshard_fault.hpp"
#include "rheo/reshard/reshard_plan.hpp"
#include "rheo/tensor/nd_box.hpp"

namespace rheo::inline v0::detail {

/// Parts by rank, without padding and only in roles that their tensors have.
class parts_by_rank {
public:
    constexpr parts_by_rank() = default;
    template <class OnlyWhenCalled = void>
    constexpr explicit parts_by_rank(array_layout const& layout)
    {
        for (auto const& place : layout.places) {
            for (auto const& part : place.parts) {
                auto const& tensor = layout.tensors[at(part.tensor)];
                if (auto const box = data_of(tensor, part.box); !is_empty(box)) {
                    for (auto const rank : place.ranks) {
                        add(rank, {part.tensor, box, part.roles & roles_of(tensor)});
                    }
                }
            }
        }
    }

    template <class OnlyWhenCalled = void>
    constexpr void add(rank_id rank, array_part const& part)
    {
        if (at(rank) >= parts_.size()) {
            parts_.resize(at(rank) + 1);
        }
        parts_[at(rank)].push_back(part);
    }

    constexpr std::size_t ranks() const { return parts_.size(); }
    constexpr array_view<array_part const> of(rank_id rank) const
    {
        return rank.value >= 0 && at(rank) < parts_.size() ? array_view<array_part const>{parts_[at(rank)]} : array_view<array_part const>{};
    }

    /// What a rank does not have of a part, in one of its roles; empty: it has all of it.
    template <class OnlyWhenCalled = void>
    constexpr std::vector<nd_box> missing(rank_id rank, array_part const& part) const
    {
        auto const has = of(rank);
        for (auto const& one : has) {
            if (one.tensor == part.tensor && (one.roles & part.roles) == part.roles && contains(one.box, part.box)) {
                return {};
            }
        }
        for (int r = 0; r < tensor_roles; ++r) {
            auto const role = static_cast<tensor_role>(r);
            if (!part.roles.has(role)) {
                continue;
            }
            std::vector<nd_box> rest{part.box};
            for (auto const& one : has) {
                if (one.tensor == part.tensor && one.roles.has(role) && intersects(one.box, part.box)) {
                    subtract(rest, one.box);
                }
            }
            if (!rest.empty()) {
                return rest;
            }
        }
        return {};
    }

    /// Whether a rank has an element of a part, in one of its roles.
    constexpr bool has_some(rank_id rank, array_part const& part) const
    {
        for (auto const& one : of(rank)) {
            if (one.tensor == part.tensor && !(one.roles & part.roles).empty() && intersects(one.box, part.box)) {
                return true;
            }
        }
        return false;
    }

    /// @pre the rank has all of it
    template <class OnlyWhenCalled = void>
    constexpr void drop(rank_id rank, array_part const& part)
    {
        std::vector<array_part> left;
        for (auto const& one : parts_[at(rank)]) {
            if (one.tensor != part.tensor || (one.roles & part.roles).empty() || !intersects(one.box, part.box)) {
                left.push_back(one);
                continue;
            }
            if (auto const others = role_set{static_cast<std::uint8_t>(one.roles.bits & ~part.roles.bits)}; !others.empty()) {
                left.push_back({one.tensor, one.box, others});
            }
            for (auto const& box : difference(one.box, part.box)) {
                left.push_back({one.tensor, box, one.roles & part.roles});
            }
        }
        parts_[at(rank)] = left;
    }

private:
    std::vector<std::vector<array_part>> parts_{};
};

/// The boxes of a (tensor, role) among parts.
template <class OnlyWhenCalled = void>
constexpr std::vector<nd_box> boxes_in(array_view<array_part const> parts, tensor_id tensor, tensor_role role)
{
    std::vector<nd_box> boxes;
    for (auto const& part : parts) {
        if (part.tensor == tensor && part.roles.has(role)) {
            boxes.push_back(part.box);
        }
    }
    return boxes;
}

/// Whether what arrives at a rank (by transfer or kept) is what it wants of one (tensor, role), each element once.
template <class OnlyWhenCalled = void>
constexpr reshard_fault fault_of_arrivals(std::vector<nd_box> const& wanted, std::vector<nd_box> const& arrived, reshard_fault fault)
{
    std::int64_t open = 0;
    for (auto const& box : wanted) {
        open += elements(box);
    }
    for (auto const& box : arrived) {
        open -= elements(box);
        if (std::any_of(wanted.begin(), wanted.end(), [&](nd_box const& want) { return contains(want, box); })) {
            continue;
        }
        std::vector<nd_box> rest{box};
        for (auto const& want : wanted) {
            subtract(rest, want);
        }
        if (!rest.empty()) {
            fault.error = reshard_error::not_wanted;
            fault.box = rest.front();
            return fault;
        }
    }
    if (auto const two = overlapping(arrived)) {
        fault.error = reshard_error::comes_twice;
        fault.box = intersection(arrived[two->first], arrived[two->second]);
        return fault;
    }
    if (open != 0) {
        std::vector<nd_box> rest = wanted;  // arrivals are disjoint and wanted, so that there are fewer of them
        for (auto const& box : arrived) {
            subtract(rest, box);
        }
        fault.error = reshard_error::never_comes;
        fault.box = rest.front();
        return fault;
    }
    return {};
}

}  // namespace rheo::inline v0::detail
