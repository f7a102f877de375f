#pragma once
// SPDX-License-Identifier: Apache-2.0

// The plans to which losses may lead, one after the other, the likeliest first: the loss of each rank, of each node, of each two ranks, and then what the
// templates make of every smaller number of ranks. Clocks for them are precomputed. Two losses that lead to pipelines of the same cuts and
// shares need the same frontiers, so there are far fewer of those than plans.

#include <cstddef>
#include <optional>
#include <vector>

#include "rheo/plan/plan.hpp"
#include "rheo/recover/membership_plan.hpp"

namespace rheo::inline v0 {

class contingency_plans {
public:
    /// Above so many ranks pairs are left out: there are too many, and the numbers of ranks that follow have most of their pipelines.
    static constexpr std::size_t most_ranks_for_pairs = 32;

    /// @param like the plan in force, for a whole step  @param in_force the same with what each member holds
    contingency_plans(plan like, membership_plan in_force, replanning known, membership_rules rules);

    /// The next plan of a whole step; none: these were all. Cost: that of a plan after a loss.
    std::optional<plan> next();

private:
    std::optional<plan> after(std::vector<rank_id> const& gone) const;
    std::optional<plan> for_ranks(int ranks) const;

    plan like_;
    membership_plan in_force_;
    replanning known_;
    membership_rules rules_;
    std::vector<std::vector<rank_id>> losses_;
    std::size_t at_ = 0;
    int ranks_ = 0;  ///< the number to be looked at when there are no more losses
};

}  // namespace rheo::inline v0
