#pragma once
// SPDX-License-Identifier: Apache-2.0

// The least slowest stage of the last layers on the last devices, for every number of layers, stages and devices: the
// table of optimal.hpp with a further dimension, because a stage may take several devices of a node. What a stage costs may
// depend on its number, too, as the bound of its row does.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "rheo/partition/cuts.hpp"
#include "rheo/partition/optimal.hpp"
#include "rheo/partition/stage_prices.hpp"

namespace rheo::inline v0::detail {

/// Whether a stage that takes d of the last `devices` devices has them all in one node.
constexpr bool same_node(int devices, int d, int per_node) { return (devices - d) / per_node == (devices - 1) / per_node; }

struct slowest_table {
    int layers = 0;
    int stages = 0;
    int devices = 0;
    int per_node = 1;
    std::vector<std::int64_t> slowest{};  ///< [stages][first layer][devices]; with one device per stage the last is left out

    constexpr std::size_t place(int stages_left, int begin, int devices_left) const
    {
        auto const row = static_cast<std::size_t>(stages_left) * static_cast<std::size_t>(layers + 1) + static_cast<std::size_t>(begin);
        return per_node == 1 ? row : row * static_cast<std::size_t>(devices + 1) + static_cast<std::size_t>(devices_left);
    }

    constexpr std::int64_t of(int stages_left, int begin, int devices_left) const
    {
        return devices_left < 0 ? no_partition : slowest[place(stages_left, begin, devices_left)];
    }

    /// The first cuts and devices that reach the table's value. @pre there are some
    /// @param cost as the table was made with
    template <class Cost>
    constexpr std::pair<std::vector<layer_id>, std::vector<int>> reconstruct(Cost const& cost) const
    {
        std::pair<std::vector<layer_id>, std::vector<int>> result{{layer_id{0}}, {}};
        auto const optimum = of(stages, 0, devices);
        int begin = 0;
        int free = devices;
        for (int left = stages - 1; left >= 0; --left) {
            bool found = false;
            for (int end = left == 0 ? layers : begin + 1; !found && end + left <= layers; ++end) {
                layer_span const span{layer_id{begin}, layer_id{end}};
                for (int d = 1; !found && d <= per_node && d <= free; ++d) {
                    if (same_node(free, d, per_node) && of(left, end, free - d) <= optimum && cost(span, d, stages - 1 - left) <= optimum) {
                        result.first.push_back(layer_id{end});
                        result.second.push_back(d);
                        begin = end;
                        free -= d;
                        found = true;
                    }
                }
            }
        }
        return result;
    }
};

/// @param cost of a stage's layers, its devices and its number; no_partition when it is not allowed
/// @param least what layers and devices cost at least; it does not fall when layers are added
/// @pre devices are a multiple of per_node, or per_node is 1 and there are as many as stages
template <class Cost, class Least>
constexpr slowest_table make_slowest_table(int layers, int stages, int devices, int per_node, Cost const& cost, Least const& least)
{
    slowest_table table{layers, stages, devices, per_node, {}};
    auto const width = per_node == 1 ? std::size_t{1} : static_cast<std::size_t>(devices) + 1;
    table.slowest.resize(static_cast<std::size_t>(stages + 1) * static_cast<std::size_t>(layers + 1) * width, no_partition);
    table.slowest[table.place(0, layers, 0)] = -1;
    for (int left = 1; left <= stages; ++left) {
        auto const most = per_node == 1 ? left : std::min(devices, left * per_node);
        for (int begin = 0; begin + left <= layers; ++begin) {
            for (int free = left; free <= most; ++free) {
                auto best = no_partition;
                for (int d = 1; d <= per_node && d <= free; ++d) {
                    for (int end = left == 1 ? layers : begin + 1; same_node(free, d, per_node) && end + left <= layers + 1; ++end) {
                        layer_span const span{layer_id{begin}, layer_id{end}};
                        if (least(span, d) >= best) {
                            break;
                        }
                        if (auto const rest = table.of(left - 1, end, free - d); rest < best) {
                            best = std::min(best, std::max(rest, cost(span, d, stages - left)));
                        }
                    }
                }
                table.slowest[table.place(left, begin, free)] = best;
            }
        }
    }
    return table;
}

/// What a stage takes for a microbatch where `allows` allows it.
template <class Rule>
constexpr auto stage_time(stage_prices const& prices, Rule const& allows)
{
    return [&](layer_span span, int devices, int stage) { return allows(span, devices, stage) ? prices.time(span, devices) : no_partition; };
}

/// The table of stage_time.
template <class Rule>
constexpr slowest_table make_slowest_table(stage_prices const& prices, int stages, int devices, int per_node, Rule const& allows)
{
    return make_slowest_table(prices.layers(), stages, devices, per_node, stage_time(prices, allows),
                              [&](layer_span span, int d) { return prices.time(span, d); });
}

}  // namespace rheo::inline v0::detail
