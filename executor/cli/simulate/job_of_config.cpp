// SPDX-License-Identifier: Apache-2.0
#include "executor/cli/simulate/job_of_config.hpp"

#include <numeric>
#include <utility>

#include "executor/clocks/clock_request.hpp"
#include "executor/clocks/rank_device.hpp"
#include "executor/plan/planning.hpp"
#include "rheo/job/cluster_request.hpp"

namespace rheo::cli {

cluster_model one_machine(int ranks)
{
    auto device = processes_of_one_machine.device;
    device.memory = gibibytes(1 << 20);
    return {.device = {device}, .levels = {{"machine", {ranks, network_topology::full, link_between_ranks}}}, .different = {}, .storage = {}, .recovery = {}};
}

int named_ranks(run_config const& config)
{
    auto const& pipelines = config.plan.pipelines;
    return std::accumulate(pipelines.begin(), pipelines.end(), pipelines.empty() ? 0 : config.plan.spares);
}

result<job_description> job_of_config(run_config const& config, cluster_model cluster, int ranks)
{
    job_description job{.model = running_model(config),
                        .request = {},
                        .cluster = std::move(cluster),
                        .ranks = ranks,
                        .steps = config.train.steps,
                        .checkpoint_every = config.checkpoint.every_steps,
                        .eval_every = config.train.eval_every,
                        .eval_microbatches = config.train.eval_microbatches};
    auto request = planning_request_of(job.model, config);
    if (!request) {
        return failure{request.error()};
    }
    job.request = on_cluster(*std::move(request), job.cluster);
    return job;
}

result<std::optional<job_clocks>> clocks_of(run_config const& config, job_description const& job)
{
    if (config.power.clock_profile.empty()) {
        return std::optional<job_clocks>{};
    }
    auto const measured = read_clock_profile(config.power, static_cast<int>(job.model.layers.size()));
    if (!measured) {
        return failure{measured.error().message};
    }
    return std::optional{job_clocks{*measured, clock_request_of(config.power, *measured), config.power.straggler}};
}

}  // namespace rheo::cli
