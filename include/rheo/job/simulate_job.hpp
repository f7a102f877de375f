#pragma once
// SPDX-License-Identifier: Apache-2.0

// A job simulated over its whole time: steps on the network of a cluster, losses at any moment, ranks that return, leave or become slow. What a loss leads
// to is decided by the functions of a run: membership, repair, salvage, copies. A step that nothing changes is played once for each plan.
//
// A rank that is lost in the last nanosecond of a step is lost in the step; at its end, in the next one. A drain or a return changes the pipelines between
// two steps; a slow rank or link is slow from the next step on. Checkpoints are written beside the steps, after a copy of the state that stops them; a loss
// gives up the one that is being written. A job that halts, or restarts for a change of its members, waits until its checkpoint is there.
// Evaluations come before the step that they are due at, and again before what is left of it after a loss.

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "rheo/job/detail/job_player.hpp"
#include "rheo/job/job_event_source.hpp"
#include "rheo/job/job_trace.hpp"
#include "rheo/job/simulated_job.hpp"
#include "rheo/units/result.hpp"

namespace rheo::inline v0 {

/// Sees nothing of a job.
struct no_job_observer {
    template <class Account>
    void operator()(std::int64_t, whole_nanoseconds, Account const&, std::size_t)
    {
    }
};

namespace detail {

/// Why the job cannot have its clocks.
template <class OnlyWhenCalled = void>
std::string clocks_fault(job_description const& job)
{
    if (auto const layers = stages_of(job.clocks->layers); layers != static_cast<int>(job.model.layers.size())) {
        return "the clock profile has " + std::to_string(layers) + " layers, the model " + std::to_string(job.model.layers.size());
    }
    for (auto const& d : job.cluster.different) {
        if (!(d.device.description == job.cluster.device.description)) {
            return "the cluster has nodes with other devices, but a clock profile is that of one kind of device";
        }
    }
    if (job.request.recompute != recompute_policy::never) {
        return "clocks are planned for programs that keep their activations, so a job with clocks does not recompute";
    }
    return {};
}

}  // namespace detail

/// Why the job cannot be simulated; empty when it can.
template <class OnlyWhenCalled = void>
std::string job_fault(job_description const& job)
{
    if (auto fault = cluster_fault(job.cluster); !fault.empty()) {
        return fault;
    }
    if (job.ranks < 1 || job.ranks > devices_of(job.cluster)) {
        return "the job has " + std::to_string(job.ranks) + " ranks, the cluster " + std::to_string(devices_of(job.cluster)) +
               " devices; expected a device for each rank, and at least one";
    }
    if (job.steps < 1 || job.checkpoint_every < 0 || job.eval_every < 0 || job.eval_microbatches < 0) {
        return "a job has at least one step, and checkpoints and evaluations every so many of them or never";
    }
    return job.clocks ? detail::clocks_fault(job) : std::string{};
}

/// @tparam Model contended_network or free_network  @param observer is called when a step commits: (step, begin, its account, number of present ranks)
/// @param trace gets the events of the steps that it shows; null: nobody wants them
/// Cost: a step played for each plan and each loss, and constant time for each step that is like the one before.
template <class Model, class Observer>
result<simulated_job> simulate_job(job_description const& job, job_policy policy, job_event_source events, Observer&& observer, job_trace<>* trace = nullptr)
{
    if (auto fault = job_fault(job); !fault.empty()) {
        return failure{std::move(fault)};
    }
    return detail::job_player<Model, std::remove_reference_t<Observer>>{job, policy, std::move(events), observer, trace}.play();
}

template <class Model>
result<simulated_job> simulate_job(job_description const& job, job_policy policy = job_policy::rheo, job_event_source events = job_event_source{})
{
    return simulate_job<Model>(job, policy, std::move(events), no_job_observer{});
}

}  // namespace rheo::inline v0
