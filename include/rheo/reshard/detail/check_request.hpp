#pragma once
// SPDX-License-Identifier: Apache-2.0

// Whether a request can be planned at all: both layouts are layouts, of the same tensors in formats that are converted, and live ranks
// and nodes are known. What is missing or too small is found while planning.

#include <algorithm>
#include <cstddef>
#include <vector>

#include "rheo/reshard/layout_fault.hpp"
#include "rheo/reshard/reshard_fault.hpp"
#include "rheo/reshard/reshard_plan.hpp"

namespace rheo::inline v0::detail {

/// The ranks that can hold, send and receive, ascending.
template <class OnlyWhenCalled = void>
constexpr std::vector<rank_id> live_ranks(reshard_request const& request)
{
    auto live = request.live;
    if (live.empty()) {
        for (auto const* layout : {&request.from, &request.to}) {
            for (auto const& place : layout->places) {
                live.insert(live.end(), place.ranks.begin(), place.ranks.end());
            }
        }
        std::sort(live.begin(), live.end());
        live.erase(std::unique(live.begin(), live.end()), live.end());
    }
    return live;
}

/// Whether elements of one format may become those of another on the way.
constexpr bool converts(element_format const& from, element_format const& to)
{
    auto const is = [](element_format const& format, dtype type) { return format.type && *format.type == type; };
    return from == to || (!from.type && !to.type && from.size == to.size) || (is(from, dtype::f32) && is(to, dtype::bf16)) ||
           (is(from, dtype::bf16) && is(to, dtype::f32));
}

/// Whether addends of one format are added up to a sum of the other: in the format of the sum, so that a wanted array holds what is added so far.
constexpr bool adds_up(element_format const& from, element_format const& to)
{
    if (!from.type || !to.type) {
        return false;
    }
    bool const has_sum = *to.type == dtype::f32 || *to.type == dtype::f64 || *to.type == dtype::i32 || *to.type == dtype::i64;
    return has_sum && (*from.type == *to.type || (*from.type == dtype::bf16 && *to.type == dtype::f32));
}

constexpr reshard_fault fault_between(array_layout const& from, array_layout const& to)
{
    for (std::size_t t = 0; t < std::max(from.tensors.size(), to.tensors.size()); ++t) {
        if (t >= from.tensors.size() || t >= to.tensors.size()) {
            return {.error = reshard_error::other_tensors, .name = t < to.tensors.size() ? to.tensors[t].name : from.tensors[t].name};
        }
        auto const& a = from.tensors[t];
        auto const& b = to.tensors[t];
        if (a.name.view() != b.name.view() || a.shape != b.shape || roles_of(a) != roles_of(b)) {
            return {.error = reshard_error::other_tensors, .name = b.name};
        }
        if (!(b.addends & roles_of(b)).empty()) {
            return {.error = reshard_error::addends, .name = b.name};
        }
        for (std::size_t r = 0; r < a.element.size(); ++r) {
            if (a.addends.has(static_cast<tensor_role>(r)) && a.element[r].size.count > 0) {
                if (!adds_up(a.element[r], b.element[r])) {
                    return {.error = reshard_error::sum_format, .name = b.name};
                }
            } else if (!converts(a.element[r], b.element[r])) {
                return {.error = reshard_error::other_format, .name = b.name};
            }
        }
    }
    return {};
}

/// The ranks that hold something of a part and are not live. @pre live ascends
template <class OnlyWhenCalled = void>
constexpr listed_ranks dead_holders(array_layout const& from, array_part const& part, std::vector<rank_id> const& live)
{
    std::vector<rank_id> dead;
    for (auto const& place : from.places) {
        bool const holds = std::any_of(place.parts.begin(), place.parts.end(), [&](array_part const& held) {
            return held.tensor == part.tensor && !(held.roles & part.roles).empty() && intersects(held.box, part.box);
        });
        for (std::size_t i = 0; holds && i < place.ranks.size(); ++i) {
            if (!std::binary_search(live.begin(), live.end(), place.ranks[i])) {
                dead.push_back(place.ranks[i]);
            }
        }
    }
    std::sort(dead.begin(), dead.end());
    listed_ranks ranks;
    ranks.count = static_cast<std::int64_t>(dead.size());
    std::copy_n(dead.begin(), std::min(ranks.count, listed_ranks::room), ranks.first);
    return ranks;
}

/// An addend of a wanted box at a rank that is not live. @pre both layouts are without fault and of the same tensors
template <class OnlyWhenCalled = void>
constexpr reshard_fault fault_of_addends(reshard_request const& request, std::vector<rank_id> const& live)
{
    for (auto const& place : request.from.places) {
        bool const has_dead =
            std::any_of(place.ranks.begin(), place.ranks.end(), [&](rank_id rank) { return !std::binary_search(live.begin(), live.end(), rank); });
        for (auto const& part : place.parts) {
            auto const& tensor = request.from.tensors[at(part.tensor)];
            auto const sums = part.roles & tensor.addends & roles_of(tensor);
            if (sums.empty()) {
                continue;
            }
            for (std::size_t p = 0; has_dead && p < request.to.places.size(); ++p) {
                for (auto const& want : request.to.places[p].parts) {
                    auto const held = data_of(tensor, part.box);
                    if (want.tensor == part.tensor && !(want.roles & sums).empty() && intersects(want.box, held)) {
                        array_part const lost{part.tensor, intersection(want.box, held), want.roles & sums};
                        return {.error = reshard_error::lost_addend, .name = tensor.name, .box = lost.box, .holders = dead_holders(request.from, lost, live)};
                    }
                }
            }
        }
    }
    return {};
}

template <class OnlyWhenCalled = void>
constexpr reshard_fault check_request(reshard_request const& request, std::vector<rank_id> const& live)
{
    if (auto const found = fault(request.from, coverage::partial)) {
        return found;
    }
    if (auto const found = fault(request.to, coverage::partial)) {
        return found;
    }
    if (auto const found = fault_between(request.from, request.to)) {
        return found;
    }
    for (std::size_t i = 0; i < live.size(); ++i) {
        if (live[i].value < 0 || live[i].value >= most_ranks || (i > 0 && live[i - 1] >= live[i])) {
            return {.error = reshard_error::bad_live};
        }
    }
    if (request.failures < 0) {
        return {.error = reshard_error::bad_failures, .number = request.failures};
    }
    std::size_t places = 0;
    auto last = live.empty() ? rank_id{-1} : live.back();
    for (auto const& place : request.to.places) {
        places += place.ranks.size();
        for (auto const rank : place.ranks) {
            last = std::max(last, rank);
        }
    }
    if (request.ranks != rank_choice::pinned && places > live.size()) {
        return {.error = reshard_error::few_ranks, .number = static_cast<std::int64_t>(places), .limit = static_cast<std::int64_t>(live.size())};
    }
    if (auto const found = fault_of_addends(request, live)) {
        return found;
    }
    for (std::size_t t = 0; request.memory_limit && t < request.to.tensors.size(); ++t) {
        auto const& held = request.from.tensors[t];
        if (held.element != request.to.tensors[t].element || !(held.addends & roles_of(held)).empty()) {
            return {.error = reshard_error::changed_in_place, .name = held.name};
        }
    }
    bool const needs_nodes = !request.node_of.empty() || request.ranks == rank_choice::whole_nodes;
    for (std::size_t r = 0; needs_nodes && last.value >= 0 && r <= at(last); ++r) {
        if (r >= request.node_of.size() || request.node_of[r].value < 0) {
            return {.error = reshard_error::no_node, .rank = rank_id{static_cast<std::int32_t>(r)}};
        }
    }
    return {};
}

/// A wanted box that no live rank holds, and who held it.
template <class OnlyWhenCalled = void>
constexpr reshard_fault lost_box(reshard_request const& request, rank_id to, array_part const& part)
{
    return {.error = reshard_error::lost,
            .rank = to,
            .name = request.to.tensors[at(part.tensor)].name,
            .box = part.box,
            .holders = dead_holders(request.from, part, live_ranks(request))};
}

}  // namespace rheo::inline v0::detail
