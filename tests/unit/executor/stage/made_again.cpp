// SPDX-License-Identifier: Apache-2.0
// Layers that drop what they can make again leave the bits of those that keep everything, and hold as much less as the model says.
#include "rheo/model/made_again.hpp"

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
std::vector<std::vector<made_again>> all_choices(std::size_t layers)
{
    std::vector<std::vector<made_again>> all{{}};
    for (std::size_t l = 0; l < layers; ++l) {
        std::vector<std::vector<made_again>> longer;
        for (auto const& one : all) {
            for (auto const how : {made_again::nothing, made_again::cheap, made_again::all}) {
                longer.push_back(one);
                longer.back().push_back(how);
            }
        }
        all = std::move(longer);
    }
    return all;
}

/// The same but for logits, which a last layer that is made again does not leave.
bool same(step_result a, step_result const& b, std::vector<made_again> const& again)
{
    if (again.back() == made_again::all) {
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
    for (auto const& again : all_choices(model.layers.size())) {
        auto const dropped = run_step(model, step, {.cuts = {0, layers}, .how = backwards::split_late, .again = again});
        CHECK(same(dropped, base, again));
        bytes less;
        for (std::size_t l = 0; l < again.size(); ++l) {
            less += dropped_bytes(model.layers[l], batch, again[l]) * 2;  // two microbatches are in flight
        }
        CHECK(dropped.peaks[0] + less == base.peaks[0]);
    }
    for (auto const how : {made_again::cheap, made_again::all}) {
        std::vector const again(model.layers.size(), how);
        for (auto const way : {backwards::whole, backwards::split, backwards::recomputed, backwards::recomputed_split}) {
            CHECK(same(run_step(model, step, {.cuts = {0, 2, layers}, .threads = 2, .how = way, .again = again}), base, again));
        }
    }
}

}  // namespace

TEST_CASE("whatever the layers of a GPT drop, gradients and loss have the same bits, with dropout and in halves of backwards")
{
    keeps_its_bits(fused(gpt_model(dropping)));
    keeps_its_bits(gpt_model(dropping));
}

TEST_CASE("whatever the layers of a Llama drop, gradients and loss have the same bits")
{
    auto const model = llama_model({.vocabulary = 37, .context = 12, .width = 24, .heads = 4, .kv_heads = 2, .blocks = 2, .mlp_width = 32});
    keeps_its_bits(fused(model));
    keeps_its_bits(model);
}

TEST_CASE("slices of a sequence make again what is cheap, which later slices do not attend to")
{
    for (auto const& model : {fused(gpt_model(dropping)),
                              fused(llama_model({.vocabulary = 37, .context = 12, .width = 24, .heads = 4, .kv_heads = 2, .blocks = 2, .mlp_width = 32}))}) {
        auto const step = random_step(small, 2);
        auto const layers = static_cast<int>(model.layers.size());
        auto const base = run_step(model, step, {.cuts = {0, layers}, .slices = 3});
        std::vector const cheap(model.layers.size(), made_again::cheap);
        CHECK(run_step(model, step, {.cuts = {0, layers}, .slices = 3, .again = cheap}) == base);
        CHECK(run_step(model, step, {.cuts = {0, 2, layers}, .how = backwards::split_late, .slices = 3, .again = cheap}) == base);
        std::vector const whole(model.layers.size(), made_again::all);
        CHECK_THROWS_AS(run_step(model, step, {.cuts = {0, layers}, .slices = 3, .again = whole}), precondition_error);
    }
}

TEST_CASE("backwards that reach only some layers make only these again")
{
    auto const model = fused(gpt_model(dropping));
    auto const step = random_step(small, 2);
    auto const layers = static_cast<int>(model.layers.size());
    std::vector const all(model.layers.size(), made_again::all);
    options const plain{.cuts = {0, layers}, .lowest = {layer_id{2}, layer_id{3}}};
    auto dropped = plain;
    dropped.again = all;
    CHECK(same(run_step(model, step, dropped), run_step(model, step, plain), all));
}
