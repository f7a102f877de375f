// SPDX-License-Identifier: Apache-2.0
// The backward in two halves, and after a recomputation, leaves the bits of the whole one: the same sums of every use, the same
// gradients of every stage's input, however far apart the parts are and whatever else runs between them; and it holds the memory
// that the library plans.
#include "stage_steps.hpp"
#include "support/catch.hpp"

using namespace rheo;
using namespace stage_steps;

namespace {

void check_same(model_description const& model, std::vector<reference::microbatch> const& step, options o)
{
    o.how = backwards::whole;
    auto const expected = run_step(model, step, o);
    for (auto const how : {backwards::split, backwards::split_late, backwards::recomputed, backwards::recomputed_split}) {
        o.how = how;
        auto const actual = run_step(model, step, o);
        CHECK(actual == expected);
        CHECK(actual.input_gradients == expected.input_gradients);
    }
}

std::vector<model_description> all_forms(gpt_shape shape)
{
    std::vector<model_description> forms;
    for (bool const tied : {true, false}) {
        shape.tied = tied;
        for (int const dropout : {0, 150}) {
            shape.dropout_per_mille = dropout;
            forms.push_back(gpt_model(shape));
            forms.push_back(fused(gpt_model(shape)));
        }
    }
    return forms;
}

}  // namespace

TEST_CASE("split_backward: split equals whole, bit for bit")
{
    auto const step = random_step(small, 3);
    for (auto const& model : all_forms(small)) {
        for (auto const& cuts : {std::vector{0, 4}, {0, 2, 4}, {0, 1, 3, 4}, {0, 1, 2, 3, 4}}) {
            check_same(model, step, {.cuts = cuts});
        }
        check_same(model, step, {.cuts = {0, 2, 4}, .threads = 2, .times = 2});
    }
}

TEST_CASE("split_backward: partial split equals partial whole")
{
    auto const step = random_step(small, 2);
    for (auto const& model : {gpt_model(small), fused(gpt_model(small))}) {
        for (int lowest = 0; lowest <= 4; ++lowest) {
            check_same(model, step, {.cuts = {0, 4}, .lowest = {layer_id{lowest}, layer_id{0}}});
            check_same(model, step, {.cuts = {0, 1, 3, 4}, .lowest = {layer_id{0}, layer_id{lowest}}});
        }
        for (std::size_t only = 0; only + 1 < state_of(model).uses.size(); ++only) {
            check_same(model, step, {.cuts = {0, 3, 4}, .only = use_id{static_cast<int>(only)}});
        }
    }
}

TEST_CASE("split_backward: keeps the output gradient where needed")
{
    auto const step = random_step(small, 2);
    for (bool const shared : {true, false}) {
        model_description const model{{embedding_layer(small), two_products(shared), two_products(shared), classifier_layer(small)}};
        for (auto const& cuts : {std::vector{0, 4}, {0, 2, 4}, {0, 1, 2, 3, 4}}) {
            check_same(model, step, {.cuts = cuts});
        }
    }
}

TEST_CASE("split_backward: memory is as planned for every mode")
{
    for (auto const& model : {gpt_model(small), fused(gpt_model(small))}) {
        std::vector const cuts{0, 2, 4};
        auto const step = random_step(small, 3);
        for (std::size_t s = 0; s < 2; ++s) {
            auto const layers = std::span{model.layers}.subspan(s * 2, 2);
            auto const all = activation_bytes(layers, batch);
            auto const kept = kept_gradient_bytes(layers, batch);
            auto const input = input_bytes(layers, batch);
            auto const peak = [&](backwards how) { return run_step(model, step, {.cuts = cuts, .how = how, .times = 2}).peaks[s]; };
            CHECK(peak(backwards::whole) == all);
            CHECK(peak(backwards::split) == all + kept);
            CHECK(peak(backwards::split_late) == 3 * (all + kept));
            CHECK(peak(backwards::recomputed) == all + 2 * input);
            CHECK(peak(backwards::recomputed_split) == 3 * (all + kept));
        }
    }
}

TEST_CASE("split_backward: evicted activations need recomputation")
{
    auto const model = fused(gpt_model(small));
    auto const info = state_of(model);
    host_backend backend{1};
    resident_state state{info, backend};
    initialise_layers(state, layer_id{2}, layer_id{3}, seed);
    host_stage middle{std::span{model.layers}.subspan(2, 1), layer_id{2}, batch, 1, state, backend};
    activation a{middle.layout()};
    auto const count = middle.input_bytes() / sizeof(float);
    std::fill_n(static_cast<float*>(middle.input(a)), count, 0.5F);
    loss_sum loss;
    CHECK_THROWS_AS(middle.evict(a), precondition_error);
    CHECK_THROWS_AS(middle.recompute(a, {}), precondition_error);
    middle.forward(a, {}, loss);
    CHECK_THROWS_AS(middle.recompute(a, {}), precondition_error);
    auto const output = [&] { return static_cast<float const*>(middle.output(a)); };
    std::vector<float> const before(output(), output() + count);
    middle.evict(a);
    CHECK_THROWS_AS(middle.evict(a), precondition_error);
    middle.recompute(a, {});
    CHECK(std::equal(before.begin(), before.end(), output()));
}

TEST_CASE("split_backward: weight gradient needs its input gradient")
{
    auto const model = gpt_model(small);
    auto const info = state_of(model);
    host_backend backend{1};
    resident_state state{info, backend};
    host_stage last{std::span{model.layers}.last(1), layer_id{3}, batch, 1, state, backend};
    activation a{last.layout()};
    CHECK_THROWS_AS(last.weight_gradient(a, {}, layer_id{3}, [](use_id) { return true; }), precondition_error);
}
