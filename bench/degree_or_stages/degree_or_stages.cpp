// SPDX-License-Identifier: Apache-2.0
// The ranks of a job as one stage that they share (tensor parallelism), as a pipeline of one-rank stages, and as a pipeline each (data parallelism): whole
// steps of one model on one grid of shards, so with the same bits, in turns in one run; beside them what the planner expects of each.
//   mpirun -n 2 bench_degree_or_stages [--turns 3] [--steps 4] [--blocks 12] [--microbatches 8] [--sequences 4] [--tokens 64]
// Start it by itself, with as many ranks as cores. Two ranks need 8 GB of memory.

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <mpi.h>
#include <unistd.h>

#include "../step_durations.hpp"
#include "executor/plan/planning.hpp"
#include "executor/train/run.hpp"

namespace {

using namespace rheo;

struct arguments {
    int turns = 3;
    int steps = 4;
    int blocks = 12;
    int microbatches = 8;
    int sequences = 4;
    int tokens = 64;
};

arguments read_arguments(int argc, char** argv)
{
    arguments given;
    std::map<std::string_view, int*> const numbers{{"--turns", &given.turns},   {"--steps", &given.steps},         {"--blocks", &given.blocks},
                                                   {"--tokens", &given.tokens}, {"--sequences", &given.sequences}, {"--microbatches", &given.microbatches}};
    for (int i = 1; i < argc; i += 2) {
        auto const found = numbers.find(argv[i]);
        if (found == numbers.end() || i + 1 == argc) {
            fmt::print(stderr, "usage: bench_degree_or_stages [--turns N] [--steps N] [--blocks N] [--microbatches N] [--sequences N] [--tokens N]\n");
            std::exit(2);
        }
        *found->second = std::stoi(argv[i + 1]);
    }
    return given;
}

struct way {
    std::string name;
    std::vector<int> pipelines;
    int degree;
    std::vector<double> step_s{};
};

}  // namespace

int main(int argc, char** argv)
{
    auto const given = read_arguments(argc, argv);
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm world = MPI_COMM_WORLD;
    int ranks = 0, self = 0;
    MPI_Comm_size(world, &ranks);
    MPI_Comm_rank(world, &self);

    run_config config;
    config.model = {.vocabulary = 50257, .context = 1024, .width = 768, .heads = 12, .blocks = given.blocks};
    config.train.steps = given.steps + 2;
    config.train.microbatches = given.microbatches;
    config.train.microbatch = {given.sequences, given.tokens};
    config.train.shards = ranks;
    config.train.eval_microbatches = 1;
    config.plan.failures = 0;
    config.run.threads = 1;
    config.run.trace = false;
    auto folder = fmt::format("rheo-degree-or-stages-{}", ::getpid());
    folder.resize(64);
    MPI_Bcast(folder.data(), static_cast<int>(folder.size()), MPI_CHAR, 0, world);
    auto const path = std::filesystem::temp_directory_path() / folder.c_str();
    config.run.folder = path.string();

    std::array<way, 3> ways{way{"one stage of all ranks", {ranks}, ranks}, way{"a stage for each rank", {ranks}, 1},
                            way{"a pipeline for each rank", std::vector<int>(static_cast<std::size_t>(ranks), 1), 1}};
    for (int turn = 0; turn < given.turns; ++turn) {
        for (auto& one : ways) {
            config.plan.pipelines = one.pipelines;
            config.plan.tensor.values = {one.degree};
            auto const result = run(world, model_of(config), config, {.quiet = true});
            if (result.exit_code != 0) {
                fmt::print(stderr, "{}: {}\n", one.name, result.record.message);
                leave_job(result);
            }
            world = result.survivors;
            auto const steps = bench::step_durations(path);
            one.step_s.insert(one.step_s.end(), steps.begin(), steps.end());
        }
    }
    if (self == 0) {
        auto const tokens = static_cast<double>(given.microbatches) * given.sequences * given.tokens;
        auto const model = model_of(config);
        double first_s = 0, first_planned = 0;
        fmt::print("{} ranks, GPT-2 of {} blocks, {} microbatches of {} x {} tokens\n{:<26}{:>10}{:>12}{:>8}{:>10}\n", ranks, given.blocks, given.microbatches,
                   given.sequences, given.tokens, "", "step", "tokens/s", "ratio", "planned");
        for (auto const& one : ways) {
            config.plan.pipelines = one.pipelines;
            config.plan.tensor.values = {one.degree};
            auto const planned = make_plan(model, config, ranks)->time.count;
            auto const step = bench::median(one.step_s);
            first_s = first_s > 0 ? first_s : step;
            first_planned = first_planned > 0 ? first_planned : planned;
            fmt::print("{:<26}{:>8.2f} s{:>12.1f}{:>8.2f}{:>10.2f}\n", one.name, step, tokens / step, first_s / step, first_planned / planned);
        }
        std::filesystem::remove_all(path);
    }
    MPI_Comm_free(&world);
    MPI_Finalize();
    return 0;
}
