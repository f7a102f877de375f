#pragma once
// SPDX-License-Identifier: Apache-2.0

// A job that is simulated: what it is, how it deals with losses, and what comes of it.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rheo/job/job_account.hpp"
#include "rheo/job/job_clocks.hpp"
#include "rheo/job/job_event.hpp"
#include "rheo/model/model.hpp"
#include "rheo/planner/planning_request.hpp"
#include "rheo/simulate/cluster/cluster_model.hpp"
#include "rheo/simulate/played_step/played_step.hpp"
#include "rheo/simulate/played_step/rank_step_times.hpp"
#include "rheo/tensor/dtype.hpp"
#include "rheo/topology/tagged_index.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

/// Rank r runs on device r of the cluster.
struct job_description {
    model_description model;
    planning_request request;  ///< on the cluster (cluster_request.hpp)
    cluster_model cluster;
    int ranks;
    std::int64_t steps;                         ///< that the job ends after
    std::int64_t checkpoint_every = 0;          ///< steps; 0: no checkpoints. A job can always restart from step 0
    std::int64_t eval_every = 0;                ///< steps between evaluations; 0: only after the last one
    int eval_microbatches = 0;                  ///< of an evaluation; 0: there are none
    std::optional<job_clocks> clocks{};         ///< none: clocks are left alone, and devices draw what the cluster says
    whole_nanoseconds until = latest_job_time;  ///< when it ends at the latest
    bool begins_with_ranks = true;              ///< else all ranks come by events
    step_reduction reduction = step_reduction::slice_owner;
};

/// How the job's steps are played. @tparam Model of the network
template <class Model>
step_rules<Model> rules_of(job_description const& job)
{
    return {.reduction = job.reduction, .sum_bytes = static_cast<int>(size_of(job.request.policy.accumulate)), .nccl = job.cluster.nccl};
}

/// What the rank's device draws while it waits.
inline watts waiting_power(job_description const& job, rank_id rank)
{
    return job.clocks ? job.clocks->request.costs.blocking : device_of(job.cluster, rank).waiting;
}

/// What a step of a plan comes to.
struct played_plan {
    whole_nanoseconds time{};
    rank_step_times<whole_nanoseconds> parts{};  ///< of the mean rank; together they are the time
    joules computing{};
    joules waiting{};
    bytes fullest{};
    int ranks = 0;  ///< with a place
};

enum class job_policy : std::uint8_t {
    rheo,        ///< survivors recover and redo only what is missing of the step
    replay,      ///< survivors recover and repeat the step
    checkpoint,  ///< all ranks restart from the newest checkpoint
};

inline constexpr std::string_view job_policy_names[] = {"rheo", "replay", "checkpoint"};

constexpr std::string_view name_of(job_policy policy) { return job_policy_names[static_cast<std::size_t>(policy)]; }

/// How a job continued after its members changed.
enum class job_change : std::uint8_t {
    recovered,  ///< from the memory of survivors
    restarted,  ///< from a checkpoint
    halted,     ///< too few ranks
    regrouped,  ///< between two steps, for ranks that came or left
};

inline constexpr std::string_view job_change_names[] = {"recovered", "restarted", "halted", "regrouped"};

constexpr std::string_view name_of(job_change change) { return job_change_names[static_cast<std::size_t>(change)]; }

struct job_change_record {
    whole_nanoseconds at;  ///< of the first loss; of a regrouping: its begin
    std::int64_t step;
    job_change what;
    std::vector<rank_id> lost;     ///< ascending
    whole_nanoseconds recovery{};  ///< until it went on
    whole_nanoseconds lost_time{};
    bytes copied{};
    int ranks = 0;      ///< that have a place then
    std::string why{};  ///< of a restart or halt

    friend bool operator==(job_change_record const&, job_change_record const&) = default;
};

struct simulated_job {
    job_account account;
    rank_step_times<whole_nanoseconds> good{};  ///< account.good, as the mean rank with a place spends it
    joules computing{};
    joules waiting{};                ///< in steps and all else
    whole_nanoseconds few_copies{};  ///< with fewer than failures + 1 pipelines
    bytes fullest{};                 ///< most that a rank holds
    bytes copied{};
    std::vector<job_change_record> changes;
    std::vector<job_time_span> history{};  ///< the account over time, from the begin to the end
    std::int64_t plans = 0;                ///< different ones, each of which was played once
    std::string error{};                   ///< why the job ended before its steps; empty when it did not

    friend bool operator==(simulated_job const&, simulated_job const&) = default;
};

inline joules total_energy(simulated_job const& job) { return job.computing + job.waiting; }

}  // namespace rheo::inline v0
