#pragma once
// SPDX-License-Identifier: Apache-2.0

// Cuts that minimise pipeline_estimate exactly, one device per stage. Dividing and conquering as Oobleck does is not
// enough: the best cuts of the parts are not the parts of the best cuts. But once the slowest stage, layers [a, b) of
// cost L, is chosen, T depends on a, b and the number of stages after it alone; what is left to ask is whether the
// layers before a can be cut into stages of at most L and those from b on into stages of less, and two tables of least
// slowest stages know that. So all slowest stages are tried.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "rheo/partition/cuts.hpp"
#include "rheo/partition/optimal.hpp"
#include "rheo/partition/pipeline_estimate.hpp"
#include "rheo/topology/tagged_index.hpp"
#include "rheo/units/array_view.hpp"
#include "rheo/units/expects.hpp"

namespace rheo::inline v0 {

namespace detail {

/// Which stage is the slowest: the number of stages before it, and its layers.
struct slowest_stage {
    std::size_t before;
    std::size_t begin;
    std::size_t end;
};

/// Appends the cuts of layers [begin, end) into `stages` stages of at most `most`, each as early as it can be, which
/// makes them the lexicographically smallest; the begin itself is not appended. @pre there are such cuts
template <class OnlyWhenCalled = void>
constexpr void append_earliest(std::vector<layer_id>& bounds, std::vector<std::int64_t> const& before, std::size_t begin, std::size_t end, std::size_t stages,
                               std::int64_t most)
{
    auto const first = bounds.size();
    bounds.resize(first + stages);
    for (auto s = stages; s > 0; --s) {
        bounds[first + s - 1] = layer_id{static_cast<std::int32_t>(end)};
        auto earliest = end - 1;
        while (earliest > begin + s - 1 && before[end] - before[earliest - 1] <= most) {
            --earliest;
        }
        end = earliest;
    }
}

/// What both ways of asking share: one number of stages, or all up to one.
struct estimate_tables {
    partition_table from;                          ///< [stages][first layer]: of the layers from there on
    std::vector<std::vector<std::int64_t>> up_to;  ///< [stages][layer]: of the layers before it
};

template <class OnlyWhenCalled = void>
constexpr estimate_tables make_estimate_tables(array_view<std::int64_t const> layer_costs, int most_stages)
{
    std::vector<std::int64_t> mirrored(layer_costs.begin(), layer_costs.end());
    std::reverse(mirrored.begin(), mirrored.end());
    estimate_tables tables{partition_up_to(layer_costs, most_stages, any_stage{}), {}};
    for (auto& row : partition_up_to(mirrored, most_stages, any_stage{}).slowest) {
        std::reverse(row.begin(), row.end());
        tables.up_to.push_back(std::move(row));
    }
    return tables;
}

template <class OnlyWhenCalled = void>
constexpr std::vector<layer_id> estimate_cuts_from(estimate_tables const& tables, std::size_t stages, int microbatches)
{
    auto const& before = tables.from.before;
    auto const layers = before.size() - 1;
    auto best = no_partition;
    std::vector<slowest_stage> chosen;
    for (std::size_t k = 0; k < stages && stages <= layers; ++k) {
        auto const after = stages - 1 - k;
        auto const factor = microbatches - 1 - static_cast<std::int64_t>(after);  // of L beside its place in the sum
        for (auto a = k; a + after < layers && (k > 0 || a == 0); ++a) {
            auto const least = tables.up_to[k][a];
            if (least == no_partition) {
                continue;
            }
            for (auto b = after == 0 ? layers : a + 1; b + after <= layers; ++b) {
                auto const slowest = before[b] - before[a];
                if (slowest < least || (after > 0 && tables.from.slowest[after][b] >= slowest)) {
                    continue;
                }
                auto const time = before[layers] + factor * slowest + before[layers] - before[b];
                if (time < best) {
                    best = time;
                    chosen.clear();
                }
                if (time == best) {
                    chosen.push_back({k, a, b});
                } else if (factor >= 1) {
                    break;  // a longer slowest stage takes longer
                }
            }
        }
    }
    std::vector<layer_id> result;
    for (auto const& stage : chosen) {
        std::vector<layer_id> bounds{layer_id{0}};
        auto const slowest = before[stage.end] - before[stage.begin];
        append_earliest(bounds, before, 0, stage.begin, stage.before, slowest);
        bounds.push_back(layer_id{static_cast<std::int32_t>(stage.end)});
        append_earliest(bounds, before, stage.end, layers, stages - 1 - stage.before, slowest - 1);
        if (result.empty() || bounds < result) {
            result = std::move(bounds);
        }
    }
    return result;
}

}  // namespace detail

/// Cuts of the layers into `stages` stages with the least pipeline_estimate at so many microbatches, ties to the
/// lexicographically smallest cuts. @pre there is a layer, no cost is negative, stages >= 1, microbatches >= 1
/// @return stages + 1 layers; none when there are more stages than layers. Cost: O(stages x layers^2).
template <class OnlyWhenCalled = void>
constexpr std::vector<layer_id> estimate_optimal_cuts(array_view<std::int64_t const> layer_costs, int stages, int microbatches)
{
    expects(microbatches >= 1, "a step needs at least one microbatch");
    return detail::estimate_cuts_from(detail::make_estimate_tables(layer_costs, stages), static_cast<std::size_t>(stages), microbatches);
}

/// The same for times, compared as whole nanoseconds.
template <class OnlyWhenCalled = void>
constexpr std::vector<layer_id> estimate_optimal_cuts(array_view<seconds const> layer_times, int stages, int microbatches)
{
    auto const costs = detail::in_whole_nanoseconds(layer_times);
    return estimate_optimal_cuts(array_view<std::int64_t const>{costs}, stages, microbatches);
}

/// Cuts for 1 .. most_stages stages, each at its usual number of microbatches, from the same tables; entry s - 1 has s
/// stages. @pre as estimate_optimal_cuts. Cost: O(most_stages x layers^2) and, at worst, most_stages times that.
template <class OnlyWhenCalled = void>
constexpr std::vector<std::vector<layer_id>> estimate_optimal_cuts_up_to(array_view<seconds const> layer_times, int most_stages)
{
    auto const costs = detail::in_whole_nanoseconds(layer_times);
    auto const tables = detail::make_estimate_tables(costs, most_stages);
    std::vector<std::vector<layer_id>> result;
    for (int stages = 1; stages <= most_stages; ++stages) {
        result.push_back(detail::estimate_cuts_from(tables, static_cast<std::size_t>(stages), usual_microbatches(stages)));
    }
    return result;
}

}  // namespace rheo::inline v0
