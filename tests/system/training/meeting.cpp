// SPDX-License-Identifier: Apache-2.0

// One section of a step by the real worker on two ranks, with transfers as asked: `lowered` by the library's lowering, or `lazy`, each
// receive right before its use, which the checks refuse; `buffered` or by `rendezvous`. Prints "done" when it ends. That the
// one which is rejected hangs is for meeting.sh to show, under a deadline.

#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>

#include <mpi.h>
#include <unistd.h>

#include "executor/host/backend.hpp"
#include "executor/mpi/messenger.hpp"
#include "executor/plan/planning.hpp"
#include "executor/train/rank_services.hpp"
#include "executor/train/worker.hpp"
#include "rheo/model/fusion.hpp"
#include "rheo/model/state.hpp"
#include "rheo/plan/programs.hpp"
#include "rheo/schedule/check/deadlock.hpp"

namespace {

using namespace rheo;

int section(bool lazy, bool rendezvous_only)
{
    auto const members = mpi::first_generation(MPI_COMM_WORLD, generation_id{1});
    auto const ranks = static_cast<int>(members.members.size());
    auto const self = members.self;
    run_config config;
    config.model = {.vocabulary = 256, .context = 8, .width = 8, .heads = 1, .blocks = 2};
    config.train.microbatches = 4;
    config.train.microbatch = {1, 4};
    config.plan.pipelines = {ranks};
    config.plan.failures = 0;
    config.run.rendezvous = rendezvous_only;
    auto const runs = fused(gpt_model(config.model));
    auto const state = state_of(runs);
    auto const first = make_plan(runs, config, ranks);
    auto const folder = std::filesystem::temp_directory_path() / ("rheo-meeting-" + std::to_string(::getpid()));
    dataset const data{config.data, config.model.vocabulary, config.train.microbatch};
    host_backend backend{1};
    records silent{folder.string(), self, false, true};
    job const about{runs, state, reduction_units(state, static_cast<int>(runs.layers.size())), config};
    rank_services const with{.data = data, .backend = backend, .record = silent};
    resident_state resident{about.state, backend};
    initialise_layers(resident, layer_id{0}, layer_id{static_cast<int>(runs.layers.size())}, 1);
    std::fill(resident.scales.begin(), resident.scales.end(), 20);
    for (std::size_t u = 0; u < state.uses.size(); ++u) {
        resident.accumulator(use_id{static_cast<std::int32_t>(u)});
    }
    auto const compute = schedule_of(first->plan, 0).compute;
    auto const transfers = lazy ? lower_lazily(compute) : lower(compute);
    if (deadlock_free<rendezvous>(transfers).ok == lazy || !deadlock_free<nonblocking>(transfers).ok) {
        std::printf("the checks say otherwise\n");
        return 1;
    }
    auto const whole = with_reductions(transfers, units_of_stages(about.units, first->plan.pipelines[0].cuts), about.layers());
    worker w{about, with, first->plan, self, resident};
    mpi::messenger messages{members};
    messages.begin_section();
    loss_sum unused;
    w.computed = [](instruction, seconds) {};
    w.run(
        whole.rows[static_cast<std::size_t>(w.place().position)], first->plan.work[0], {members.id, step_id{1}, attempt_id{0}, true}, messages,
        [](use_id, microbatch_id) { return true; }, [](std::span<use_id const>, microbatch_id) {}, unused);
    std::filesystem::remove_all(folder);
    std::printf("done\n");
    return 0;
}

}  // namespace

int main(int argc, char** argv)
{
    MPI_Init(&argc, &argv);
    std::string_view const transfers = argc == 3 ? argv[1] : "";
    std::string_view const sends = argc == 3 ? argv[2] : "";
    if ((transfers != "lowered" && transfers != "lazy") || (sends != "buffered" && sends != "rendezvous")) {
        std::fprintf(stderr, "meeting lowered|lazy buffered|rendezvous\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    int const code = section(transfers == "lazy", sends == "rendezvous");
    MPI_Finalize();
    return code;
}
