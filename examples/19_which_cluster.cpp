// SPDX-License-Identifier: Apache-2.0
// Which cluster for a model, and which pipelines on it? The step of each is planned and played on its network, and what binds it is found: that of which
// twice as much shortens it most. `rheo sweep` does the same from files.
#include <cstdio>
#include <string>

#include "rheo/job/cluster_request.hpp"
#include "rheo/job/sweep_step.hpp"
#include "rheo/model/gpt.hpp"
#include "rheo/schedule/families/one_f_one_b.hpp"
#include "rheo/simulate/network/network_model.hpp"

using namespace rheo;

namespace {

/// Nodes of four devices with links of so many GB/s between them.
job_description job_on(int nodes, double gigabytes_per_s, int stages)
{
    job_description job{.model = gpt_model({.vocabulary = 50304, .context = 2048, .width = 2048, .heads = 16, .blocks = 24}),
                        .request = {.schedule = one_f_one_b{}, .microbatches = 128, .microbatch = {1, 2048}, .policy = bf16},
                        .cluster = {.device = {{{400e12}, {2500e9}, gibibytes(64)}, {600}, {120}},
                                    .levels = {{"node", {4, network_topology::switched, {microseconds(2), {300e9}}}},
                                               {"cluster", {nodes, network_topology::switched, {microseconds(5), {gigabytes_per_s * 1e9}}}}},
                                    .different = {},
                                    .storage = {},
                                    .recovery = {}},
                        .ranks = 4 * nodes,
                        .steps = 1};
    job.request.pipelines.assign(static_cast<std::size_t>(job.ranks / stages), stages);
    job.request = on_cluster(job.request, job.cluster);
    return job;
}

}  // namespace

int main()
{
    std::puts("nodes  GB/s  stages  step      tokens/s  J/token  binds");
    for (int const nodes : {2, 8}) {
        for (double const rate : {12.5, 200.0}) {
            for (int const stages : {1, 4}) {
                auto const row = sweep_step<contended_network>(job_on(nodes, rate, stages));
                if (!row.is_feasible()) {
                    std::printf("%5d %5g %7d  %s\n", nodes, rate, stages, row.why_not.c_str());
                    continue;
                }
                std::printf("%5d %5g %7d  %.3f s %9.0f  %7.4f  %s\n", nodes, rate, stages, static_cast<double>(row.played.time.count) * 1e-9,
                            tokens_per_second(row), energy_per_token(row).count, row.binds.c_str());
            }
        }
    }
}
