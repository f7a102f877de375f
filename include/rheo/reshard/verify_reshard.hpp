#pragma once
// SPDX-License-Identifier: Apache-2.0

// Replays a plan and judges it, from wherever it comes: each transfer comes from a rank that has its box at that time, each wanted element is
// there at the end and came exactly once, and the certificate's figures are those of the plan. Nothing is taken from planning but the sums.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "rheo/reshard/detail/certify.hpp"
#include "rheo/reshard/detail/check_request.hpp"
#include "rheo/reshard/detail/replay_reshard.hpp"
#include "rheo/reshard/detail/verify_limits.hpp"
#include "rheo/reshard/detail/verify_sums.hpp"
#include "rheo/reshard/layout_fault.hpp"
#include "rheo/reshard/reshard_plan.hpp"

namespace rheo::inline v0 {

namespace detail {

template <class OnlyWhenCalled = void>
constexpr reshard_fault fault_of_places(reshard_plan const& plan, array_layout const& to)
{
    if (plan.taken.empty()) {
        return {};
    }
    std::vector<rank_id> wanted;
    for (auto const& place : to.places) {
        wanted.insert(wanted.end(), place.ranks.begin(), place.ranks.end());
    }
    std::sort(wanted.begin(), wanted.end());
    std::vector<rank_id> places;
    std::vector<rank_id> ranks;
    for (auto const& one : plan.taken) {
        places.push_back(one.place);
        ranks.push_back(one.rank);
    }
    std::sort(ranks.begin(), ranks.end());
    auto const twice = std::adjacent_find(ranks.begin(), ranks.end());
    return {.error = places != wanted || twice != ranks.end() || ranks.front().value < 0 || ranks.back().value >= most_ranks ? reshard_error::wrong_place
                                                                                                                             : reshard_error::none};
}

/// That the numbers in a transfer mean something. @param after the transfer before it; nullptr: there is none
constexpr reshard_fault fault_of_transfer(reshard_plan const& plan, transfer const& move, transfer const* after)
{
    reshard_fault fault{.rank = move.to, .other = move.from};
    if (move.tensor.value < 0 || at(move.tensor) >= plan.tensors.size()) {
        fault.error = reshard_error::no_such_tensor;
        fault.number = move.tensor.value;
        fault.limit = static_cast<std::int64_t>(plan.tensors.size());
        return fault;
    }
    auto const& tensor = plan.tensors[at(move.tensor)];
    fault.name = tensor.name;
    fault.box = move.box;
    bool const ascends = after == nullptr || after->round < move.round ||
                         (after->round == move.round && (after->to < move.to || (after->to == move.to && after->tensor <= move.tensor)));
    std::int64_t unit = 0;
    for (int r = 0; r < tensor_roles; ++r) {
        auto const role = static_cast<tensor_role>(r);
        unit += move.roles.has(role) ? format_of(plan, move.tensor, role).travelling.size.count : 0;
    }
    auto const count = count_elements(move.box);
    std::int64_t size = 0;
    bool const fits = count && !__builtin_mul_overflow(*count, unit, &size);
    if (!ascends || move.round < 0) {
        fault.error = reshard_error::wrong_order;
    } else if (move.from.value < 0 || move.to.value < 0 || move.to.value >= most_ranks) {
        fault.error = reshard_error::bad_rank;
        fault.number = move.from.value < 0 ? move.from.value : move.to.value;
    } else if (move.from == move.to) {
        fault.error = reshard_error::comes_twice;
    } else if (move.box.dimensions != tensor.shape.dimensions || !contains(whole(tensor.shape), move.box)) {
        fault.error = reshard_error::outside;
        fault.other_box = whole(tensor.shape);
    } else if (!fits || *count == 0 || size != move.size.count) {
        fault.error = reshard_error::wrong_size;
        fault.number = move.size.count;
        fault.limit = fits ? size : 0;
    }
    return fault;
}

/// Drops what the plan drops after a round. @param drop the next one
template <class OnlyWhenCalled = void>
constexpr reshard_fault fault_of_drops(reshard_plan const& plan, int round, std::size_t& drop, parts_by_rank& has)
{
    for (; drop < plan.dropped.size() && plan.dropped[drop].round <= round; ++drop) {
        auto const rank = plan.dropped[drop].rank;
        auto part = plan.dropped[drop].part;
        if (plan.dropped[drop].round != round || part.tensor.value < 0 || at(part.tensor) >= plan.tensors.size()) {
            return {.error = reshard_error::wrong_order, .rank = rank};
        }
        if (!(part.roles & changed_in(plan, part.tensor)).empty()) {
            return {.error = reshard_error::changed_in_place, .rank = rank, .name = plan.tensors[at(part.tensor)].name};
        }
        part.roles = part.roles & roles_of(plan.tensors[at(part.tensor)]);
        if (auto const rest = has.missing(rank, part); !rest.empty()) {
            return {.error = reshard_error::not_there, .rank = rank, .name = plan.tensors[at(part.tensor)].name, .box = rest.front()};
        }
        has.drop(rank, part);
    }
    return {};
}

/// Runs the rounds. @param has what each rank has, before and after
template <class OnlyWhenCalled = void>
constexpr reshard_fault fault_of_rounds(reshard_plan const& plan, parts_by_rank& has)
{
    auto const& moves = plan.transfers;
    std::size_t drop = 0;
    if (auto const fault = fault_of_drops(plan, -1, drop, has)) {
        return fault;
    }
    for (std::size_t first = 0, last = 0; first < moves.size(); first = last) {
        auto const round = moves[first].round;
        for (last = first; last < moves.size() && moves[last].round == round; ++last) {
            auto const& move = moves[last];
            if (auto const fault = fault_of_transfer(plan, move, last == 0 ? nullptr : &moves[last - 1])) {
                return fault;
            }
            if (auto const rest = has.missing(move.from, {move.tensor, move.box, move.roles}); !rest.empty()) {
                return {.error = reshard_error::not_there, .rank = move.from, .name = plan.tensors[at(move.tensor)].name, .box = rest.front()};
            }
        }
        for (auto i = first; i < last; ++i) {
            array_part const part{moves[i].tensor, moves[i].box, not_added(plan, moves[i].tensor, moves[i].roles)};  // what is added so far is no addend
            if (has.has_some(moves[i].to, part)) {
                return {.error = reshard_error::comes_twice, .rank = moves[i].to, .name = plan.tensors[at(part.tensor)].name, .box = part.box};
            }
            has.add(moves[i].to, part);
        }
        if (auto const fault = fault_of_drops(plan, round, drop, has)) {
            return fault;
        }
    }
    return drop < plan.dropped.size() ? reshard_fault{.error = reshard_error::wrong_order, .rank = plan.dropped[drop].rank} : reshard_fault{};
}

/// What comes to each rank, by transfer or because it is kept; sums are judged by themselves.
template <class OnlyWhenCalled = void>
constexpr parts_by_rank arrivals_of(reshard_plan const& plan)
{
    parts_by_rank arrived;
    for (auto const& kept : plan.kept) {
        for (auto const rank : kept.ranks) {
            for (auto const& part : kept.parts) {
                arrived.add(rank, {part.tensor, part.box, not_added(plan, part.tensor, part.roles)});
            }
        }
    }
    for (auto const& move : plan.transfers) {
        arrived.add(move.to, {move.tensor, move.box, not_added(plan, move.tensor, move.roles)});
    }
    return arrived;
}

template <class OnlyWhenCalled = void>
constexpr std::vector<array_part> by_tensor(array_view<array_part const> parts)
{
    std::vector<array_part> sorted(parts.begin(), parts.end());
    auto const before = [](array_part const& a, array_part const& b) { return a.tensor < b.tensor; };
    if (!std::is_sorted(sorted.begin(), sorted.end(), before)) {
        std::sort(sorted.begin(), sorted.end(), before);
    }
    return sorted;
}

/// What one rank wants and gets. @pre both ascend by tensor
template <class OnlyWhenCalled = void>
constexpr reshard_fault fault_of_tensors_at(reshard_plan const& plan, rank_id rank, std::vector<array_part> const& wants, std::vector<array_part> const& comes)
{
    std::vector<array_part> of_tensor;
    for (std::size_t w = 0, c = 0; w < wants.size() || c < comes.size();) {
        auto const tensor = c == comes.size() || (w < wants.size() && wants[w].tensor <= comes[c].tensor) ? wants[w].tensor : comes[c].tensor;
        of_tensor.clear();
        for (; w < wants.size() && wants[w].tensor == tensor; ++w) {
            of_tensor.push_back(wants[w]);
        }
        auto const wanted = of_tensor.size();
        for (; c < comes.size() && comes[c].tensor == tensor; ++c) {
            of_tensor.push_back(comes[c]);
        }
        reshard_fault const place{.rank = rank, .name = plan.tensors[at(tensor)].name};
        array_view<array_part const> const all{of_tensor};
        for (int k = 0; k < tensor_roles; ++k) {
            auto const role = static_cast<tensor_role>(k);
            bool const is_new = k == 0 || !go_together(of_tensor, role, static_cast<tensor_role>(k - 1));
            if (is_new) {
                auto const fault =
                    fault_of_arrivals(boxes_in(all.first(wanted), tensor, role), boxes_in(all.subspan(wanted, all.size() - wanted), tensor, role), place);
                if (fault) {
                    return fault;
                }
            }
        }
    }
    return {};
}

template <class OnlyWhenCalled = void>
constexpr reshard_fault fault_of_arrivals(reshard_plan const& plan, array_layout const& to, parts_by_rank const& has)
{
    auto without_sums = to;
    for (auto& place : without_sums.places) {
        for (auto& part : place.parts) {
            part.roles = not_added(plan, part.tensor, part.roles);
        }
    }
    parts_by_rank const wanted{without_sums};
    auto const arrived = arrivals_of(plan);
    for (std::size_t r = 0; r < std::max(wanted.ranks(), arrived.ranks()); ++r) {
        rank_id const rank{static_cast<std::int32_t>(r)};
        auto const wants = wanted.of(rank);
        if (auto const fault = fault_of_tensors_at(plan, rank, by_tensor(wants), by_tensor(arrived.of(rank)))) {
            return fault;
        }
        for (auto const& part : wants) {
            if (auto const rest = has.missing(rank, part); !rest.empty()) {
                return {.error = reshard_error::never_comes, .rank = rank, .name = plan.tensors[at(part.tensor)].name, .box = rest.front()};
            }
        }
    }
    return {};
}

}  // namespace detail

/// The first fault of a plan between these layouts; describe() makes the sentence, which is empty when there is none.
/// @pre both layouts are without fault and of the same tensors
/// @param node_of by rank, as in the request; empty: what goes between nodes is not counted
/// Cost: about (parts + transfers) x boxes of a tensor at a rank
template <class OnlyWhenCalled = void>
constexpr reshard_fault verify(reshard_plan const& plan, array_layout const& from, array_layout const& to, std::vector<node_id> const& node_of = {})
{
    if (plan.tensors != to.tensors) {
        return {.error = reshard_error::other_tensors, .name = to.tensors.empty() ? tensor_name{} : to.tensors.front().name};
    }
    if (auto const fault = detail::fault_of_places(plan, to)) {
        return fault;
    }
    if (auto const fault = detail::fault_of_formats(plan, from)) {
        return fault;
    }
    detail::parts_by_rank has{from};
    for (auto const& kept : plan.kept) {
        for (auto const rank : kept.ranks) {
            for (auto const& part : kept.parts) {
                if (part.tensor.value < 0 || at(part.tensor) >= plan.tensors.size()) {
                    return {.error = reshard_error::no_such_tensor,
                            .rank = rank,
                            .number = part.tensor.value,
                            .limit = static_cast<std::int64_t>(plan.tensors.size())};
                }
                auto const roles = part.roles & roles_of(plan.tensors[at(part.tensor)]);
                if (auto const rest = has.missing(rank, {part.tensor, part.box, roles}); !rest.empty()) {
                    return {.error = reshard_error::not_there, .rank = rank, .name = plan.tensors[at(part.tensor)].name, .box = rest.front()};
                }
            }
        }
    }
    if (auto const fault = detail::fault_of_rounds(plan, has)) {
        return fault;
    }
    if (auto const fault = detail::fault_of_arrivals(plan, with_ranks_of(plan, to), has)) {
        return fault;
    }
    if (auto const fault = detail::fault_of_sums(plan, from, with_ranks_of(plan, to))) {
        return fault;
    }
    if (auto const fault = detail::fault_of_copies(plan, from, {}, 0)) {
        return fault;
    }
    return detail::fault_of_figures(plan, from, to, node_of);
}

/// As above, and that the plan keeps what the request asks for: live ranks only, those that it names for the places, the budget of a round, the memory
/// limit, and failures + 1 copies. @pre the request is one that plan_reshard takes
template <class OnlyWhenCalled = void>
constexpr reshard_fault verify(reshard_plan const& plan, reshard_request const& request)
{
    if (auto const fault = verify(plan, request.from, request.to, request.node_of)) {
        return fault;
    }
    auto const live = detail::live_ranks(request);
    if (auto const fault = detail::fault_of_used_ranks(plan, request, live)) {
        return fault;
    }
    if (auto const fault = detail::fault_of_copies(plan, request.from, live, request.failures)) {
        return fault;
    }
    return detail::fault_of_sizes(plan, request);
}

#ifdef RHEO_COMPILED  // in rheo::compiled
extern template reshard_fault verify<>(reshard_plan const&, array_layout const&, array_layout const&, std::vector<node_id> const&);
extern template reshard_fault verify<>(reshard_plan const&, reshard_request const&);
#endif

}  // namespace rheo::inline v0
