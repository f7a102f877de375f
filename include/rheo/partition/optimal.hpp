#pragma once
// SPDX-License-Identifier: Apache-2.0

// Exactly optimal contiguous partition: layers to stages so that the slowest stage takes the least time.
// Dynamic programming over suffixes: `slowest[s][b]` is the best that s stages can do for the layers b and
// after, so one table serves every number of stages, and a stage knows how many stages follow it, which
// decides its activations in flight under 1F1B. Costs are whole numbers, so the optimum has no rounding.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "rheo/partition/cuts.hpp"
#include "rheo/topology/tagged_index.hpp"
#include "rheo/units/array_view.hpp"
#include "rheo/units/expects.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

/// Allows every stage. A rule is called with a stage's layers and the number of stages from it to the
/// last, itself included.
struct any_stage {
    constexpr bool operator()(layer_span, int) const { return true; }
};

namespace detail {

inline constexpr std::int64_t no_partition = std::numeric_limits<std::int64_t>::max();

struct partition_table {
    std::vector<std::int64_t> before;                ///< cost of the layers before each layer
    std::vector<std::vector<std::int64_t>> slowest;  ///< [stages][first layer]
};

constexpr layer_span span_of(std::size_t begin, std::size_t end)
{
    return {layer_id{static_cast<std::int32_t>(begin)}, layer_id{static_cast<std::int32_t>(end)}};
}

template <class Rule>
constexpr partition_table partition_up_to(array_view<std::int64_t const> layer_costs, int most_stages, Rule const& allows)
{
    expects(!layer_costs.empty(), "a model without layers has no partition");
    expects(most_stages >= 1, "a partition needs at least one stage");
    auto const layers = layer_costs.size();
    auto const stages = static_cast<std::size_t>(most_stages);
    partition_table table{std::vector<std::int64_t>(layers + 1, 0),
                          std::vector<std::vector<std::int64_t>>(stages + 1, std::vector<std::int64_t>(layers + 1, no_partition))};
    for (std::size_t l = 0; l < layers; ++l) {
        expects(layer_costs[l] >= 0, "a layer cannot have a negative cost");
        table.before[l + 1] = table.before[l] + layer_costs[l];
    }
    table.slowest[0][layers] = 0;
    for (std::size_t s = 1; s <= stages; ++s) {
        for (std::size_t begin = 0; begin + s <= layers; ++begin) {
            auto best = no_partition;
            for (std::size_t end = begin + 1; end + s <= layers + 1; ++end) {
                auto const mine = table.before[end] - table.before[begin];
                if (mine >= best) {
                    break;
                }
                auto const rest = table.slowest[s - 1][end];
                auto const both = mine < rest ? rest : mine;
                if (both < best && allows(span_of(begin, end), static_cast<int>(s))) {
                    best = both;
                }
            }
            table.slowest[s][begin] = best;
        }
    }
    return table;
}

/// The lexicographically smallest cuts among the optimal ones; empty when no partition is allowed.
template <class Rule>
constexpr std::vector<layer_id> cuts_from(partition_table const& table, int stages, Rule const& allows)
{
    auto const layers = table.before.size() - 1;
    auto const optimum = table.slowest[static_cast<std::size_t>(stages)][0];
    std::vector<layer_id> bounds;
    if (optimum == no_partition) {
        return bounds;
    }
    bounds.push_back(layer_id{0});
    std::size_t begin = 0;
    for (auto s = static_cast<std::size_t>(stages); s > 0; --s) {
        std::size_t end = begin + 1;
        while (end <= layers && !(table.before[end] - table.before[begin] <= optimum && table.slowest[s - 1][end] <= optimum &&
                                  allows(span_of(begin, end), static_cast<int>(s)))) {
            ++end;
        }
        bounds.push_back(layer_id{static_cast<std::int32_t>(end)});
        begin = end;
    }
    return bounds;
}

template <class OnlyWhenCalled = void>
constexpr std::vector<std::int64_t> in_whole_nanoseconds(array_view<seconds const> times)
{
    std::vector<std::int64_t> result;
    for (auto const time : times) {
        result.push_back(rheo::in_whole_nanoseconds(time));
    }
    return result;
}

}  // namespace detail

/// Cuts of the layers into `stages` stages with the least slowest stage, ties to the lexicographically
/// smallest cuts. `allows` may refuse stages (see stage_memory.hpp).
/// @pre there is a layer, no cost is negative, stages >= 1
/// @return stages + 1 layers; none when no partition is allowed (more stages than layers, or no memory)
/// Cost: O(stages x layers^2).
template <class Rule = any_stage>
constexpr std::vector<layer_id> optimal_cuts(array_view<std::int64_t const> layer_costs, int stages, Rule const& allows = {})
{
    return detail::cuts_from(detail::partition_up_to(layer_costs, stages, allows), stages, allows);
}

/// The same for times, compared as whole nanoseconds.
template <class Rule = any_stage>
constexpr std::vector<layer_id> optimal_cuts(array_view<seconds const> layer_times, int stages, Rule const& allows = {})
{
    auto const costs = detail::in_whole_nanoseconds(layer_times);
    return optimal_cuts(array_view<std::int64_t const>{costs}, stages, allows);
}

/// Optimal cuts for 1 .. most_stages stages from one table; entry s - 1 has s stages, and none where
/// nothing is allowed.
/// @pre as optimal_cuts. Cost: O(most_stages x layers^2).
template <class Rule = any_stage>
constexpr std::vector<std::vector<layer_id>> optimal_cuts_up_to(array_view<seconds const> layer_times, int most_stages, Rule const& allows = {})
{
    auto const costs = detail::in_whole_nanoseconds(layer_times);
    auto const table = detail::partition_up_to(costs, most_stages, allows);
    std::vector<std::vector<layer_id>> result;
    for (int stages = 1; stages <= most_stages; ++stages) {
        result.push_back(detail::cuts_from(table, stages, allows));
    }
    return result;
}

}  // namespace rheo::inline v0
