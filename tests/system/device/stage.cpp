// SPDX-License-Identifier: Apache-2.0
// Stages on the emulated device, against those on the host: the same numbers up to rounding, and among themselves the same bits, whatever
// is cut, split, evicted or sliced, and whether the device does things at once or as late as possible.
#include "executor/stage/stage.hpp"

#include <algorithm>
#include <cmath>

#include "executor/cuda/backend.hpp"
#include "executor/cuda/queue.hpp"
#include "kernels/cuda/launches.hpp"
#include "late.hpp"
#include "rheo/model/llama.hpp"
#include "support/catch.hpp"
#include "unit/executor/stage/stage_steps.hpp"

using namespace rheo;
using namespace stage_steps;

namespace {

/// The distance of two gradients over the size of the second, both as sums of a use at one scale.
double distance(use_result const& a, use_result const& b)
{
    double error = 0;
    double size = 0;
    for (std::size_t i = 0; i < a.sums.size(); ++i) {
        auto const difference = static_cast<double>(a.sums[i] - b.sums[i]);
        error += difference * difference;
        size += static_cast<double>(b.sums[i]) * static_cast<double>(b.sums[i]);
    }
    return size == 0 ? error : std::sqrt(error / size);
}

/// The largest of all uses.
double distance(step_result const& a, step_result const& b)
{
    REQUIRE(a.uses.size() == b.uses.size());
    double largest = 0;
    for (std::size_t u = 0; u < a.uses.size(); ++u) {
        CHECK(a.uses[u].state.scale_log2 == b.uses[u].state.scale_log2);
        largest = std::max(largest, distance(a.uses[u], b.uses[u]));
    }
    return largest;
}

/// @param tolerance of a gradient: a few hundred roundings of the storage type, which add up at random, over few terms
void same_as_on_the_host(model_description const& model, dtype_policy policy, double tolerance)
{
    auto const device = cuda::make_backend(policy, 0);
    auto const step = random_step(small, 2);
    auto const layers = static_cast<int>(model.layers.size());
    auto const host = run_step(model, step, {.cuts = {0, layers}});
    auto const whole = run_step(model, step, {.cuts = {0, layers}, .backend = device.get()});
    CHECK(distance(whole, host) < tolerance);
    CHECK(whole.loss.targets == host.loss.targets);
    CHECK(std::fabs(mean_loss(whole.loss) - mean_loss(host.loss)) < tolerance);
    late const as_late_as_it_may;
    CHECK(run_step(model, step, {.cuts = {0, layers}, .backend = device.get()}) == whole);
    CHECK(run_step(model, step, {.cuts = {0, 1, layers}, .backend = device.get()}) == whole);
    for (auto const how : {backwards::split, backwards::split_late, backwards::recomputed, backwards::recomputed_split}) {
        CHECK(run_step(model, step, {.cuts = {0, 1, layers}, .how = how, .backend = device.get()}) == whole);
    }
    std::vector recompute_levels(model.layers.size(), recompute_level::cheap);
    CHECK(run_step(model, step, {.cuts = {0, 1, layers}, .backend = device.get(), .recompute_levels = recompute_levels}) == whole);
    recompute_levels.assign(model.layers.size(), recompute_level::full);
    auto dropped = run_step(model, step, {.cuts = {0, layers}, .how = backwards::split_late, .backend = device.get(), .recompute_levels = recompute_levels});
    dropped.logits = whole.logits;  // which it does not leave
    CHECK(dropped == whole);
}

}  // namespace

TEST_CASE("stage: stages on a device compute what those on the host do")
{
    same_as_on_the_host(fused(gpt_model(small)), fp32, 2e-5);
    same_as_on_the_host(fused(gpt_model(small)), bf16, 0.05);
}

TEST_CASE("stage: row sums match 64-bit sums at each row's scale")
{
    auto const at_one_scale = [](resident_state& state) { std::fill(state.scales.begin(), state.scales.end(), 16); };
    auto const llama =
        fused(llama_model({.vocabulary = 37, .context = 12, .width = 24, .heads = 4, .kv_heads = 2, .blocks = 1, .mlp_width = 32, .qk_norm = true}));
    for (auto const& model : {fused(gpt_model(small)), llama}) {
        auto const step = random_step(small, 2);
        auto const layers = static_cast<int>(model.layers.size());
        for (auto const& [in_rows, plain] : {std::pair{fp32_i32, fp32}, std::pair{bf16_i32, bf16}}) {
            auto const device = cuda::make_backend(in_rows, 0);
            auto const other = cuda::make_backend(plain, 0);
            auto const expected = run_step(model, step, {.cuts = {0, layers}, .backend = other.get(), .prepare = at_one_scale});
            auto const whole = run_step(model, step, {.cuts = {0, layers}, .backend = device.get(), .prepare = at_one_scale});
            REQUIRE(whole.uses.size() == expected.uses.size());
            for (std::size_t u = 0; u < whole.uses.size(); ++u) {
                CHECK(whole.uses[u].sums == expected.uses[u].sums);
                CHECK(whole.uses[u].state.max_abs == expected.uses[u].state.max_abs);
                CHECK_FALSE((whole.uses[u].state.overflow || whole.uses[u].state.not_finite || whole.uses[u].rows.empty()));
            }
            late const as_late_as_it_may;
            for (auto const how : {backwards::whole, backwards::split_late}) {
                CHECK(run_step(model, step, {.cuts = {0, 1, layers}, .how = how, .backend = device.get(), .prepare = at_one_scale}) == whole);
            }
        }
    }
}

TEST_CASE("stage: operations that are not fused run on a device, too") { same_as_on_the_host(gpt_model(small), fp32, 2e-5); }

TEST_CASE("stage: a Llama's stages run on a device")
{
    llama_shape shape{.vocabulary = 37, .context = 12, .width = 24, .heads = 4, .kv_heads = 2, .blocks = 2, .mlp_width = 32};
    for (bool const of_families : {false, true}) {
        shape.qkv_bias = shape.qk_norm = of_families;
        if (of_families) {
            shape.head_dim = 16;
            shape.scaling = {.kind = rope_scaling_kind::linear, .factor_per_mille = 2000};
            shape.norm_epsilon_e9 = 1000;
        }
        same_as_on_the_host(fused(llama_model(shape)), fp32, 2e-5);
        same_as_on_the_host(fused(llama_model(shape)), bf16, 0.05);
    }
}

TEST_CASE("stage: slices: same bits for any cut, close to the host")
{
    auto const model = fused(gpt_model(small));
    auto const layers = static_cast<int>(model.layers.size());
    auto const step = random_step(small, 2);
    for (auto const& policy : {fp32, bf16}) {
        auto const device = cuda::make_backend(policy, 0);
        auto const whole = run_step(model, step, {.cuts = {0, layers}, .slices = 3, .backend = device.get()});
        CHECK(distance(whole, run_step(model, step, {.cuts = {0, layers}, .slices = 3})) < (policy == fp32 ? 2e-5 : 0.05));
        CHECK(run_step(model, step, {.cuts = {0, 2, layers}, .how = backwards::split_late, .slices = 3, .backend = device.get()}) == whole);
    }
}

TEST_CASE("stage: kernel launches of a block match the model")
{
    auto const model = fused(gpt_model({.vocabulary = 64, .context = 16, .width = 32, .heads = 2, .blocks = 1, .dropout_per_mille = 100}));
    auto const info = state_of(model);
    for (auto const& policy : {fp32, bf16}) {
        auto const device = cuda::make_backend(policy, 0);
        resident_state state{info, *device};
        initialise_layers(state, layer_id{1}, layer_id{2}, seed);
        auto const block = device->make_stage(std::span{model.layers}.subspan(1, 1), layer_id{1}, {2, 16}, 1, state);
        activation a{block->layout()};
        array<std::byte> above{device->own(), block->output_bytes()};
        array<std::byte> below{device->own(), block->input_bytes()};
        loss_sum none;
        device->wait();
        auto const begin = launches_so_far();
        if (!begin) {
            SUCCEED("launches are not counted on a GPU");
            return;
        }
        block->forward(a, {}, none);
        device->wait();
        auto const middle = launches_so_far();
        block->backward(a, {}, layer_id{1}, above.data(), below.data(), [](use_id) { return true; });
        device->wait();
        CHECK(*middle - *begin == cuda::launches_of(model.layers[1], cuda::launch_pass::forward, policy).size());
        CHECK(*launches_so_far() - *middle == cuda::launches_of(model.layers[1], cuda::launch_pass::backward, policy).size());
    }
}

TEST_CASE("stage: a forgotten loss is not written")
{
    auto const device = cuda::make_backend(fp32, 0);
    cuda::device_queue queue{device->own(), device->messages(), cuda::tensor_cores::of_warps, std::nullopt};
    late const as_late_as_it_may;
    loss_sum const one{.fixed = 5, .targets = 1};
    loss_sum wanted, forgotten;
    queue.copy(queue.begin_loss(), &one, sizeof one);
    queue.fetch_loss(forgotten);
    queue.forget_losses();  // as if an exception had left the frame of `forgotten`
    queue.fetch_loss(wanted);
    queue.wait();
    CHECK(forgotten == loss_sum{});
    CHECK(wanted == one);
}

TEST_CASE("stage: memory held equals the plan's, in storage type")
{
    auto const model = fused(gpt_model(small));
    auto const layers = static_cast<int>(model.layers.size());
    auto const device = cuda::make_backend(bf16, 0);
    auto const result = run_step(model, random_step(small, 2), {.cuts = {0, layers}, .how = backwards::split_late, .backend = device.get()});
    CHECK(result.peaks.front() == 2 * (activation_bytes(std::span{model.layers}, batch, bf16) + kept_gradient_bytes(std::span{model.layers}, batch, bf16)));
}
