// SPDX-License-Identifier: Apache-2.0
// What a grid of shards costs on one rank: a microbatch of GPT-2 124M (4 x 64 tokens, dropout 0.1) through a stage that has the whole model, forward and
// backward with exact sums, on grids of 1, 2, 4 and 8 shards. The grid of one is the stage without a grid.
#include <benchmark/benchmark.h>

#include <span>
#include <vector>

#include "executor/host/backend.hpp"
#include "executor/stage/stage.hpp"
#include "executor/state/resident_state.hpp"
#include "rheo/model/fusion.hpp"
#include "rheo/model/gpt.hpp"
#include "rheo/model/grid.hpp"
#include "rheo/model/state.hpp"

namespace {

using namespace rheo;

void stage_on_shards(benchmark::State& measured)
{
    auto const shards = static_cast<int>(measured.range(0));
    auto const model =
        on_grid(fused(gpt_model({.vocabulary = 50257, .context = 1024, .width = 768, .heads = 12, .blocks = 12, .dropout_per_mille = 100})), shards);
    microbatch_shape const shape{4, 64};
    auto const info = state_of(model);
    host_backend backend{1};
    resident_state state{info, backend};
    state.begin_scales(8);
    initialise_layers(state, layer_id{0}, layer_id{static_cast<int>(model.layers.size())}, 1);
    auto const whole = backend.make_stage(model.layers, layer_id{0}, shape, 8, state, {}, {});
    activation kept{whole->layout()};
    for (std::size_t r = 0; r < kept.tokens.size(); ++r) {
        kept.tokens[r] = static_cast<std::int32_t>(r * 7919 % 50257);
        kept.targets[r] = static_cast<std::int32_t>(r * 104729 % 50257);
    }
    stage_item const item{.seed = 1, .step = step_id{1}, .microbatch = microbatch_id{0}};
    loss_sum loss;
    auto const microbatch = [&] {
        whole->forward(kept, item, loss);
        whole->backward(kept, item, layer_id{0}, nullptr, nullptr, [](use_id) { return true; });
    };
    microbatch();  // accumulators get their memory
    for (auto _ : measured) {
        microbatch();
    }
    measured.counters["tokens/s"] = benchmark::Counter(static_cast<double>(measured.iterations() * rows(shape)), benchmark::Counter::kIsRate);
}
BENCHMARK(stage_on_shards)->Arg(1)->Arg(2)->Arg(4)->Arg(8)->Unit(benchmark::kMillisecond)->MeasureProcessCPUTime();

}  // namespace

BENCHMARK_MAIN();
