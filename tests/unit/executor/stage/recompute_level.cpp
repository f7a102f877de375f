// SPDX-License-Identifier: Apache-2.0
// Layers that drop what they can recompute leave the bits of those that keep everything, and hold as much less as the model says.
#include "rheo/model/recompute_level.hpp"

#include <algorithm>
#include <vector>

#include "rheo/model/llama.hpp"
#include "stage_steps.hpp"
#include "support/catch.hpp"

using namespace rheo;
using namespace stage_steps;

namespace {

constexpr gpt_shape dropping{.vocabulary = 37, .context = 12, .width = 24, .heads = 3, .blocks = 2, .dropout_per_mille = 150};

/// All choices of so many layers, one after the other.
std::vector<std::vector<recompute_level>> all_choices(std::size_t layers)
{
    std::vector<std::vector<recompute_level>> all{{}};
    for (std::size_t l = 0; l < layers; ++l) {
        std::vector<std::vector<recompute_level>> longer;
        for (auto const& one : all) {
            for (auto const how : {recompute_level::none, recompute_level::cheap, recompute_level::full}) {
                longer.push_back(one);
                longer.back().push_back(how);
            }
        }
        all = std::move(longer);
    }
    return all;
}

/// The same but for logits, which a last layer that is recomputed does not leave.
bool same(step_result a, step_result const& b, std::vector<recompute_level> const& recompute_levels)
{
    if (recompute_levels.back() == recompute_level::full) {
        CHECK(a.logits.empty());
        a.logits = b.logits;
    }
    return a == b;
}

void keeps_its_bits(model_description const& model)
{
    auto const step = random_step(small, 2);
    auto const layers = static_cast<int>(model.layers.size());
    auto const base = run_step(model, step, {.cuts = {0, layers}, .how = backwards::split_late});
    for (auto const& recompute_levels : all_choices(model.layers.size())) {
        auto const dropped = run_step(model, step, {.cuts = {0, layers}, .how = backwards::split_late, .recompute_levels = recompute_levels});
        CHECK(same(dropped, base, recompute_levels));
        bytes less;
        for (std::size_t l = 0; l < recompute_levels.size(); ++l) {
            less += dropped_bytes(model.layers[l], batch, recompute_levels[l]) * 2;  // two microbatches are in flight
        }
        CHECK(dropped.peaks[0] + less == base.peaks[0]);
    }
    for (auto const how : {recompute_level::cheap, recompute_level::full}) {
        std::vector const recompute_levels(model.layers.size(), how);
        for (auto const way : {backwards::whole, backwards::split, backwards::recomputed, backwards::recomputed_split}) {
            CHECK(
                same(run_step(model, step, {.cuts = {0, 2, layers}, .threads = 2, .how = way, .recompute_levels = recompute_levels}), base, recompute_levels));
        }
    }
}

}  // namespace

TEST_CASE("recompute_level: GPT: any level gives the same bits")
{
    keeps_its_bits(fused(gpt_model(dropping)));
    keeps_its_bits(gpt_model(dropping));
}

TEST_CASE("recompute_level: Llama: any level gives the same bits")
{
    for (bool const normed : {false, true}) {
        auto const model = llama_model(
            {.vocabulary = 37, .context = 12, .width = 24, .heads = 4, .kv_heads = 2, .blocks = 2, .mlp_width = 32, .qkv_bias = normed, .qk_norm = normed});
        keeps_its_bits(fused(model));
        keeps_its_bits(model);
    }
}

TEST_CASE("recompute_level: slices recompute only cheap slots")
{
    for (auto const& model : {fused(gpt_model(dropping)),
                              fused(llama_model({.vocabulary = 37, .context = 12, .width = 24, .heads = 4, .kv_heads = 2, .blocks = 2, .mlp_width = 32})),
                              fused(llama_model({.vocabulary = 37, .context = 12, .width = 24, .heads = 4, .kv_heads = 2, .blocks = 2, .qk_norm = true}))}) {
        auto const step = random_step(small, 2);
        auto const layers = static_cast<int>(model.layers.size());
        auto const base = run_step(model, step, {.cuts = {0, layers}, .slices = 3});
        std::vector const cheap(model.layers.size(), recompute_level::cheap);
        CHECK(run_step(model, step, {.cuts = {0, layers}, .slices = 3, .recompute_levels = cheap}) == base);
        CHECK(run_step(model, step, {.cuts = {0, 2, layers}, .how = backwards::split_late, .slices = 3, .recompute_levels = cheap}) == base);
        std::vector const whole(model.layers.size(), recompute_level::full);
        CHECK_THROWS_AS(run_step(model, step, {.cuts = {0, layers}, .slices = 3, .recompute_levels = whole}), precondition_error);
    }
}

TEST_CASE("recompute_level: partial backwards recompute their layers")
{
    auto const model = fused(gpt_model(dropping));
    auto const step = random_step(small, 2);
    auto const layers = static_cast<int>(model.layers.size());
    std::vector const all(model.layers.size(), recompute_level::full);
    options const plain{.cuts = {0, layers}, .lowest = {layer_id{2}, layer_id{3}}};
    auto dropped = plain;
    dropped.recompute_levels = all;
    CHECK(same(run_step(model, step, dropped), run_step(model, step, plain), all));
}
