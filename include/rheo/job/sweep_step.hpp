#pragma once
// SPDX-License-Identifier: Apache-2.0

// A point of a sweep: the job is planned and one of its steps is played. What binds it is found by having twice as much of one thing after the other: of
// rates and microbatches for the same plan, of memory for a plan of its own.

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rheo/job/cluster_request.hpp"
#include "rheo/job/cluster_steps.hpp"
#include "rheo/job/detail/clocked_work.hpp"
#include "rheo/job/detail/plan_steps.hpp"
#include "rheo/job/detail/played_plan.hpp"
#include "rheo/job/simulate_job.hpp"
#include "rheo/job/swept_step.hpp"
#include "rheo/planner/job_templates.hpp"
#include "rheo/planner/make_plan.hpp"
#include "rheo/simulate/cluster/cluster_links.hpp"
#include "rheo/simulate/network/network_level.hpp"
#include "rheo/simulate/network/rank_links.hpp"
#include "rheo/simulate/played_step/play_step_in_seconds.hpp"
#include "rheo/simulate/step.hpp"
#include "rheo/units/result.hpp"

namespace rheo::inline v0 {

namespace detail {

/// Plays undisturbed steps of a job. What a rank sends of a sum is one message each way, so that a sum costs as many as it has holders.
template <class Model>
class swept_steps {
public:
    using link = typename Model::link;

    /// @pre the job outlives it
    explicit swept_steps(job_description const& job)
        : steps_{job.model, job.request, job.cluster}, levels_{network_of<link>(job.cluster)}, links_{links_of<link>(job.cluster)}, rules_{rules_of<Model>(job)}
    {
        rules_.most_exact_holders = 1;
        if (job.clocks) {
            clocks_.emplace(*job.clocks, make_group_exchanges(job.model, job.request));
        }
    }

    /// Of the same job with other rates. @pre the job outlives it
    swept_steps(swept_steps const& like, job_description const& job) : swept_steps{like} { steps_ = cluster_steps<>{like.steps_, job.request, job.cluster}; }

    step_part part_of(plan const& p)
    {
        step_part part{p, steps_.step_of(p)};
        if (clocks_) {
            auto work = clocks_->work_of(p, part.step, true, {});
            part.error = work.error();
            part.clocked = work ? std::optional{*std::move(work)} : std::nullopt;
        }
        return part;
    }

    /// At the same clocks.
    step_part repriced(step_part part) const
    {
        part.step = steps_.repriced(std::move(part.step), part.of);
        return part;
    }

    result<played_step<>> play(step_part const& part) const { return play_on(part, levels_, links_); }

    /// The time where the links of a level have twice their rate.
    std::optional<seconds> time_with_quicker(std::size_t level, step_part const& part) const
    {
        auto levels = levels_;
        levels[level].link = slowed_link(levels[level].link, 0.5);
        auto links = links_;
        for (rank_id rank{0}; links && rank.value < ranks_of(array_view<network_level<link> const>{levels}); ++rank) {
            (*links)(level, rank) = slowed_link((*links)(level, rank), 0.5);
        }
        return time_of(play_on(part, levels, links));
    }

    std::optional<seconds> time_of(step_part const& part) const { return time_of(play(part)); }
    std::optional<seconds> time_of(plan const& p) { return time_of(part_of(p)); }

private:
    result<played_step<>> play_on(step_part const& part, std::vector<network_level<link>> const& levels, std::optional<rank_links<link>> const& links) const
    {
        if (!part.error.empty()) {
            return failure{part.error};
        }
        auto rules = rules_;
        rules.links = links ? &*links : nullptr;
        rules.times = part.clocked ? &part.clocked->times : nullptr;
        return play_step_in_seconds<Model>(part.step, array_view<network_level<link> const>{levels}, rules);
    }

    static std::optional<seconds> time_of(result<played_step<>> const& played) { return played ? std::optional{played->end} : std::nullopt; }

    cluster_steps<> steps_;
    std::vector<network_level<link>> levels_;
    std::optional<rank_links<link>> links_;  ///< of ranks, where they differ
    step_rules<Model> rules_;
    std::optional<plan_clock_choices<>> clocks_;
};

/// The plan with twice as many microbatches in each pipeline.
template <class OnlyWhenCalled = void>
plan with_twice_the_microbatches(plan p)
{
    std::vector<int> shares;
    for (auto const& work : p.work) {
        shares.push_back(2 * static_cast<int>(work.size()));
    }
    p.work = deal(shares);
    return p;
}

/// The job where each device has another rate.
template <class Change>
job_description with_devices(job_description job, Change const& change)
{
    auto const modelled = [&] {
        auto request = job.request;
        request.profile.clear();
        return planned_layers(job.model, request);
    };
    auto const before = job.request.profile.empty() ? std::vector<layer_profile>{} : modelled();
    change(job.cluster.device.description);
    for (auto& d : job.cluster.different) {
        change(d.device.description);
    }
    job.request = on_cluster(std::move(job.request), job.cluster);
    if (!before.empty()) {
        job.request.profile = as_modelled(std::move(job.request.profile), before, modelled());
    }
    return job;
}

/// Keeps the thing of which twice as much shortens a step most.
template <class OnlyWhenCalled = void>
class binding_search {
public:
    explicit binding_search(seconds now) : now_{now} {}

    /// @param time with twice as much, of as many tokens; none: there is no such step
    void add(std::string name, std::optional<seconds> time)
    {
        auto const gain = time ? (now_ - *time) / now_ : 0.0;
        if (gain > most_) {
            most_ = gain;
            name_ = std::move(name);
        }
    }

    std::string name() const { return name_; }

    /// Whether a time of at least this could still be the shortest.
    bool can_be(seconds least) const { return (now_ - least) / now_ > most_; }

private:
    seconds now_;
    double most_ = 0.01;
    std::string name_ = "latency";
};

/// What a step cannot be shorter than with these costs in place of those that it was played with: each part of it takes at least so much of what it took.
inline seconds least_time(seconds played, modelled_step const& before, modelled_step const& now)
{
    double least = 1.0;
    for (std::size_t p = 0; p < now.pipelines.size(); ++p) {
        for (std::size_t s = 0; s < now.pipelines[p].costs.size(); ++s) {
            auto const& a = before.pipelines[p].costs[s];
            auto const& b = now.pipelines[p].costs[s];
            for (auto const part : {&stage_cost::forward, &stage_cost::backward, &stage_cost::input_gradient, &stage_cost::weight_gradient}) {
                least = a.*part > seconds{} ? std::min(least, b.*part / a.*part) : least;
            }
        }
    }
    return (played - before.update) * least + now.update;
}

/// What a step cannot be shorter than, by links or microbatches: what its busiest rank computes.
inline seconds most_computing(played_step<> const& played)
{
    seconds most{};
    for (auto const& row : played.rows) {
        most = std::max(most, row.times.computing);
    }
    return most;
}

/// The part with each computation in half its time.
template <class OnlyWhenCalled = void>
step_part with_quick_computations(step_part part)
{
    for (auto& row : part.clocked->times) {
        for (auto& time : row) {
            time = time * 0.5;
        }
    }
    return part;
}

/// @param now the step of the plan, @param played  @param is_limited whether the plan would be another one without a limit of memory
template <class Model>
std::string what_binds(job_description const& job, swept_steps<Model>& steps, step_part const& now, played_step<> const& played, bool is_limited)
{
    binding_search<> search{played.end};
    auto const least = most_computing(played);
    auto const add_device = [&](std::string name, auto const& change) {
        auto const other = with_devices(job, change);
        swept_steps<Model> const quicker{steps, other};
        auto const part = quicker.repriced(now);
        if (now.clocked || search.can_be(least_time(played.end, now.step, part.step))) {
            search.add(std::move(name), quicker.time_of(part));
        }
    };
    if (now.clocked) {  // computations take the times of the profile, whatever the device
        search.add("compute", steps.time_of(with_quick_computations(now)));
    }
    add_device("compute", [](device_description& d) { d.compute = d.compute * 2.0; });
    add_device("memory traffic", [](device_description& d) { d.traffic = d.traffic * 2.0; });
    for (std::size_t l = 0; l < job.cluster.levels.size(); ++l) {
        if (job.cluster.levels[l].network.members > 1 && search.can_be(least)) {
            search.add("links of " + job.cluster.levels[l].name, steps.time_with_quicker(l, now));
        }
    }
    auto const longer = with_twice_the_microbatches(now.of);
    if (search.can_be(least) && (!job.request.memory_limit || fullest_of(longer, job.model, job.request) <= *job.request.memory_limit)) {
        auto const time = steps.time_of(longer);
        search.add("microbatches", time ? std::optional{*time * 0.5} : std::nullopt);
    }
    if (is_limited) {
        auto larger = job;
        larger.request.memory_limit = bytes{2 * job.request.memory_limit->count};
        if (auto const with = make_plan(larger.model, larger.request, larger.ranks); with && !(with->plan == now.of)) {
            search.add("device memory", swept_steps<Model>{larger}.time_of(with->plan));
        }
    }
    return search.name();
}

/// The part of time in which the job makes steps that stay, where the loss of each rank costs as much as that of the middle one in the middle of a step.
/// Where it has to begin again, half of the steps between two checkpoints are lost, too.
template <class Model>
std::optional<double> goodput_of(job_description job, seconds step)
{
    auto const interval = job.checkpoint_every > 0 ? job.checkpoint_every : job.steps;
    job.steps = 2;
    job.checkpoint_every = 0;
    job.eval_microbatches = 0;
    auto const middle = in_whole_nanoseconds(step * 0.5);
    std::vector<job_event> const events{{{middle}, job_event_kind::lose, rank_id{job.ranks / 2}, rank_id{job.ranks / 2}}};
    auto const out = simulate_job<Model>(job, job_policy::rheo, job_event_source{events});
    if (!out || !out->error.empty()) {
        return 0.0;
    }
    auto lost = nanoseconds(static_cast<double>((out->account.lost + out->account.recovery + out->account.halted).count));
    for (auto const& change : out->changes) {
        if (change.what == job_change::restarted) {
            lost += step * (0.5 * static_cast<double>(interval));
        }
    }
    auto const between = job.request.mtbf / static_cast<double>(job.ranks);
    return between / (between + lost);
}

}  // namespace detail

/// Plans the job and plays a step of it. @tparam Model of the network (network_model.hpp)
/// Cost: a plan and a step; with what binds it, a step more for each thing; with goodput, a simulated loss more.
template <class Model>
swept_step sweep_step(job_description const& job, sweep_rules rules = {})
{
    swept_step row{};
    if (row.why_not = job_fault(job); !row.is_feasible()) {
        return row;
    }
    auto unlimited = job.request;
    unlimited.memory_limit.reset();
    auto made = make_plan(job.model, unlimited, job.ranks);
    bool const is_limited = made && job.request.memory_limit && detail::fullest_of(made->plan, job.model, job.request) > *job.request.memory_limit;
    if (is_limited) {
        made = make_plan(job.model, job.request, job.ranks);
    }
    if (!made) {
        row.why_not = made.error();
        row.binds = is_limited ? "device memory" : "";
        return row;
    }
    auto settled = job;
    settled.request.schedule = made->plan.schedule;
    settled.request.candidates.clear();
    settled.request.tensor = {{largest_group(made->plan)}, job.request.tensor.is_automatic()};
    detail::swept_steps<Model> steps{settled};
    auto const part = steps.part_of(made->plan);
    auto const played = steps.play(part);
    auto const account =
        played ? detail::account_of(made->plan, *played, settled, part.clocked ? &*part.clocked : nullptr) : result<played_plan>{failure{played.error()}};
    if (!account) {
        row.why_not = account.error();
        return row;
    }
    for (auto const& pipeline : made->plan.pipelines) {
        row.pipelines.push_back(static_cast<int>(ranks_of(pipeline).size()));
    }
    row.planned = made->time;
    row.played = *account;
    row.tokens = std::int64_t{job.request.microbatches} * job.request.microbatch.sequences * job.request.microbatch.tokens;
    if (rules.goodput) {
        row.goodput = detail::goodput_of<Model>(settled, played->end);
    }
    if (rules.binds) {
        row.binds = detail::what_binds(settled, steps, part, *played, is_limited);
    }
    return row;
}

}  // namespace rheo::inline v0
