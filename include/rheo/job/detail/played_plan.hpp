#pragma once
// SPDX-License-Identifier: Apache-2.0

// The account of a plan's step, in whole nanoseconds.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "rheo/job/detail/clocked_work.hpp"
#include "rheo/job/simulated_job.hpp"
#include "rheo/pipeline/instance.hpp"
#include "rheo/plan/memory_parts.hpp"
#include "rheo/plan/plan.hpp"
#include "rheo/plan/rank_memory.hpp"
#include "rheo/simulate/cluster/cluster_model.hpp"
#include "rheo/simulate/played_step/played_step.hpp"
#include "rheo/units/result.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

namespace detail {

/// A time that a job can take; nothing where it does not fit.
inline result<whole_nanoseconds> job_time(seconds time, std::string const& what)
{
    auto const ns = time.count * 1e9;
    if (!(ns >= 0.0 && ns < static_cast<double>(latest_job_time.count))) {
        return failure{what + " takes " + std::to_string(time.count) + " s; times of a job are at most 2^62 ns, 146 years"};
    }
    return whole_nanoseconds{in_whole_nanoseconds(time)};
}

/// Parts of a time, rounded so that they add up to it.
inline rank_step_times<whole_nanoseconds> rounded_parts(rank_step_times<> const& parts, whole_nanoseconds whole)
{
    auto const sum = total_time(parts);
    auto const scale = sum > seconds{} ? static_cast<double>(whole.count) / sum.count : 0.0;
    rank_step_times<whole_nanoseconds> rounded{};
    seconds before{};
    std::int64_t counted = 0;
    for (std::size_t k = 0; k < rank_step_parts<>.size(); ++k) {
        before += parts.*rank_step_parts<>[k];
        bool const is_last = k + 1 == rank_step_parts<>.size();
        auto const upto = is_last ? whole.count : std::min(whole.count, static_cast<std::int64_t>(before.count * scale + 0.5));
        rounded.*rank_step_parts<whole_nanoseconds>[k] = {upto - counted};
        counted = upto;
    }
    return rounded;
}

/// What the fullest rank of a plan holds. Pipelines that differ in their ranks alone are looked at once.
template <class OnlyWhenCalled = void>
bytes fullest_of(plan const& p, model_description const& model, planning_request const& request)
{
    bytes fullest{};
    for (std::size_t i = 0; i < p.pipelines.size(); ++i) {
        auto const& pipeline = p.pipelines[i];
        auto const is_like = [&](std::size_t other) {
            return p.pipelines[other].cuts == pipeline.cuts && p.pipelines[other].shares == pipeline.shares &&
                   p.pipelines[other].stages.size() == pipeline.stages.size() && p.work[other].size() == p.work[i].size();
        };
        if (i > 0 && is_like(i - 1) && p.recompute.levels.empty()) {
            continue;
        }
        for (auto const& group : groups_of(pipeline)) {
            fullest = std::max(fullest, total(memory_parts_of(p, model, request.microbatch, request.policy, group.front())));
        }
    }
    return fullest;
}

/// The account of a step of the plan. @param played the step of that plan, undisturbed
/// @param clocked what its computations draw; null: what the cluster says. Then an update draws what a computation does, else what waiting does.
template <class OnlyWhenCalled = void>
result<played_plan> account_of(plan const& p, played_step<> const& played, job_description const& job, clocked_work const* clocked = nullptr)
{
    auto const time = job_time(played.end, "a step");
    if (!time) {
        return failure{time.error()};
    }
    played_plan account{.time = *time, .fullest = fullest_of(p, job.model, job.request)};
    rank_step_times<> sum{};
    for (auto const& row : played.rows) {
        auto const group = groups_of(p.pipelines[at(row.pipeline)])[static_cast<std::size_t>(row.position)];
        for (auto const part : rank_step_parts<>) {
            sum.*part += row.times.*part * static_cast<double>(group.size());
        }
        for (auto const rank : group) {
            auto const& device = device_of(job.cluster, rank);
            auto const busy = row.times.computing + (clocked == nullptr ? row.times.update : seconds{});
            account.computing += clocked == nullptr ? device.computing * busy : joules{};
            account.waiting += waiting_power(job, rank) * (played.end - busy);
        }
        account.ranks += static_cast<int>(group.size());
    }
    for (auto const rank : p.spares) {
        account.waiting += waiting_power(job, rank) * played.end;
    }
    account.computing += clocked == nullptr ? joules{} : drawn_by(*clocked, played);
    account.parts = rounded_parts(sum, *time);
    return account;
}

}  // namespace detail
}  // namespace rheo::inline v0
