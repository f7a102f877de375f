#pragma once
// SPDX-License-Identifier: Apache-2.0

// Whether a plan keeps the limits of its request: copies that stay while others are dropped, bytes of a round, memory, ranks that are live. And
// whether its certificate says what it does.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "rheo/reshard/detail/certify.hpp"
#include "rheo/reshard/detail/split_box.hpp"
#include "rheo/reshard/reshard_fault.hpp"
#include "rheo/reshard/reshard_plan.hpp"

namespace rheo::inline v0::detail {

/// A copy that is there from the beginning, arrives in a round, or is dropped after one.
struct copy_event {
    int round;
    int change;
    rank_id rank;

    /// Rounds ascend, and arrivals come before drops.
    friend constexpr bool operator<(copy_event const& a, copy_event const& b) { return a.round != b.round ? a.round < b.round : a.change > b.change; }
};

inline constexpr int from_the_beginning = -2;

/// The copies of one (tensor, role) and their boxes.
struct copy_history {
    std::vector<nd_box> boxes{};
    std::vector<copy_event> events{};

    template <class OnlyWhenCalled = void>
    constexpr void add(nd_box const& box, copy_event event)
    {
        if (!is_empty(box)) {
            boxes.push_back(box);
            events.push_back(event);
        }
    }
};

/// Follows the copies of elements that have the same history.
template <class OnlyWhenCalled = void>
constexpr reshard_fault fault_of_history(std::vector<copy_event> events, int failures)
{
    std::sort(events.begin(), events.end());
    std::int64_t first = 0;
    std::int64_t copies = 0;
    for (auto const& event : events) {
        first += event.round == from_the_beginning ? 1 : 0;
        copies += event.change;
        if (auto const least = std::min(first, std::int64_t{failures} + 1); event.change < 0 && copies < least) {
            return {.error = reshard_error::few_copies, .rank = event.rank, .number = copies, .limit = least, .round = event.round};
        }
    }
    return {};
}

template <class OnlyWhenCalled = void>
constexpr copy_history history_of(reshard_plan const& plan, array_layout const& from, std::vector<rank_id> const& live, tensor_id tensor, tensor_role role)
{
    copy_history history;
    for (auto const& place : from.places) {
        for (auto const& part : place.parts) {
            for (auto const rank : place.ranks) {
                if (part.tensor == tensor && part.roles.has(role) && (live.empty() || std::binary_search(live.begin(), live.end(), rank))) {
                    history.add(data_of(from.tensors[at(tensor)], part.box), {from_the_beginning, 1, rank});
                }
            }
        }
    }
    for (auto const& move : plan.transfers) {
        if (move.tensor == tensor && move.roles.has(role)) {
            history.add(move.box, {move.round, 1, move.to});
        }
    }
    for (auto const& drop : plan.dropped) {
        if (drop.part.tensor == tensor && drop.part.roles.has(role)) {
            history.add(drop.part.box, {drop.round, -1, drop.rank});
        }
    }
    return history;
}

/// That f + 1 copies of each element stay, or as many as there are.
/// @pre the plan was replayed without fault @param live ascending; empty: all
template <class OnlyWhenCalled = void>
constexpr reshard_fault fault_of_copies(reshard_plan const& plan, array_layout const& from, std::vector<rank_id> const& live, int failures)
{
    std::vector<role_set> dropped(plan.tensors.size(), role_set{std::uint8_t{0}});
    for (auto const& drop : plan.dropped) {
        dropped[at(drop.part.tensor)] = dropped[at(drop.part.tensor)] | (drop.part.roles & roles_of(plan.tensors[at(drop.part.tensor)]));
    }
    reshard_fault found;
    for (std::size_t t = 0; t < dropped.size(); ++t) {
        tensor_id const tensor{static_cast<std::int32_t>(t)};
        for (int r = 0; r < tensor_roles; ++r) {
            if (!dropped[t].has(static_cast<tensor_role>(r))) {
                continue;
            }
            auto const history = history_of(plan, from, live, tensor, static_cast<tensor_role>(r));
            std::vector<std::size_t> every;
            for (std::size_t b = 0; b < history.boxes.size(); ++b) {
                every.push_back(b);
            }
            std::vector<std::size_t> covering;
            split_box(whole(plan.tensors[t].shape), history.boxes, every, covering, [&](nd_box const& box, std::vector<std::size_t> const& by) {
                std::vector<copy_event> events;
                for (auto const b : by) {
                    events.push_back(history.events[b]);
                }
                if (auto fault = fault_of_history(events, failures); fault && !found) {
                    fault.name = plan.tensors[t].name;
                    fault.box = box;
                    found = fault;
                }
            });
            if (found) {
                return found;
            }
        }
    }
    return {};
}

/// That no rank receives more than the budget in a round, nor ever has more than the limit. @pre the plan was replayed without fault
template <class OnlyWhenCalled = void>
constexpr reshard_fault fault_of_sizes(reshard_plan const& plan, reshard_request const& request)
{
    auto has = layout_bytes(request.from);
    std::size_t drop = 0;
    auto const drop_after = [&](int round) {
        for (; drop < plan.dropped.size() && plan.dropped[drop].round == round; ++drop) {
            has.add(plan.dropped[drop].rank, -data_bytes(request.from.tensors[at(plan.dropped[drop].part.tensor)], plan.dropped[drop].part));
        }
    };
    if (request.memory_limit && request.memory_limit->count < has.largest()) {
        return {.error = reshard_error::small_memory, .number = request.memory_limit->count, .limit = has.largest()};
    }
    drop_after(-1);
    for (std::size_t i = 0; i < plan.transfers.size();) {
        auto const round = plan.transfers[i].round;
        rank_bytes received;
        for (; i < plan.transfers.size() && plan.transfers[i].round == round; ++i) {
            auto const& move = plan.transfers[i];
            received.add(move.to, move.size.count);
            has.add(move.to, kept_size(plan, move));
            if (request.round_budget && received[move.to] > request.round_budget->count) {
                return {
                    .error = reshard_error::over_budget, .rank = move.to, .number = received[move.to], .limit = request.round_budget->count, .round = round};
            }
            if (request.memory_limit && has[move.to] > request.memory_limit->count) {
                return {.error = reshard_error::over_memory, .rank = move.to, .number = has[move.to], .limit = request.memory_limit->count, .round = round};
            }
        }
        drop_after(round);
    }
    return {};
}

/// That only live ranks are used, and that they take places as the request lets them.
template <class OnlyWhenCalled = void>
constexpr reshard_fault fault_of_used_ranks(reshard_plan const& plan, reshard_request const& request, std::vector<rank_id> const& live)
{
    auto const dead = [&](rank_id rank) { return !std::binary_search(live.begin(), live.end(), rank); };
    for (auto const& move : plan.transfers) {
        if (dead(move.from) || dead(move.to)) {
            return {.error = reshard_error::not_live, .rank = dead(move.from) ? move.from : move.to};
        }
    }
    for (auto const& drop : plan.dropped) {
        if (dead(drop.rank)) {
            return {.error = reshard_error::not_live, .rank = drop.rank};
        }
    }
    for (auto const& place : request.to.places) {
        for (auto const rank : place.ranks) {
            if (dead(rank_at(plan, rank))) {
                return {.error = reshard_error::not_live, .rank = rank_at(plan, rank)};
            }
            if (request.ranks == rank_choice::pinned && rank_at(plan, rank) != rank) {
                return {.error = reshard_error::wrong_place, .rank = rank};
            }
        }
    }
    for (std::size_t a = 0; request.ranks == rank_choice::whole_nodes && a < plan.taken.size(); ++a) {
        auto const node = [&](rank_id rank) { return request.node_of[at(rank)]; };
        auto const& one = plan.taken[a];
        for (auto const& other : plan.taken) {
            if ((node(one.place) == node(other.place)) != (node(one.rank) == node(other.rank))) {
                return {.error = reshard_error::wrong_place, .rank = other.rank};
            }
        }
    }
    return {};
}

constexpr reshard_fault fault_of_figure(std::string_view quantity, std::int64_t said, std::int64_t is)
{
    return {.error = said == is ? reshard_error::none : reshard_error::wrong_sum, .number = said, .limit = is, .quantity = quantity};
}

template <class OnlyWhenCalled = void>
constexpr reshard_fault fault_of_figures(reshard_plan const& plan, array_layout const& from, array_layout const& to, std::vector<node_id> const& node_of)
{
    auto const figures = figures_of(plan, from, to, node_of);
    auto const& said = plan.certificate;
    for (auto const& fault : {
             fault_of_figure("moved bytes", said.moved.value.count, figures.moved.value.count),
             fault_of_figure("the largest send", said.largest_send.value.count, figures.largest_send.value.count),
             fault_of_figure("the largest receive", said.largest_receive.value.count, figures.largest_receive.value.count),
             fault_of_figure("bytes between nodes", said.between_nodes.value.count,
                             node_of.empty() ? said.between_nodes.value.count : figures.between_nodes.value.count),
             fault_of_figure("rounds", said.rounds.value, figures.rounds.value),
             fault_of_figure("the peak", said.peak.value.count, figures.peak.value.count),
         }) {
        if (fault) {
            return fault;
        }
    }
    return {};
}

}  // namespace rheo::inline v0::detail
