// SPDX-License-Identifier: Apache-2.0
// Sequences in slices: the grid of slices is part of the numerics, the order in which stages and slices take turns is not.
#include <cmath>

#include "stage_reference.hpp"
#include "stage_steps.hpp"
#include "support/catch.hpp"

using namespace rheo;
using namespace stage_steps;

namespace {

gpt_shape dropping(int per_mille)
{
    auto shape = small;
    shape.dropout_per_mille = per_mille;
    return shape;
}

}  // namespace

TEST_CASE("slices: sliced step matches the reference")
{
    for (int const slices : {3, 9}) {
        check_against_reference(small, gpt_model(small), slices);
        check_against_reference(small, fused(gpt_model(small)), slices);
    }
}

TEST_CASE("slices: same bits for any order, cut and threads")
{
    auto const step = random_step(small, 2);
    for (int const dropout : {0, 150}) {
        for (auto const& model : {gpt_model(dropping(dropout)), fused(gpt_model(dropping(dropout)))}) {
            auto const expected = run_step(model, step, {.cuts = {0, 4}, .slices = 3});
            for (auto const& cuts : {std::vector{0, 4}, {0, 2, 4}, {0, 1, 2, 3, 4}}) {
                for (bool const stage_by_stage : {false, true}) {
                    CHECK(run_step(model, step, {.cuts = cuts, .slices = 3, .stage_by_stage = stage_by_stage}) == expected);
                }
            }
            CHECK(run_step(model, step, {.cuts = {0, 2, 4}, .threads = 2, .slices = 3, .times = 2}) == expected);
        }
    }
}

TEST_CASE("slices: split or recomputed backward: same bits")
{
    auto const step = random_step(small, 2);
    for (auto const& model : {gpt_model(dropping(100)), fused(gpt_model(dropping(100)))}) {
        auto const expected = run_step(model, step, {.cuts = {0, 2, 4}, .slices = 3});
        for (auto const how : {backwards::split, backwards::split_late, backwards::recomputed, backwards::recomputed_split}) {
            auto const actual = run_step(model, step, {.cuts = {0, 2, 4}, .how = how, .slices = 3});
            CHECK(actual == expected);
            CHECK(actual.input_gradients == expected.input_gradients);
        }
    }
}

TEST_CASE("slices: slices use the dropout of the whole")
{
    auto const step = random_step(small, 2);
    auto const model = fused(gpt_model(dropping(200)));
    auto const info = state_of(model);
    auto const one = run_step(model, step, whole(model));
    auto other_step = step;
    std::swap(other_step[0], other_step[1]);  // the same data under the other microbatch's masks
    auto const other = run_step(model, other_step, whole(model));
    for (int const slices : {3, 9}) {
        auto const cut = run_step(model, step, {.cuts = {0, 4}, .slices = slices});
        CHECK(std::fabs(mean_loss(cut.loss) - mean_loss(one.loss)) <= 1e-5);
        for (std::size_t t = 0; t < info.tensors.size(); ++t) {
            if (info.tensors[t].is_parameter) {
                auto const expected = gradient(info, one, t);
                auto const size = reference::distance(expected, reference::values(expected.size()));
                CHECK(reference::distance(gradient(info, cut, t), reference::values(expected.begin(), expected.end())) <= 1e-4 * size);
            }
        }
    }
    CHECK(std::fabs(mean_loss(other.loss) - mean_loss(one.loss)) > 1e-4);
}

TEST_CASE("slices: a stage holds for a slice what is planned")
{
    microbatch_shape const shape{batch.sequences, batch.tokens, 3};
    auto const model = fused(gpt_model(small));
    for (std::size_t first = 0; first < model.layers.size(); ++first) {
        auto const part = std::span{model.layers}.subspan(first);
        for (auto const& policy : {fp32, bf16}) {
            activation_layout const layout{part, shape, policy};
            CHECK(activation_bytes(part, shape, policy) == bytes{static_cast<std::int64_t>(layout.input_bytes + layout.memory_bytes)});
            CHECK(kept_gradient_bytes(part, shape, policy) == bytes{static_cast<std::int64_t>(layout.gradient_bytes)});
        }
    }
    auto const step = random_step(small, 2);
    auto const peaks = run_step(model, step, {.cuts = {0, 2, 4}, .slices = 3}).peaks;
    CHECK(peaks[0] == 3 * activation_bytes(std::span{model.layers}.first(2), shape));
    CHECK(peaks[1] == 3 * activation_bytes(std::span{model.layers}.last(2), shape));
}

TEST_CASE("slices: a slice without those before it is refused")
{
    auto const model = gpt_model(small);
    auto const info = state_of(model);
    host_backend backend{1};
    resident_state state{info, backend};
    microbatch_shape const shape{batch.sequences, batch.tokens, 3};
    host_stage first{std::span{model.layers}.first(1), layer_id{0}, shape, 1, state, backend};
    activation a{first.layout()};
    loss_sum loss;
    CHECK_THROWS_AS(first.forward(a, {.seed = 0, .step = {}, .microbatch = {}, .slice = 1}, loss), precondition_error);
    CHECK_THROWS_AS((host_stage{std::span{model.layers}.first(1), layer_id{0}, {2, 9, 2}, 1, state, backend}), precondition_error);
}
