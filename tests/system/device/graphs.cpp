// SPDX-License-Identifier: Apache-2.0
// What a device records: the same bits as kernel by kernel, at once and as late as possible, and as many launches of graphs as predicted.
#include "executor/cuda/recordings.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <stdexcept>

#include "executor/cuda/backend.hpp"
#include "executor/cuda/queue.hpp"
#include "executor/train/opened_backend.hpp"
#include "late.hpp"
#include "rheo/model/llama.hpp"
#include "rheo/schedule/families/one_f_one_b.hpp"
#include "rheo/schedule/families/zb_h1.hpp"
#include "support/catch.hpp"
#include "unit/executor/stage/stage_steps.hpp"

using namespace rheo;
using namespace stage_steps;

namespace {

/// Graphs that a rank launches for its row once all slots have been recorded: one for each computation, whatever its stage has of layers.
constexpr std::uint64_t graph_launches(std::span<instruction const> row)
{
    std::uint64_t count = 0;
    for (auto const& i : row) {
        count += is_work(i.kind) ? 1 : 0;
    }
    return count;
}

static_assert([] {
    auto const whole = one_f_one_b::program({.ranks = 2, .microbatches = 4});
    auto const split = zb_h1::program({.ranks = 2, .microbatches = 4});
    return graph_launches(whole.rows[0]) == 4 * 2 && graph_launches(split.rows[1]) == 4 * 3;
}());

constexpr int microbatches = 4;
constexpr int steps = 2;

/// How steps are run through two stages of a model, each with two slots that items use in turn.
struct way {
    bool graphs = true;
    bool split = false;
    int slices = 1;
    int remainder_from = steps;                     ///< the first step that runs what a loss has left of it
    std::optional<use_id> left_out = std::nullopt;  ///< that does not contribute
};

struct outcome {
    std::vector<use_result> uses;
    loss_sum loss;
    friend bool operator==(outcome const&, outcome const&) = default;
};

/// @param launched by step: of graphs
outcome run(model_description const& model, dtype_policy policy, way const& w, std::vector<std::uint64_t>* launched = nullptr)
{
    run_config config;
    config.run.device = compute_device::cuda;
    config.run.attention = attention_kernel::warp;
    config.run.graphs = w.graphs;
    config.train.dtype = policy == bf16 ? stored_numbers::brain_float16 : stored_numbers::float32;
    auto const device = open_backend(config, model);
    auto const info = state_of(model);
    auto const layers = static_cast<int>(model.layers.size());
    microbatch_shape const shape{batch.sequences, batch.tokens, w.slices};
    resident_state state{info, *device};
    std::fill(state.scales.begin(), state.scales.end(), first_scale);
    initialise_layers(state, layer_id{0}, layer_id{layers}, seed);
    std::vector<std::unique_ptr<stage>> stages;
    stages.push_back(device->make_stage(std::span{model.layers}.first(1), layer_id{0}, shape, microbatches, state));
    stages.push_back(device->make_stage(std::span{model.layers}.subspan(1), layer_id{1}, shape, microbatches, state));
    std::vector<std::array<activation, 2>> slots;  // microbatch % 2, slice
    slots.reserve(static_cast<std::size_t>(2 * w.slices));
    for (int k = 0; k < 2 * w.slices; ++k) {
        slots.push_back({activation{stages[0]->layout()}, activation{stages[1]->layout()}});
        for (int before = k - k % w.slices; before < k; ++before) {
            slots.back()[0].before.push_back(&slots[static_cast<std::size_t>(before)][0]);
            slots.back()[1].before.push_back(&slots[static_cast<std::size_t>(before)][1]);
        }
    }
    array<std::byte> between{device->own(), stages[1]->input_bytes()};
    outcome result;
    std::function<bool(use_id)> const adds = [&](use_id use) { return use != w.left_out; };
    auto const backward = [&](std::size_t s, activation& a, stage_item const& item, void* above, void* below) {
        if (w.split) {
            stages[s]->input_gradient(a, item, stages[s]->first_layer(), above, below);
            stages[s]->weight_gradient(a, item, stages[s]->first_layer(), adds);
        } else {
            stages[s]->backward(a, item, stages[s]->first_layer(), above, below, adds);
        }
    };
    for (int step = 0; step < steps; ++step) {
        auto const begin = graphs_so_far().value_or(0);
        state.clear_accumulators();
        auto const data = random_step(small, microbatches + step);
        auto const item_of = [&](int m) {
            return stage_item{.seed = 5, .step = step_id{step}, .microbatch = microbatch_id{m}, .remainder = step >= w.remainder_from};
        };
        auto const slot = [&](stage_item const& item) -> auto& { return slots[static_cast<std::size_t>(item.microbatch.value % 2 * w.slices + item.slice)]; };
        for (int pair = 0; pair < microbatches; pair += 2) {
            for (int m = pair; m < pair + 2; ++m) {
                auto const& of = data[static_cast<std::size_t>(m + step)];
                for (auto item = item_of(m); item.slice < w.slices; ++item.slice) {
                    auto& [low, high] = slot(item);
                    for (auto* a : {&low, &high}) {
                        a->tokens = slice_of(of.tokens, shape, static_cast<std::size_t>(item.slice));
                        a->targets = slice_of(of.targets, shape, static_cast<std::size_t>(item.slice));
                    }
                    stages[0]->forward(low, item, result.loss);
                    device->copy(stages[1]->input(high), stages[0]->output(low), stages[1]->input_bytes());
                    stages[1]->forward(high, item, result.loss);
                }
            }
            for (int m = pair + 2; m-- > pair;) {  // the last first: so each finds its memory again in the next pair
                auto item = item_of(m);
                for (item.slice = w.slices; item.slice-- > 0;) {
                    auto& [low, high] = slot(item);
                    backward(1, high, item, nullptr, between.data());
                    backward(0, low, item, between.data(), nullptr);
                }
            }
        }
        device->wait();
        if (launched != nullptr) {
            launched->push_back(graphs_so_far().value_or(0) - begin);
        }
    }
    for (auto const& s : stages) {
        for (auto const use : s->uses()) {
            result.uses.push_back(result_of(state, use));
        }
    }
    return result;
}

auto const dropping = [] {
    auto shape = small;
    shape.dropout_per_mille = 200;
    shape.blocks = 1;
    return shape;
}();

}  // namespace

TEST_CASE("graphs: graphs give the bits of single kernels")
{
    auto const gpt = fused(gpt_model(dropping));
    auto const llama =
        fused(llama_model({.vocabulary = small.vocabulary, .context = 12, .width = 24, .heads = 4, .kv_heads = 2, .blocks = 1, .mlp_width = 32}));
    for (auto const& [model, policy] : {std::pair{&gpt, bf16}, {&llama, fp32}}) {
        auto const expected = run(*model, policy, {.graphs = false});
        CHECK(run(*model, policy, {}) == expected);
        late const as_late_as_it_may;
        CHECK(run(*model, policy, {.split = true}) == expected);
    }
}

TEST_CASE("graphs: unfused operations and slices are recorded")
{
    auto const model = gpt_model(dropping);
    late const as_late_as_it_may;
    CHECK(run(model, fp32, {}) == run(model, fp32, {.graphs = false}));
    CHECK(run(model, fp32, {.slices = 3}) == run(model, fp32, {.graphs = false, .slices = 3}));
}

TEST_CASE("graphs: work that threw is not recorded")
{
    auto const device = cuda::make_backend(bf16, 0);
    cuda::device_queue queue{device->own(), device->messages(), cuda::tensor_cores::of_warps, std::nullopt};
    {
        cuda::recordings recorded{queue};
        int tries = 0;
        auto const work = [&] {
            if (++tries == 1) {
                throw std::runtime_error{"the first one"};
            }
            (void)queue.scratch(1 << 16);  // memory is asked for by what runs alone, never while a graph is recorded
            queue.zero(queue.loss(), sizeof(loss_sum));
        };
        CHECK_THROWS_AS(recorded.perform({1, 2}, work), std::runtime_error);
        CHECK_NOTHROW(recorded.perform({1, 2}, work));
        CHECK_NOTHROW(recorded.perform({1, 2}, work));
        CHECK_NOTHROW(recorded.perform({1, 2}, work));
        CHECK(tries >= 3);
        queue.wait();
    }
}

TEST_CASE("graphs: graph launches per step equal computations")
{
    auto const model = fused(gpt_model(dropping));
    schedule_shape const size{.ranks = 2, .microbatches = microbatches};
    auto const of = [&](program const& p) { return graph_launches(p.rows[0]) + graph_launches(p.rows[1]); };
    auto const whole = of(one_f_one_b::program(size));
    /// Of the second step: in the first one the workspace grows, and what was recorded before is forgotten.
    auto const check = [&](way const& w, std::uint64_t predicted, outcome const& expected) {
        std::vector<std::uint64_t> launched;
        CHECK(run(model, fp32, w, &launched) == expected);
        if (graphs_so_far()) {  // not counted on a GPU
            CHECK(launched.back() == predicted);
        }
    };
    auto const expected = run(model, fp32, {.graphs = false});
    check({}, whole, expected);
    check({.graphs = false}, 0, expected);
    check({.split = true}, of(zb_h1::program(size)), expected);
    check({.remainder_from = 1}, 0, expected);
    check({.left_out = use_id{3}}, whole - microbatches, run(model, fp32, {.graphs = false, .left_out = use_id{3}}));
}
