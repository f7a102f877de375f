// SPDX-License-Identifier: Apache-2.0
// A stage on a grid of shards: near the reference in double, and the same bits however the model is cut, which threads take the tiles, what is recomputed,
// and whether a backward is split. A grid has bits of its own; its first values are those of every other.
#include "executor/stage/stage.hpp"

#include <cmath>
#include <string>

#include "reference_llama.hpp"
#include "rheo/model/grid.hpp"
#include "stage_reference.hpp"
#include "stage_steps.hpp"
#include "support/catch.hpp"

using namespace rheo;
using namespace stage_steps;

namespace {

/// Four heads, and wide enough that four shards have columns.
constexpr gpt_shape wide{.vocabulary = 83, .context = 12, .width = 64, .heads = 4, .blocks = 2, .dropout_per_mille = 100};

model_description gpt_on(int shards, bool fuses = true)
{
    auto const model = on_grid(gpt_model(wide), shards);
    return fuses ? fused(model) : model;
}

/// All gradients by parameter, as a grid of one has them: parts are put back into their places.
std::vector<std::vector<float>> gradients_by_parameter(model_description const& model, step_result const& step)
{
    auto const info = state_of(model);
    auto const whole_info = state_of(on_grid(model, 1));
    std::vector<std::vector<float>> all;
    for (auto const& tensor : whole_info.tensors) {
        all.emplace_back(static_cast<std::size_t>(elements(tensor.shape)));
    }
    for (std::size_t t = 0; t < info.tensors.size(); ++t) {
        auto const& tensor = info.tensors[t];
        if (!tensor.is_parameter) {
            continue;
        }
        auto const g = gradient(info, step, t);
        auto const number = tensor.part.parameter.empty() ? t : at(tensor.part.number);
        for_each_run(tensor, [&](element_run const& run) {
            for (std::int64_t i = 0; i < run.count; ++i) {
                all[number][static_cast<std::size_t>(run.in_parameter + i)] = g[static_cast<std::size_t>(run.own + i)];
            }
        });
    }
    return all;
}

void check_near(model_description const& model, gpt_shape shape, int slices = 1)
{
    auto const step = random_step(shape, 2);
    auto const alone = on_grid(model, 1);
    auto const expected = run_step(alone, step, {.cuts = {0, static_cast<int>(model.layers.size())}, .slices = slices});
    auto const got = run_step(model, step, {.cuts = {0, static_cast<int>(model.layers.size())}, .slices = slices});
    CHECK(got.loss.targets == expected.loss.targets);
    CHECK(std::fabs(mean_loss(got.loss) - mean_loss(expected.loss)) <= 2e-6 * mean_loss(expected.loss));
    auto const of_grid = gradients_by_parameter(model, got);
    auto const of_one = gradients_by_parameter(alone, expected);
    auto const names = state_of(alone);
    for (std::size_t t = 0; t < of_one.size(); ++t) {
        double difference = 0, size = 0;
        for (std::size_t i = 0; i < of_one[t].size(); ++i) {
            difference += std::pow(double(of_grid[t][i]) - double(of_one[t][i]), 2);
            size += std::pow(double(of_one[t][i]), 2);
        }
        INFO(names.tensors[t].name << ": " << std::sqrt(difference) << " of " << std::sqrt(size));
        CHECK(std::sqrt(difference) <= 1e-5 * std::sqrt(size));
    }
}

}  // namespace

TEST_CASE("shards: a grid computes what a grid of one computes")
{
    for (int const grid : {2, 3, 4}) {
        for (bool const fuses : {false, true}) {
            INFO(grid << " shards" << (fuses ? ", fused" : ""));
            check_near(gpt_on(grid, fuses), wide);
        }
        check_near(gpt_on(grid), wide, 3);
    }
    auto untied = wide;
    untied.tied = false;
    check_near(on_grid(fused(gpt_model(untied)), 4), untied);
}

TEST_CASE("shards: a grid of a Llama computes what one shard does")
{
    for (int const kv : {1, 2, 4}) {
        llama_shape const shape{.vocabulary = 83, .context = 12, .width = 64, .heads = 4, .kv_heads = kv, .blocks = 2, .mlp_width = 96};
        for (int const grid : {2, 4}) {
            INFO(kv << " heads of keys and values, " << grid << " shards");
            check_near(on_grid(fused(llama_model(shape)), grid), wide);
            check_near(on_grid(llama_model(shape), grid), wide, 3);
        }
    }
}

TEST_CASE("shards: biases, norms and wide heads of a grid")
{
    for (int const kv : {1, 2, 4}) {
        llama_shape const shape{.vocabulary = 83,
                                .context = 12,
                                .width = 64,
                                .heads = 4,
                                .kv_heads = kv,
                                .blocks = 2,
                                .mlp_width = 96,
                                .head_dim = 20,
                                .qkv_bias = true,
                                .qk_norm = true};
        for (int const grid : {2, 4}) {
            INFO(kv << " heads of keys and values, " << grid << " shards");
            check_near(on_grid(fused(llama_model(shape)), grid), wide);
            check_near(on_grid(llama_model(shape), grid), wide, 3);
        }
    }
}

TEST_CASE("shards: same bits for any cut and number of threads")
{
    for (int const grid : {2, 3}) {
        for (bool const fuses : {false, true}) {
            auto const model = gpt_on(grid, fuses);
            auto const step = random_step(wide, 2);
            auto const expected = run_step(model, step, whole(model));
            REQUIRE(expected.uses.size() == state_of(model).uses.size() - static_cast<std::size_t>(grid));
            for (auto const& cuts : {std::vector{0, 1, 4}, {0, 2, 4}, {0, 1, 2, 3, 4}}) {
                CHECK(run_step(model, step, {.cuts = cuts}) == expected);
            }
            CHECK(run_step(model, step, {.cuts = {0, 2, 4}, .threads = 2, .times = 2}) == expected);
        }
    }
}

TEST_CASE("shards: same bits whatever is recomputed or split")
{
    auto const model = gpt_on(4);
    auto const step = random_step(wide, 2);
    auto const expected = run_step(model, step, whole(model));
    for (auto const how : {backwards::split, backwards::split_late, backwards::recomputed, backwards::recomputed_split}) {
        CHECK(run_step(model, step, {.cuts = {0, 2, 4}, .how = how}) == expected);
    }
    for (auto const level : {recompute_level::cheap, recompute_level::full}) {
        for (auto const how : {backwards::whole, backwards::split_late}) {
            std::vector<recompute_level> const levels{level, level, level, recompute_level::cheap};
            CHECK(run_step(model, step, {.cuts = {0, 2, 4}, .how = how, .recompute_levels = levels}) == expected);
        }
    }
    auto const sliced = run_step(model, step, {.cuts = {0, 4}, .slices = 3});
    CHECK(run_step(model, step, {.cuts = {0, 1, 3, 4}, .how = backwards::split_late, .slices = 3, .stage_by_stage = true}) == sliced);
}

TEST_CASE("shards: any single use can contribute alone")
{
    auto const model = gpt_on(2);
    auto const step = random_step(wide, 1);
    auto const all = run_step(model, step, whole(model));
    for (std::size_t only = 0; only < all.uses.size(); ++only) {
        auto alone = whole(model);
        alone.only = use_id{static_cast<int>(only)};
        auto const part = run_step(model, step, alone);
        CHECK(part.uses[only] == all.uses[only]);
    }
}

TEST_CASE("shards: activations are those that are planned")
{
    for (int const grid : {2, 3, 4}) {
        for (auto const& model : {gpt_on(grid), gpt_on(grid, false)}) {
            for (auto const level : {recompute_level::none, recompute_level::cheap, recompute_level::full}) {
                std::vector<recompute_level> const levels(model.layers.size(), level);
                activation_layout const layout{model.layers, batch, fp32, host_memory(), levels};
                auto planned = activation_bytes(array_view{model.layers}, batch);
                bytes region;
                for (auto const& layer : model.layers) {
                    auto const dropped = dropped_bytes(layer, batch, level);
                    planned -= dropped;
                    region = std::max(region, dropped);
                }
                CHECK(bytes{static_cast<std::int64_t>(layout.memory_bytes + layout.input_bytes)} == planned);
                CHECK(bytes{static_cast<std::int64_t>(layout.recompute_bytes)} == region);
            }
            activation_layout const layout{model.layers, batch};
            CHECK(bytes{static_cast<std::int64_t>(layout.gradient_bytes)} == kept_gradient_bytes(array_view{model.layers}, batch));
        }
    }
}

TEST_CASE("shards: every grid begins with the same parameters")
{
    host_backend host{1};
    auto const digest_on = [&](int shards) {
        auto const model = gpt_on(shards);
        auto const info = state_of(model);
        resident_state state{info, host};
        initialise_layers(state, layer_id{0}, layer_id{static_cast<int>(model.layers.size())}, seed);
        state_digest sum;
        for (tensor_id t{0}; at(t) < info.tensors.size(); ++t) {
            sum += info.tensors[at(t)].is_parameter ? state.digest(t) : state_digest{};
        }
        return sum;
    };
    for (int const grid : {2, 3, 4}) {
        CHECK(digest_on(grid) == digest_on(1));
    }
}
