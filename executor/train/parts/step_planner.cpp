// SPDX-License-Identifier: Apache-2.0
#include "executor/train/parts/step_planner.hpp"

#include <utility>

#include "executor/plan/planning.hpp"
#include "rheo/planner/make_plan_on.hpp"

namespace rheo::inline v0 {

step_planner::step_planner(job const& about, run_config config, plan first, replanning known)
    : job_{&about},
      config_{std::move(config)},
      first_{std::move(first)},
      known_{std::move(known)},
      rules_{membership_rules_of(config_)},
      memory_{in_place_memory_of(about.model, config_, known_)}
{
}

membership_plan step_planner::within_memory(std::vector<rank_holdings> const& holdings, membership_plan planned) const
{
    limit_to_round(planned, holdings, known_, memory_, rules_);
    return planned;
}

membership_plan step_planner::first_for(std::vector<rank_holdings> const& holdings) const
{
    return within_memory(holdings, plan_as_chosen(holdings, known_, rules_, recomposition_of(first_)));
}

membership_plan step_planner::plan_for(std::vector<rank_holdings> const& holdings, membership_plan const& in_force, std::vector<rank_id> const& departing) const
{
    bool const begins = in_force.pipelines.empty();
    auto places = first_.spares.size();
    for (auto const& pipeline : first_.pipelines) {
        places += ranks_of(pipeline).size();
    }
    if (begins && holdings.size() == places && departing.empty()) {  // no rank has been lost yet: the configured plan
        return first_for(holdings);
    }
    if (auto next = plan_next_round(holdings, in_force, departing, known_, rules_)) {
        return within_memory(holdings, *std::move(next));
    }
    return within_memory(holdings, plan_membership(holdings, begins ? first_.pipelines : in_force.pipelines, departing, known_, rules_));
}

plan step_planner::whole_step(membership_plan const& on) const
{
    plan whole{.schedule = first_.schedule,
               .pipelines = on.pipelines,
               .work = deal(on.shares),
               .spares = on.spares,
               .slices = first_.slices,
               .optimizer = first_.optimizer};
    if (whole.pipelines == first_.pipelines) {
        whole.recompute = first_.recompute;
    } else {
        whole.recompute.every_stage = recomputes_stages(first_);
    }
    if (whole.pipelines != first_.pipelines || whole.work != first_.work) {
        choose_recomputation(whole, job_->model, config_);
    }
    return whole;
}

plan step_planner::section(membership_plan const& on, section_work work) const
{
    auto p = whole_step(on);
    if (work == section_work::remainder) {
        p.work = on.salvage.work;
    }
    return p;
}

}  // namespace rheo::inline v0
