// SPDX-License-Identifier: Apache-2.0
// Training inside one's own MPI program: a model as a type, one's own communicator in, the survivors'
// communicator out. One of the four ranks dies on the way; the rest of the program continues with three.
#include <cstdio>

#include "executor/train/run.hpp"

constexpr rheo::gpt_shape tiny{.vocabulary = 256, .context = 32, .width = 32, .heads = 2, .blocks = 2};

using my_model = rheo::model<rheo::embedding<tiny>, rheo::repeat<2, rheo::transformer_block<tiny>>, rheo::classifier<tiny>>;

int main(int argc, char** argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);  // before the first communicator is made from it
    MPI_Comm mine;
    MPI_Comm_dup(MPI_COMM_WORLD, &mine);

    rheo::run_config config;
    config.train.steps = 6;
    config.train.microbatches = 4;
    config.train.microbatch = {.sequences = 2, .tokens = 32};
    config.plan.pipelines = {2, 2};
    config.run.folder = argv[1];
    config.run.inject = {"kill:3@2:backward"};

    auto const result = rheo::run<my_model>(mine, config, {.quiet = true});
    if (result.exit_code == 0) {
        int left = 0;
        MPI_Comm_size(result.survivors, &left);
        int sum = 0;
        int const one = 1;
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, result.survivors);  // the program's own work continues
        if (result.is_reporter) {
            std::printf("%lld steps, %d ranks left, %d of them still compute, loss below that of guessing: %s\n",
                        static_cast<long long>(result.record.steps.value), left, sum, result.record.loss.value_or(1e9) < 5.545 ? "yes" : "no");
        }
    }
    rheo::leave_job(result);  // after a failure MPI_Finalize may hang
}
