#pragma once
// SPDX-License-Identifier: Apache-2.0

// Whether a layout is one: each rank once, its boxes disjoint and inside their tensors, and every element at some rank. The first fault
// is returned with rank, tensor and box.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "rheo/reshard/array_layout.hpp"
#include "rheo/reshard/detail/box_sets.hpp"
#include "rheo/reshard/reshard_fault.hpp"
#include "rheo/tensor/nd_box.hpp"

namespace rheo::inline v0 {

/// Whether every element has to be at some rank.
enum class coverage : std::uint8_t { complete, partial };

namespace detail {

template <class OnlyWhenCalled = void>
constexpr reshard_fault fault_of_tensors(array_layout const& layout)
{
    for (auto const& tensor : layout.tensors) {
        reshard_fault const bad{.error = reshard_error::bad_shape, .name = tensor.name};
        auto const& outer = tensor.padded ? *tensor.padded : tensor.shape;
        if (tensor.shape.dimensions < 1 || outer.dimensions != tensor.shape.dimensions) {
            return bad;
        }
        for (int d = 0; d < tensor.shape.dimensions; ++d) {
            if (tensor.shape[d] < 0 || outer[d] < tensor.shape[d]) {
                return bad;
            }
        }
        std::int64_t sum = 0;
        for (auto const& role : tensor.element) {
            if (role.size.count < 0 || __builtin_add_overflow(sum, role.size.count, &sum)) {
                return {.error = reshard_error::bad_element, .name = tensor.name};
            }
        }
    }
    struct hashed_name {
        std::uint64_t hash;
        std::size_t tensor;
    };
    std::vector<hashed_name> order;
    for (std::size_t t = 0; t < layout.tensors.size(); ++t) {
        std::uint64_t hash = 0;
        auto const name = layout.tensors[t].name.view();
        for (std::size_t i = 0; i < name.size(); ++i) {
            hash = (hash ^ static_cast<unsigned char>(name[i])) * 0x100000001b3U;
        }
        order.push_back({hash, t});
    }
    std::sort(order.begin(), order.end(), [](hashed_name const& a, hashed_name const& b) { return a.hash < b.hash; });
    for (std::size_t i = 1; i < order.size(); ++i) {
        auto const& name = layout.tensors[order[i].tensor].name;
        for (auto k = i; k-- > 0 && order[k].hash == order[i].hash;) {
            if (!name.empty() && layout.tensors[order[k].tensor].name.view() == name.view()) {
                return {.error = reshard_error::name_twice, .name = name};
            }
        }
    }
    return {};
}

template <class OnlyWhenCalled = void>
constexpr reshard_fault fault_of_ranks(array_layout const& layout)
{
    std::vector<rank_id> ranks;
    for (auto const& place : layout.places) {
        for (auto const rank : place.ranks) {
            ranks.push_back(rank);
        }
    }
    std::sort(ranks.begin(), ranks.end());
    for (std::size_t i = 0; i < ranks.size(); ++i) {
        if (ranks[i].value < 0 || ranks[i].value >= most_ranks) {
            return {.error = reshard_error::bad_rank, .other = ranks[i], .number = ranks[i].value};
        }
        if (i > 0 && ranks[i - 1] == ranks[i]) {
            return {.error = reshard_error::rank_twice, .rank = ranks[i]};
        }
    }
    return {};
}

constexpr reshard_fault fault_of_part(array_layout const& layout, array_part const& part, rank_id rank)
{
    if (part.tensor.value < 0 || at(part.tensor) >= layout.tensors.size()) {
        return {.error = reshard_error::no_such_tensor, .rank = rank, .number = part.tensor.value, .limit = static_cast<std::int64_t>(layout.tensors.size())};
    }
    auto const& tensor = layout.tensors[at(part.tensor)];
    reshard_fault fault{.rank = rank, .name = tensor.name, .box = part.box};
    auto const outer = whole(tensor.padded ? *tensor.padded : tensor.shape);
    if (part.box.dimensions != tensor.shape.dimensions) {
        fault.error = reshard_error::dimensions;
        fault.number = part.box.dimensions;
        fault.limit = tensor.shape.dimensions;
    } else if (!contains(outer, part.box)) {
        fault.error = reshard_error::outside;
        fault.other_box = outer;
    } else if ((part.roles & roles_of(tensor)).empty()) {
        fault.error = reshard_error::no_such_role;
    }
    return fault;
}

/// The parts of a place by tensor: their numbers, ascending by tensor.
template <class OnlyWhenCalled = void>
constexpr std::vector<std::size_t> parts_by_tensor(sub_collection const& place)
{
    std::vector<std::size_t> order;
    bool sorted = true;
    for (std::size_t i = 0; i < place.parts.size(); ++i) {
        sorted = sorted && (i == 0 || place.parts[i - 1].tensor <= place.parts[i].tensor);
        order.push_back(i);
    }
    if (!sorted) {
        std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
            return place.parts[a].tensor != place.parts[b].tensor ? place.parts[a].tensor < place.parts[b].tensor : a < b;
        });
    }
    return order;
}

template <class OnlyWhenCalled = void>
constexpr reshard_fault fault_of_overlaps(array_layout const& layout, sub_collection const& place)
{
    auto const order = parts_by_tensor(place);
    std::vector<nd_box> boxes;
    for (std::size_t first = 0, last = 0; first < order.size(); first = last) {
        auto const tensor = place.parts[order[first]].tensor;
        for (last = first; last < order.size() && place.parts[order[last]].tensor == tensor; ++last) {
        }
        for (int r = 0; last - first > 1 && r < tensor_roles; ++r) {
            boxes.clear();
            for (auto i = first; i < last; ++i) {
                if (place.parts[order[i]].roles.has(static_cast<tensor_role>(r))) {
                    boxes.push_back(place.parts[order[i]].box);
                }
            }
            if (auto const two = overlapping(boxes)) {
                return {.error = reshard_error::overlap,
                        .rank = place.ranks.empty() ? rank_id{-1} : place.ranks.front(),
                        .name = layout.tensors[at(tensor)].name,
                        .box = boxes[two->first],
                        .other_box = boxes[two->second]};
            }
        }
    }
    return {};
}

/// Whether all parts that have one of two roles have both.
template <class OnlyWhenCalled = void>
constexpr bool go_together(std::vector<array_part> const& parts, tensor_role a, tensor_role b)
{
    bool same = true;
    for (auto const& part : parts) {
        same = same && part.roles.has(a) == part.roles.has(b);
    }
    return same;
}

/// The first elements of a (tensor, role) that no rank has.
template <class OnlyWhenCalled = void>
constexpr reshard_fault fault_of_coverage(array_layout const& layout)
{
    std::vector<std::vector<array_part>> of(layout.tensors.size());
    for (auto& parts : of) {
        parts.reserve(8);
    }
    for (auto const& place : layout.places) {
        for (auto const& part : place.parts) {
            if (!place.ranks.empty()) {
                of[at(part.tensor)].push_back(part);
            }
        }
    }
    for (std::size_t t = 0; t < of.size(); ++t) {
        auto const all = whole(layout.tensors[t].shape);
        for (int r = 0; r < tensor_roles && !is_empty(all); ++r) {
            auto const role = static_cast<tensor_role>(r);
            bool known = !roles_of(layout.tensors[t]).has(role);
            for (int before = 0; before < r && !known; ++before) {
                known = roles_of(layout.tensors[t]).has(static_cast<tensor_role>(before)) && go_together(of[t], role, static_cast<tensor_role>(before));
            }
            if (known) {
                continue;
            }
            std::vector<nd_box> boxes;
            for (auto const& part : of[t]) {
                if (part.roles.has(role)) {
                    boxes.push_back(part.box);
                }
            }
            if (!std::is_sorted(boxes.begin(), boxes.end())) {
                std::sort(boxes.begin(), boxes.end());
            }
            boxes.erase(std::unique(boxes.begin(), boxes.end()), boxes.end());
            if (auto const gap = first_gap(all, boxes)) {
                return {.error = reshard_error::not_held, .name = layout.tensors[t].name, .box = *gap};
            }
        }
    }
    return {};
}

}  // namespace detail

/// The first fault of a layout. @param of_elements whether every element has to be at some rank
/// Cost: about parts x log parts.
template <class OnlyWhenCalled = void>
constexpr reshard_fault fault(array_layout const& layout, coverage of_elements = coverage::complete)
{
    if (auto const found = detail::fault_of_tensors(layout)) {
        return found;
    }
    if (auto const found = detail::fault_of_ranks(layout)) {
        return found;
    }
    std::int64_t all = 0;  // bytes of all ranks together: no sum of a plan is larger
    for (auto const& place : layout.places) {
        auto const rank = place.ranks.empty() ? rank_id{-1} : place.ranks.front();
        for (auto const& part : place.parts) {
            if (auto const found = detail::fault_of_part(layout, part, rank)) {
                return found;
            }
            auto const size = count_elements(part.box);
            std::int64_t sum = 0;
            if (!size || __builtin_mul_overflow(*size, element_bytes(layout.tensors[at(part.tensor)], part.roles).count, &sum) ||
                __builtin_mul_overflow(sum, static_cast<std::int64_t>(place.ranks.size()), &sum) || __builtin_add_overflow(all, sum, &all)) {
                return {.error = reshard_error::too_large, .rank = rank, .name = layout.tensors[at(part.tensor)].name, .box = part.box};
            }
        }
        if (auto const found = detail::fault_of_overlaps(layout, place)) {
            return found;
        }
    }
    return of_elements == coverage::complete ? detail::fault_of_coverage(layout) : reshard_fault{};
}

#ifdef RHEO_COMPILED  // in rheo::compiled
extern template reshard_fault fault<>(array_layout const&, coverage);
#endif

}  // namespace rheo::inline v0
