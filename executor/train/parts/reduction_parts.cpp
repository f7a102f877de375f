// SPDX-License-Identifier: Apache-2.0
#include "executor/train/parts/reduction_parts.hpp"

#include <algorithm>
#include <utility>

#include "rheo/plan/tensor_holders.hpp"

namespace rheo::inline v0 {

namespace {

/// Holders of a unit's layers in all pipelines, ascending: those of all of its tensors where each rank has whole layers.
std::vector<rank_id> holders_of_layers(plan const& where, reduction_unit const& unit)
{
    std::vector<rank_id> holders;
    for (auto const& pipeline : where.pipelines) {
        auto const here = holders_of(pipeline, unit.layers);
        holders.insert(holders.end(), here.begin(), here.end());
    }
    std::sort(holders.begin(), holders.end());
    return holders;
}

}  // namespace

std::vector<reduction_part> reduction_parts(plan const& where, std::vector<reduction_unit> const& units, collection const& state, int grid, rank_id self)
{
    std::vector<reduction_part> mine;
    int number = 0;
    for (std::size_t u = 0; u < units.size(); ++u) {
        std::vector<reduction_part> parts;
        if (!has_groups(where) && !units[u].tensors.empty()) {
            parts.push_back({0, u, units[u], holders_of_layers(where, units[u])});
        }
        for (std::size_t t = 0; has_groups(where) && t < units[u].tensors.size(); ++t) {
            auto holders = holders_of(array_view{where.pipelines}, state, units[u].tensors[t], grid);
            auto const known = std::find_if(parts.begin(), parts.end(), [&](reduction_part const& part) { return part.holders == holders; });
            if (known != parts.end()) {
                known->tensors.tensors.push_back(units[u].tensors[t]);
            } else {
                parts.push_back({0, u, {{units[u].tensors[t]}, units[u].layers}, std::move(holders)});
            }
        }
        for (auto& part : parts) {
            part.number = number++;
            if (std::binary_search(part.holders.begin(), part.holders.end(), self)) {
                mine.push_back(std::move(part));
            }
        }
    }
    return mine;
}

}  // namespace rheo::inline v0
