#pragma once
// SPDX-License-Identifier: Apache-2.0

// The steps of a simulated job: whole ones, each plan played once, the rest of broken ones, and steps up to their losses.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rheo/job/cluster_steps.hpp"
#include "rheo/job/detail/clocked_work.hpp"
#include "rheo/job/detail/job_members.hpp"
#include "rheo/job/detail/played_plan.hpp"
#include "rheo/job/rank_slowness.hpp"
#include "rheo/job/simulated_job.hpp"
#include "rheo/planner/make_plan_on.hpp"
#include "rheo/planner/recompute_choice.hpp"
#include "rheo/recover/membership_plan.hpp"
#include "rheo/simulate/network/network_level.hpp"
#include "rheo/simulate/network/rank_links.hpp"
#include "rheo/simulate/played_step/play_step_in_seconds.hpp"
#include "rheo/simulate/played_step/step_recorder.hpp"
#include "rheo/units/result.hpp"

namespace rheo::inline v0 {

namespace detail {

/// What survivors spent of a step together, by part.
inline rank_step_times<> times_of_survivors(played_step<> const& played)
{
    rank_step_times<> sum{};
    for (auto const& row : played.rows) {
        for (auto const part : rank_step_parts<>) {
            sum.*part += row.times.*part;
        }
    }
    return sum;
}

/// Work of a plan.
struct step_part {
    plan of;
    modelled_step step;
    std::optional<clocked_work> clocked{};  ///< where the job has clocks
    std::string error{};                    ///< why it has none
    salvage_plan const* only = nullptr;     ///< what is missing, of the rest of a step; none: a whole one
};

/// The same, ready to be played. @tparam Link of the network
template <class Link>
struct linked_part : step_part {
    std::optional<rank_links<Link>> links;  ///< of ranks, where they differ
};

/// @tparam Model of the network
template <class Model>
class plan_steps {
public:
    using link = typename Model::link;
    using ready_part = linked_part<link>;

    explicit plan_steps(job_description const& job) : job_{&job}, levels_{network_of<link>(job.cluster)}, steps_{job.model, job.request, job.cluster}
    {
        if (job.clocks) {
            clocks_.emplace(*job.clocks, make_group_exchanges(job.model, job.request));
        }
    }

    /// The whole step of pipelines in force.
    ready_part whole(membership_plan const& in_force, rank_slowness const& slow) { return whole(plan_of_step(in_force), slow); }

    ready_part whole(plan p, rank_slowness const& slow)
    {
        auto step = steps_.step_of(p, slow);
        ready_part part{{std::move(p), std::move(step)}, links_of<link>(job_->cluster, slow.links)};
        add_clocks(part, part.of, true, slow);
        return part;
    }

    /// What is left of a step. @pre `in_force` outlives it
    ready_part rest(membership_plan const& in_force, rank_slowness const& slow)
    {
        auto const whole = plan_of_step(in_force);
        auto p = whole;
        p.work = in_force.salvage.work;
        auto step = steps_.step_of(p, slow);
        ready_part part{{std::move(p), std::move(step), {}, {}, &in_force.salvage}, links_of<link>(job_->cluster, slow.links)};
        add_clocks(part, whole, false, slow);
        return part;
    }

    /// The account of a whole step; that of a plan is kept.
    result<played_plan> whole_account(membership_plan const& in_force, rank_slowness const& slow)
    {
        return known_account(played_, in_force, slow, [&](plan p) { return whole(std::move(p), slow); });
    }

    /// That of an evaluation.
    result<played_plan> evaluation_account(membership_plan const& in_force, rank_slowness const& slow)
    {
        return known_account(evaluated_, in_force, slow, [&](plan p) { return evaluation(std::move(p), slow); });
    }

    /// The evaluation of pipelines in force.
    ready_part evaluation(membership_plan const& in_force, rank_slowness const& slow) { return evaluation(plan_of_step(in_force), slow); }

    /// The events of a part that nothing disturbs, from its begin on. @param is_step whether ranks vote and update at its end
    std::vector<trace_event> events_of(ready_part const& part, bool is_step) const
    {
        step_recorder recorder{part.step, part.clocked ? &part.clocked->energies : nullptr};
        auto const played = play_step_in_seconds<Model>(part.step, array_view<network_level<link> const>{levels_}, rules_for(part), {}, recorder);
        if (played && is_step) {
            recorder.end(*played);
        }
        return recorder.take();
    }

    result<played_plan> account_of_part(ready_part const& part) const
    {
        if (!part.error.empty()) {
            return failure{part.error};
        }
        auto const played = play_step_in_seconds<Model>(part.step, array_view<network_level<link> const>{levels_}, rules_for(part));
        return played ? account_of(part.of, *played, *job_, part.clocked ? &*part.clocked : nullptr) : failure{played.error()};
    }

    /// @param begin of the part  @param heard when survivors hear of the losses
    result<played_step<>> play_to_losses(ready_part const& part, std::vector<lost_rank> const& lost, whole_nanoseconds begin, whole_nanoseconds heard) const
    {
        return play_to_losses(part, lost, begin, heard, no_step_observer{});
    }

    /// The same, seen by an observer.
    template <class Observer>
    result<played_step<>> play_to_losses(ready_part const& part, std::vector<lost_rank> const& lost, whole_nanoseconds begin, whole_nanoseconds heard,
                                         Observer&& observer) const
    {
        auto const since_begin = [&](whole_nanoseconds time) { return nanoseconds(static_cast<double>((time - begin).count)); };
        std::vector<modelled_loss> losses;
        for (auto const& [rank, at] : lost) {
            losses.push_back({rank, since_begin(at)});
        }
        return play_step_in_seconds<Model>(part.step, array_view<network_level<link> const>{levels_}, rules_for(part), {array_view{losses}, since_begin(heard)},
                                           observer);
    }

    /// The events of a part up to its losses.
    std::vector<trace_event> events_to_losses(ready_part const& part, std::vector<lost_rank> const& lost, whole_nanoseconds begin,
                                              whole_nanoseconds heard) const
    {
        step_recorder recorder{part.step, part.clocked ? &part.clocked->energies : nullptr};
        (void)play_to_losses(part, lost, begin, heard, recorder);
        return recorder.take();
    }

    /// What computations of a broken part that ended have drawn.
    joules drawn_in(ready_part const& part, played_step<> const& played) const
    {
        return part.clocked ? drawn_by(*part.clocked, played) : job_->cluster.device.computing * times_of_survivors(played).computing;
    }

    /// Different plans so far.
    std::int64_t plans() const { return static_cast<std::int64_t>(played_.size()); }

private:
    struct known_plan {
        state_digest digest;
        rank_slowness slow;
        played_plan account;
    };

    ready_part evaluation(plan p, rank_slowness const& slow)
    {
        auto step = steps_.evaluation_of(p, job_->eval_microbatches, slow);
        ready_part part{{std::move(p), std::move(step)}, links_of<link>(job_->cluster, slow.links)};
        add_clocks(part, part.of, false, slow);
        return part;
    }

    /// @param whole plan of a step
    void add_clocks(ready_part& part, plan const& whole, bool is_whole, rank_slowness const& slow)
    {
        if (clocks_) {
            auto work = clocks_->work_of(whole, part.step, is_whole, slow.computing);
            part.error = work.error();
            part.clocked = work ? std::optional{*std::move(work)} : std::nullopt;
        }
    }

    /// The account of a plan, played once.
    template <class Part>
    result<played_plan> known_account(std::vector<known_plan>& all, membership_plan const& in_force, rank_slowness const& slow, Part const& part)
    {
        auto p = plan_of_step(in_force);
        auto const digest = digest_of(p);
        auto const known = std::find_if(all.rbegin(), all.rend(), [&](auto const& k) { return k.digest == digest && k.slow == slow; });
        if (known != all.rend()) {
            return known->account;
        }
        auto account = account_of_part(part(std::move(p)));
        if (account) {
            all.push_back({digest, slow, *account});
        }
        return account;
    }

    step_rules<Model> rules_for(ready_part const& part) const
    {
        auto rules = rules_;
        rules.links = part.links ? &*part.links : nullptr;
        rules.times = part.clocked ? &part.clocked->times : nullptr;
        return rules;
    }

    plan plan_of_step(membership_plan const& in_force) const
    {
        plan p{.schedule = job_->request.schedule,
               .pipelines = in_force.pipelines,
               .work = deal(in_force.shares),
               .spares = in_force.spares,
               .recompute = {.every_stage = job_->request.recompute == recompute_policy::always},
               .slices = job_->request.microbatch.slices,
               .optimizer = optimizer_shards_of(job_->request)};
        choose_recomputation(p, job_->model, job_->request);
        return p;
    }

    job_description const* job_;
    std::vector<network_level<link>> levels_;
    cluster_steps<> steps_;
    step_rules<Model> rules_{rules_of<Model>(*job_)};
    std::optional<plan_clock_choices<>> clocks_;
    std::vector<known_plan> played_;
    std::vector<known_plan> evaluated_;
};

/// The plans with which a job begins. They follow from how many ranks each node has, so ranks in the same numbers are planned for once.
template <class OnlyWhenCalled = void>
class first_plans {
public:
    explicit first_plans(job_description const& job) : job_{&job} {}

    /// @param present ascending
    result<plan> on(std::vector<rank_id> const& present)
    {
        std::vector<std::size_t> key;
        for (auto const& node : ranks_by_node<OnlyWhenCalled>(present, job_->request.node_size)) {
            key.push_back(node.size());
        }
        auto const [place, is_new] = plans_.try_emplace(std::move(key), planned{present, failure{"not planned"}});
        auto& of = place->second;
        if (is_new) {
            of.made = plan_of(present);
        }
        if (!of.made || of.ranks == present) {
            return of.made;
        }
        return with_ranks(*of.made, [&](rank_id rank) {
            auto const number = std::lower_bound(of.ranks.begin(), of.ranks.end(), rank) - of.ranks.begin();
            return present[static_cast<std::size_t>(number)];
        });
    }

private:
    struct planned {
        std::vector<rank_id> ranks;
        result<plan> made;
    };

    result<plan> plan_of(std::vector<rank_id> const& present) const
    {
        auto request = job_->request;
        auto const count = static_cast<int>(present.size());
        if (count != job_->ranks) {  // not those that the request names pipelines for
            request.pipelines.clear();
            request.layers.clear();
            request.shares.clear();
        }
        if (count <= request.spares) {
            return failure{"only " + std::to_string(count) + " ranks are left, and plan.spares is " + std::to_string(request.spares)};
        }
        return make_plan_on(job_->model, request, present);
    }

    job_description const* job_;
    std::map<std::vector<std::size_t>, planned> plans_;  ///< by the ranks of each node
};

}  // namespace detail
}  // namespace rheo::inline v0
