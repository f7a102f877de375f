// SPDX-License-Identifier: Apache-2.0
// A week of training on sixteen nodes that are lost and come back, simulated: what each way to deal with a loss costs in time and energy. The same steps,
// plans and decisions as in a run; nothing is measured.
#include <cstdio>

#include "rheo/job/cluster_request.hpp"
#include "rheo/job/simulate_job.hpp"
#include "rheo/model/gpt.hpp"
#include "rheo/schedule/families/one_f_one_b.hpp"
#include "rheo/simulate/network/network_model.hpp"

using namespace rheo;

int main()
{
    cluster_model const cluster{.device = {{{400e12}, {2500e9}, gibibytes(64)}, {600}, {120}},
                                .levels = {{"node", {4, network_topology::switched, {microseconds(2), {300e9}}}},
                                           {"cluster", {16, network_topology::switched, {microseconds(5), {50e9}}, 4}}},
                                .different = {},
                                .storage = cluster_storage{{20e9}, {10e9}},
                                .recovery = recovery_times{{0.5}, {}, {}, {0.01}, {}, {}, {0.05}, {}, {}}};  // detection, shrink, planning
    job_description job{.model = gpt_model({.vocabulary = 50304, .context = 2048, .width = 2048, .heads = 16, .blocks = 24}),
                        .request = {.schedule = one_f_one_b{}, .microbatches = 256, .microbatch = {1, 2048}, .policy = bf16, .min_ranks = 4},
                        .cluster = cluster,
                        .ranks = 64,
                        .steps = 1'000'000'000,
                        .checkpoint_every = 500,
                        .until = {7 * 24 * 3600 * std::int64_t{1'000'000'000}}};
    job.request = on_cluster(job.request, cluster);
    random_losses const spot{.mtbf = hours(200), .repair = hours(2), .seed = 1, .ranks = job.ranks, .node_size = job.request.node_size};

    for (auto const policy : {job_policy::rheo, job_policy::replay, job_policy::checkpoint}) {
        auto const week = simulate_job<contended_network>(job, policy, job_event_source{{}, spot});
        if (!week) {
            std::puts(week.error().c_str());
            return 1;
        }
        auto const percent = [&](whole_nanoseconds time) { return 100.0 * (time / week->account.end); };
        std::printf("%-10s %zu changes of members: %.2f %% good, %.3f %% lost, %.3f %% in recoveries, %.2f %% in checkpoints; %.2f MJ/1000 steps\n",
                    name_of(policy).data(), week->changes.size(), percent(week->account.good), percent(week->account.lost), percent(week->account.recovery),
                    percent(week->account.checkpoint), total_energy(*week).count / 1e3 / static_cast<double>(week->account.steps));
    }
}
