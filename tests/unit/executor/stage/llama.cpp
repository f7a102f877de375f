// SPDX-License-Identifier: Apache-2.0
// A Llama through stages at work: gradients against an independent reference in double, and the laws that hold for a GPT: the bits
// do not depend on cuts, threads, fusion, halves of a backward, recomputation, or the order in which slices and stages take turns.
#include <cmath>

#include "reference_llama.hpp"
#include "rheo/model/grid.hpp"
#include "stage_reference.hpp"
#include "stage_steps.hpp"
#include "support/catch.hpp"

using namespace rheo;
using namespace stage_steps;

namespace {

constexpr llama_shape tiny{.vocabulary = 37, .context = 12, .width = 24, .heads = 4, .kv_heads = 2, .blocks = 2, .mlp_width = 20, .rope_base = 100};

/// What the families beyond Llama 2 have of their own, some of it for itself and all at once.
std::vector<std::pair<char const*, llama_shape>> families()
{
    auto with = [](auto change) {
        auto shape = tiny;
        change(shape);
        return shape;
    };
    auto const qwen2 = [](llama_shape& s) { s.qkv_bias = true; };
    auto const qwen3 = [](llama_shape& s) {
        s.qk_norm = true;
        s.head_dim = 10;
    };
    auto const llama3 = [](llama_shape& s) {
        // of the pairs, which turn by 1, 0.22 and 0.05 per position, one is in each third
        s.scaling = {.kind = rope_scaling_kind::llama3,
                     .factor_per_mille = 4000,
                     .low_freq_factor_per_mille = 500,
                     .high_freq_factor_per_mille = 1500,
                     .original_context = 32};
    };
    return {{"narrow heads", with([](auto& s) { s.head_dim = 4; })},
            {"norms of queries and keys", with(qwen3)},
            {"linear scaling", with([](auto& s) { s.scaling = {.kind = rope_scaling_kind::linear, .factor_per_mille = 2500}; })},
            {"all", with([&](auto& s) {
                 qwen2(s);
                 qwen3(s);
                 llama3(s);
                 s.norm_epsilon_e9 = 1000;
             })}};
}

llama_shape with_tied(bool tied)
{
    auto shape = tiny;
    shape.tied = tied;
    return shape;
}

/// The step's data; a target that does not count is among them.
std::vector<reference::microbatch> step_of(int count) { return random_step(small, count); }

/// What does not depend on fusion: the fused loss leaves its gradient in place of the logits.
void check_same(step_result const& a, step_result const& b) { CHECK((a.uses == b.uses && a.loss == b.loss)); }

/// Per tensor the distance of a step's gradient from the reference's, over the size of the latter; the reference has `shape`.
double largest_distance(llama_shape shape, model_description const& model, int slices)
{
    auto const step = step_of(2);
    auto const info = state_of(model);
    auto const actual = run_step(model, step, {.cuts = {0, static_cast<int>(model.layers.size())}, .slices = slices});
    reference::llama exact{shape, info, batch.tokens};
    host_backend backend{1};
    resident_state first{info, backend};
    initialise_layers(first, layer_id{0}, layer_id{static_cast<int>(model.layers.size())}, seed);
    for (std::size_t t = 0; t < info.tensors.size(); ++t) {
        auto& p = exact.parameters.emplace_back();
        if (info.tensors[t].is_parameter) {
            auto const values = first.tensor(tensor_id{static_cast<int>(t)}).parameter.floats();
            p.assign(values.begin(), values.end());
        }
    }
    double largest = 0;
    for (std::size_t t = 0; t < info.tensors.size(); ++t) {
        if (!info.tensors[t].is_parameter) {
            continue;
        }
        // Central differences in double: with h = 1e-4 they are off by h^2 / 6 of a third derivative of the order of the loss (about
        // 100), so by 2e-7, and by 1e-16 * 100 / h = 1e-10.
        auto& p = exact.parameters[t];
        reference::values expected(p.size());
        std::size_t const every = p.size() > 300 ? 7 : 1;
        for (std::size_t i = 0; i < p.size(); i += every) {
            double const kept = p[i];
            p[i] = kept + 1e-4;
            double const above = exact.loss(step);
            p[i] = kept - 1e-4;
            double const below = exact.loss(step);
            p[i] = kept;
            expected[i] = (above - below) / 2e-4;
        }
        auto g = gradient(info, actual, t);
        for (std::size_t i = 0; i < p.size(); ++i) {
            g[i] = i % every == 0 ? g[i] : 0;
        }
        largest = std::max(largest, reference::distance(g, expected) / (1e-3 + reference::distance(expected, reference::values(p.size()))));
    }
    CHECK(std::fabs(mean_loss(actual.loss) - exact.loss(step) / static_cast<double>(actual.loss.targets)) <= 1e-5);
    return largest;
}

}  // namespace

TEST_CASE("llama: a Llama's gradients and loss are the reference's")
{
    // Each value passes some dozens of operations in float, each off by a few 6e-8 times the root of its terms: some 1e-6 of the size of
    // a gradient, and as much for the differences; a wrong term is of the order of 1.
    for (bool const tied : {false, true}) {
        auto const shape = with_tied(tied);
        for (int const slices : {1, 3}) {
            CHECK(largest_distance(shape, llama_model(shape), slices) <= 3e-5);
        }
        CHECK(largest_distance(shape, fused(llama_model(shape)), 1) <= 3e-5);
    }
    auto other = tiny;
    other.rope_base = 300;
    CHECK(largest_distance(other, llama_model(tiny), 1) > 1e-3);
}

TEST_CASE("llama: families' gradients and loss are the reference's")
{
    for (auto const& [name, shape] : families()) {
        INFO(name);
        CHECK(largest_distance(shape, llama_model(shape), 1) <= 3e-5);
    }
    auto const& all = families().back().second;
    CHECK(largest_distance(all, fused(llama_model(all)), 3) <= 3e-5);
}

TEST_CASE("llama: same bits fused, cut, threaded, recomputed")
{
    auto const step = step_of(3);
    for (auto const& shape : {with_tied(false), with_tied(true), families().back().second}) {
        auto const model = llama_model(shape);
        auto const expected = run_step(model, step, whole(model));
        check_same(run_step(fused(model), step, whole(model)), expected);
        for (auto const& cuts : {std::vector{0, 2, 4}, {0, 1, 2, 3, 4}}) {
            for (auto const how : {backwards::whole, backwards::split, backwards::split_late, backwards::recomputed, backwards::recomputed_split}) {
                check_same(run_step(fused(model), step, {.cuts = cuts, .how = how}), expected);
            }
        }
        check_same(run_step(fused(model), step, {.cuts = {0, 2, 4}, .threads = 2, .times = 2}), expected);
        auto const sliced = run_step(model, step, {.cuts = {0, 4}, .slices = 3});
        for (bool const stage_by_stage : {false, true}) {
            check_same(run_step(fused(model), step, {.cuts = {0, 1, 3, 4}, .slices = 3, .stage_by_stage = stage_by_stage}), sliced);
        }
    }
}

TEST_CASE("llama: a Llama's stage allocates what the library plans")
{
    for (int const slices : {1, 3}) {
        microbatch_shape const shape{batch.sequences, batch.tokens, slices};
        auto const all = fused(llama_model(families().back().second));
        for (auto const& model : {fused(llama_model(tiny)), all, on_grid(all, 2)}) {
            for (std::size_t first = 0; first < model.layers.size(); ++first) {
                auto const part = std::span{model.layers}.subspan(first);
                activation_layout const layout{part, shape};
                CHECK(activation_bytes(part, shape) == bytes{static_cast<std::int64_t>(layout.input_bytes + layout.memory_bytes)});
                CHECK(kept_gradient_bytes(part, shape) == bytes{static_cast<std::int64_t>(layout.gradient_bytes)});
            }
        }
    }
}
