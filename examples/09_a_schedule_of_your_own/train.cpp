// SPDX-License-Identifier: Apache-2.0
// A schedule of your own is a type with a name that makes a program. The compiler proves it free of deadlocks, `run` trains with it, and
// a rank that is lost on the way changes nothing: the new pipelines have the same schedule.
#include <cstdio>

#include "executor/train/run.hpp"
#include "rheo/schedule/core/placement.hpp"
#include "rheo/schedule/families/proved.hpp"

/// Two microbatches forward, the same two backward, and so on: the memory of two, whatever the number of microbatches.
struct in_pairs {
    static constexpr std::string_view name = "in-pairs";

    static constexpr rheo::program program(rheo::schedule_shape shape)
    {
        using enum rheo::instruction_kind;
        rheo::program result{rheo::loop_placement(shape.ranks, 1), {}};
        for (int rank = 0; rank < shape.ranks; ++rank) {
            result.rows.emplace_back();
            for (int first = 0; first < shape.microbatches; first += 2) {
                for (auto const kind : {forward, backward}) {
                    for (int m = first; m < first + 2 && m < shape.microbatches; ++m) {
                        result.rows.back().push_back(rheo::make_instruction(kind, rheo::stage_id{rank}, rheo::microbatch_id{m}));
                    }
                }
            }
        }
        return result;
    }
};
static_assert(rheo::proved<in_pairs, rheo::schedule_shape{.ranks = 3, .microbatches = 5}>);

constexpr rheo::gpt_shape tiny{.vocabulary = 256, .context = 32, .width = 32, .heads = 2, .blocks = 2};
using my_model = rheo::model<rheo::embedding<tiny>, rheo::repeat<2, rheo::transformer_block<tiny>>, rheo::classifier<tiny>>;

int main(int argc, char** argv)
{
    MPI_Init(&argc, &argv);
    rheo::run_config config;
    config.train = {.steps = 4, .microbatches = 6, .microbatch = {.sequences = 2, .tokens = 32}};
    config.plan.pipelines = {2, 2};
    config.run.folder = argv[1];
    config.run.inject = {"kill:3@2:backward"};

    auto const result = rheo::run<my_model, in_pairs>(MPI_COMM_WORLD, config, {.quiet = true});
    if (result.is_reporter) {
        std::printf("%lld steps in pairs, %s\n", static_cast<long long>(result.record.steps.value), result.record.message.c_str());
    }
    rheo::leave_job(result);
}
