// SPDX-License-Identifier: Apache-2.0
#include "executor/train/parts/reduction_parts.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "rheo/plan/keepers.hpp"
#include "rheo/plan/tensor_holders.hpp"
#include "rheo/schedule/transform/reductions.hpp"

namespace rheo::inline v0 {

std::vector<reduction_part> reduction_parts(plan const& where, std::vector<reduction_unit> const& units, collection const& state, int grid, rank_id self)
{
    auto const holders = holders_by_tensor(array_view{where.pipelines}, state, grid);
    auto const keepers = keepers_by_tensor(array_view{where.pipelines}, state, grid, where.optimizer);
    std::vector<reduction_part> mine;
    int number = 0;
    for (std::size_t u = 0; u < units.size(); ++u) {
        std::vector<reduction_part> parts;
        for (auto const t : units[u].tensors) {
            auto const known = std::find_if(parts.begin(), parts.end(),
                                            [&](reduction_part const& part) { return part.holders == holders[at(t)] && part.keepers == keepers[at(t)]; });
            if (known != parts.end()) {
                known->sums.tensors.push_back(t);
            } else {
                parts.push_back({0, u, {{t}, units[u].layers}, holders[at(t)], keepers[at(t)]});
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

std::vector<nccl::connection> groups_of(std::deque<reduction_part> const& parts, int layers)
{
    std::map<std::vector<rank_id>, std::vector<reduction_part const*>> by_holders;
    for (auto const& part : parts) {
        if (part.holders.size() > 1) {
            by_holders[part.holders].push_back(&part);
        }
    }
    std::vector<nccl::connection> groups;
    for (auto& [holders, together] : by_holders) {
        std::sort(together.begin(), together.end(), [&](auto const* a, auto const* b) {
            return a->unit == b->unit
                       ? a->number < b->number
                       : awaited_before(reduction_id{static_cast<std::int32_t>(a->unit)}, reduction_id{static_cast<std::int32_t>(b->unit)}, layers);
        });
        std::vector<reduction_id> sums;
        std::transform(together.begin(), together.end(), std::back_inserter(sums), [](auto const* part) { return reduction_id{part->number}; });
        bool const exchanges = std::any_of(together.begin(), together.end(), [](auto const* part) { return part->keepers.size() < part->holders.size(); });
        groups.push_back(nccl::holders_of(std::move(sums), holders, exchanges));
    }
    return groups;
}

}  // namespace rheo::inline v0
