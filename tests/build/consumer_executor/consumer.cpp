// SPDX-License-Identifier: Apache-2.0
// A program outside of rheo with the installed executor: one step of a small model in the folder it is started in.
#include <fstream>
#include <string>

#include <executor/train/run.hpp>
#include <rheo/model/gpt.hpp>

using namespace rheo;

constexpr gpt_shape shape{.vocabulary = 256, .context = 8, .width = 8, .heads = 2, .blocks = 1};
using small = model<embedding<shape>, transformer_block<shape>, classifier<shape>>;

int main(int argc, char** argv)
{
    MPI_Init(&argc, &argv);
    std::ofstream{"text"} << std::string(2000, 'a') + "bcdefgh";
    run_config config;
    config.data.paths = {"text"};
    config.train.steps = 1;
    config.train.microbatch = {1, 8};
    config.plan.failures = 0;
    config.run.folder = "run";
    leave_job(run<small>(MPI_COMM_WORLD, config, {.quiet = true}));
}
