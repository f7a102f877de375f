// SPDX-License-Identifier: Apache-2.0
#include "executor/train/parts/step_planner.hpp"

#include <utility>

#include "executor/plan/planning.hpp"
#include "rheo/pipeline/repair_groups.hpp"

namespace rheo::inline v0 {

step_planner::step_planner(job const& about, plan first, replanning known)
    : job_{&about}, first_{std::move(first)}, known_{std::move(known)}, rules_{membership_rules_of(about.config)}
{
}

membership_plan step_planner::plan_for(std::vector<rank_holdings> const& holdings, membership_plan const& in_force, std::vector<rank_id> const& departing) const
{
    bool const begins = in_force.pipelines.empty();
    auto places = first_.spares.size();
    for (auto const& pipeline : first_.pipelines) {
        places += ranks_of(pipeline).size();
    }
    if (begins && holdings.size() == places && departing.empty()) {  // no rank has been lost yet: the configured plan
        recomposition chosen;
        chosen.pipelines = first_.pipelines;
        chosen.spares = first_.spares;
        for (auto const& work : first_.work) {
            chosen.shares.push_back(static_cast<int>(work.size()));
        }
        return shares_stages() ? of_groups(holdings, std::move(chosen)) : plan_as_chosen(holdings, known_, rules_, std::move(chosen));
    }
    if (shares_stages()) {
        std::vector<rank_id> staying;
        for (auto const& holds : holdings) {
            if (std::find(departing.begin(), departing.end(), holds.rank) == departing.end()) {
                staying.push_back(holds.rank);
            }
        }
        auto repaired = begins ? failure{"a job begins with groups of its own"} : repaired_groups(staying, in_force);
        return of_groups(holdings, repaired ? std::move(repaired) : groups_for(staying));  // else places are dealt anew
    }
    return plan_membership(holdings, begins ? first_.pipelines : in_force.pipelines, departing, known_, rules_);
}

/// The plan that puts the members into pipelines of groups: what they hold and get are cells.
membership_plan step_planner::of_groups(std::vector<rank_holdings> const& holdings, result<recomposition> chosen) const
{
    membership_plan plan{replan(holdings, known_, std::move(chosen)), {}, {}};
    if (plan.error.empty() && plan.salvage.lost.empty()) {
        plan.message =
            to_string(survivability_of(plan.salvage.after, tensor_bytes_of(known_.state, element_bytes(known_.formats)), nodes_of(holdings, rules_.node_size)));
    }
    return plan;
}

/// The groups that are in force with the ranks that stay.
result<recomposition> step_planner::repaired_groups(std::vector<rank_id> const& staying, membership_plan const& in_force) const
{
    auto const fits = [&](pipeline_instance const& pipeline) {
        plan alone{
            .schedule = first_.schedule, .pipelines = {pipeline}, .work = deal(std::vector{job_->microbatches()}), .spares = {}, .slices = first_.slices};
        choose_recomputation(alone, job_->model, job_->config);
        return memory_error(alone, job_->model, job_->config).empty();
    };
    return repair_groups(in_force.pipelines, staying, job_->microbatches(), known_.wanted.failures, fits);
}

/// Pipelines of groups for these ranks, of the planner's sizes; of smaller groups where there are too few ranks.
result<recomposition> step_planner::groups_for(std::vector<rank_id> const& ranks) const
{
    if (ranks.empty()) {
        return failure{"no rank stays"};
    }
    auto config = job_->config;
    config.plan.pipelines.clear();
    config.plan.layers.clear();
    config.plan.shares.clear();
    config.plan.spares = 0;
    config.plan.tensor.values = {std::min(config.plan.tensor.largest(), static_cast<int>(ranks.size()))};
    auto made = make_plan(job_->model, config, static_cast<int>(ranks.size()));
    if (!made) {
        return failure{made.error()};
    }
    auto const renumber = [&](rank_id& rank) { rank = ranks[at(rank)]; };
    recomposition chosen{.pipelines = std::move(made->plan.pipelines), .spares = std::move(made->plan.spares)};
    for (auto& pipeline : chosen.pipelines) {
        for (auto& stage : pipeline.stages) {
            std::for_each(stage.begin(), stage.end(), renumber);
        }
    }
    std::for_each(chosen.spares.begin(), chosen.spares.end(), renumber);
    for (auto const& work : made->plan.work) {
        chosen.shares.push_back(static_cast<int>(work.size()));
    }
    return chosen;
}

plan step_planner::whole_step(membership_plan const& on) const
{
    plan whole{.schedule = first_.schedule, .pipelines = on.pipelines, .work = deal(on.shares), .spares = on.spares, .slices = first_.slices};
    if (whole.pipelines == first_.pipelines) {
        whole.recompute = first_.recompute;
    } else {
        whole.recompute.every_stage = recomputes_stages(first_);
    }
    if (whole.pipelines != first_.pipelines || whole.work != first_.work) {
        choose_recomputation(whole, job_->model, job_->config);
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
