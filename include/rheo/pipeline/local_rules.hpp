#pragma once
// SPDX-License-Identifier: Apache-2.0

// Repairs of single pipelines after a loss, as Oobleck does them (SOSP'23, section 5): a pipeline keeps its ranks and takes a
// smaller template; one that is too small borrows from the largest, as long as that stays large enough; what is
// still too small is merged. They touch few ranks, but they know nothing of how many pipelines there should be: they can
// end below f + 1 although f + 1 fit, which is what repair.hpp looks at.

#include <cstddef>
#include <utility>
#include <vector>

#include "rheo/topology/tagged_index.hpp"
#include "rheo/units/expects.hpp"

namespace rheo::inline v0 {

/// The ranks of each pipeline, in the order of its stages.
using rank_groups = std::vector<std::vector<rank_id>>;

namespace detail {

/// The last of the largest groups; groups.size() when it cannot give a rank away.
constexpr std::size_t largest_donor(rank_groups const& groups, std::size_t smallest)
{
    std::size_t donor = 0;
    for (std::size_t g = 0; g < groups.size(); ++g) {
        donor = groups[g].size() >= groups[donor].size() ? g : donor;
    }
    return groups[donor].size() > smallest ? donor : groups.size();
}

/// Joins groups that are too small with each other, and the last of them with the smallest of the others.
template <class OnlyWhenCalled = void>
constexpr rank_groups merged(rank_groups groups, std::size_t smallest)
{
    rank_groups whole;
    std::vector<rank_id> open;
    for (auto& group : groups) {
        if (group.size() >= smallest) {
            whole.push_back(std::move(group));
            continue;
        }
        open.insert(open.end(), group.begin(), group.end());
        if (open.size() >= smallest) {
            whole.push_back(std::move(open));
            open.clear();
        }
    }
    if (!open.empty()) {
        expects(!whole.empty(), "all ranks together are too few for a pipeline");
        std::size_t host = 0;
        for (std::size_t g = 1; g < whole.size(); ++g) {
            host = whole[g].size() < whole[host].size() ? g : host;
        }
        whole[host].insert(whole[host].end(), open.begin(), open.end());
    }
    return whole;
}

}  // namespace detail

/// The groups after the rules; those without a survivor are gone. @param smallest ranks of a pipeline
/// @pre smallest >= 1, and the survivors are at least that many
template <class OnlyWhenCalled = void>
constexpr rank_groups apply_local_rules(rank_groups survivors, int smallest)
{
    expects(smallest >= 1, "a pipeline has at least one rank");
    auto const least = static_cast<std::size_t>(smallest);
    std::erase_if(survivors, [](auto const& group) { return group.empty(); });
    expects(!survivors.empty(), "all ranks together are too few for a pipeline");
    bool merge = false;
    for (auto& group : survivors) {
        while (group.size() < least) {
            auto const donor = detail::largest_donor(survivors, least);
            if (donor == survivors.size()) {
                merge = true;
                break;
            }
            group.push_back(survivors[donor].back());
            survivors[donor].pop_back();
        }
    }
    if (merge) {
        survivors = detail::merged(std::move(survivors), least);
    }
    return survivors;
}

}  // namespace rheo::inline v0
