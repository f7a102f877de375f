#pragma once
// SPDX-License-Identifier: Apache-2.0

// Plans of a training: that of a membership, and the one for a whole step that follows from it. A function of what all ranks know, so every rank comes
// to the same plan by itself.

#include <vector>

#include "executor/train/job.hpp"
#include "rheo/plan/plan.hpp"
#include "rheo/planner/contingency_plans.hpp"
#include "rheo/recover/action.hpp"
#include "rheo/recover/membership_plan.hpp"

namespace rheo::inline v0 {

class step_planner {
public:
    /// @param config whose [plan] `first` was made from  @param first the plan to begin with, for all ranks
    step_planner(job const& about, run_config config, plan first, replanning known);

    /// The first plan, for members with these holdings.
    membership_plan first_for(std::vector<rank_holdings> const& holdings) const;

    /// For the members by what they hold. @param in_force the one before; without pipelines at the start
    membership_plan plan_for(std::vector<rank_holdings> const& holdings, membership_plan const& in_force, std::vector<rank_id> const& departing) const;

    /// The plan of a whole step on a membership's pipelines.
    plan whole_step(membership_plan const& on) const;
    /// The same, or what a loss has left of the step.
    plan section(membership_plan const& on, section_work work) const;

    /// Whether places would be dealt again between two steps, because a rank that waits would help.
    bool regroups(membership_plan const& on) const { return would_regroup(on, known_, rules_); }

    /// The plans to which losses may lead.
    contingency_plans contingencies(membership_plan const& on) const { return {whole_step(on), on, known_, rules_}; }

    run_config const& config() const { return config_; }
    replanning const& known() const { return known_; }

private:
    membership_plan within_memory(std::vector<rank_holdings> const& holdings, membership_plan planned) const;

    job const* job_;
    run_config config_;
    plan first_;
    replanning known_;
    membership_rules rules_;
    in_place_memory memory_;  ///< for changes between two steps
};

}  // namespace rheo::inline v0
