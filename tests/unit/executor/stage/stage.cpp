// SPDX-License-Identifier: Apache-2.0
// A stage at work: against the reference in double within a derived bound, and the same bits however the model is
// cut, no matter which thread takes the tiles, and how often it is done.
#include "executor/stage/stage.hpp"

#include <algorithm>
#include <cmath>
#include <memory>

#include "rheo/model/model.hpp"
#include "rheo/model/state.hpp"
#include "stage_reference.hpp"
#include "stage_steps.hpp"
#include "support/catch.hpp"

using namespace rheo;
using namespace stage_steps;

TEST_CASE("stage: matches the reference, fused or not, tied or not")
{
    for (bool const tied : {true, false}) {
        auto shape = small;
        shape.tied = tied;
        SECTION(tied ? "tied" : "untied")
        {
            check_against_reference(shape, gpt_model(shape));
            check_against_reference(shape, fused(gpt_model(shape)));
        }
    }
}

TEST_CASE("stage: same bits for any cut")
{
    for (int const dropout : {0, 150}) {
        auto shape = small;
        shape.dropout_per_mille = dropout;
        for (auto const& model : {gpt_model(shape), fused(gpt_model(shape))}) {
            auto const step = random_step(shape, 2);
            auto const expected = run_step(model, step, whole(model));
            REQUIRE(expected.uses.size() == state_of(model).uses.size() - 1);
            for (auto const& cuts : {std::vector{0, 1, 4}, {0, 2, 4}, {0, 3, 4}, {0, 1, 2, 4}, {0, 2, 3, 4}, {0, 1, 2, 3, 4}}) {
                CHECK(run_step(model, step, {.cuts = cuts}) == expected);
            }
        }
    }
}

TEST_CASE("stage: same bits for any number of threads")
{
    auto shape = small;
    shape.dropout_per_mille = 100;
    for (auto const& model : {gpt_model(shape), fused(gpt_model(shape))}) {
        auto const step = random_step(shape, 2);
        auto const expected = run_step(model, step, whole(model));
        for (int const threads : {2, 3}) {
            CHECK(run_step(model, step, {.cuts = {0, 4}, .threads = threads}) == expected);
        }
        CHECK(run_step(model, step, {.cuts = {0, 2, 4}, .threads = 2, .times = 2}) == expected);
    }
}

TEST_CASE("stage: a partial microbatch contributes top down")
{
    auto const model = fused(gpt_model(small));
    auto const info = state_of(model);
    auto const step = random_step(small, 1);
    auto const all = run_step(model, step, whole(model));
    for (int lowest = 0; lowest < 4; ++lowest) {
        for (auto const& cuts : {std::vector{0, 4}, {0, 2, 4}, {0, 1, 3, 4}}) {
            auto const part = run_step(model, step, {.cuts = cuts, .lowest = {layer_id{lowest}}});
            CHECK(part.loss == all.loss);
            for (std::size_t u = 0; u < part.uses.size(); ++u) {
                if (info.uses[u].layer.value >= lowest) {
                    CHECK(part.uses[u] == all.uses[u]);
                } else {
                    CHECK(std::all_of(part.uses[u].sums.begin(), part.uses[u].sums.end(), [](auto s) { return s == 0; }));
                    CHECK(part.uses[u].state == accumulator_state{.scale_log2 = first_scale});
                }
            }
        }
    }
}

TEST_CASE("stage: any single use can contribute alone")
{
    for (auto const& model : {gpt_model(small), fused(gpt_model(small))}) {
        auto const step = random_step(small, 1);
        auto const all = run_step(model, step, whole(model));
        for (std::size_t only = 0; only < all.uses.size(); ++only) {
            auto alone = whole(model);
            alone.only = use_id{static_cast<int>(only)};
            auto const part = run_step(model, step, alone);
            CHECK(part.uses[only] == all.uses[only]);
            for (std::size_t u = 0; u < part.uses.size(); ++u) {
                CHECK((u == only || std::all_of(part.uses[u].sums.begin(), part.uses[u].sums.end(), [](auto s) { return s == 0; })));
            }
        }
    }
}

TEST_CASE("stage: a step is the exact sum of its microbatches")
{
    auto const model = fused(gpt_model(small));
    auto const step = random_step(small, 2);
    auto const both = run_step(model, step, whole(model));
    // The same two microbatches, the first one with nothing of its backward and then the second one.
    layer_id const none{4};
    auto const first = run_step(model, step, {.cuts = {0, 4}, .lowest = {layer_id{0}, none}});
    auto const second = run_step(model, step, {.cuts = {0, 4}, .lowest = {none, layer_id{0}}});
    for (std::size_t u = 0; u < both.uses.size(); ++u) {
        bool same = true;
        for (std::size_t i = 0; i < both.uses[u].sums.size(); ++i) {
            same = same && both.uses[u].sums[i] == first.uses[u].sums[i] + second.uses[u].sums[i];
        }
        CHECK(same);
        CHECK(both.uses[u].state == joined(first.uses[u].state, second.uses[u].state));
    }
}

TEST_CASE("stage: dropout acts in training only")
{
    auto with = small;
    with.dropout_per_mille = 200;
    auto const step = random_step(small, 2);
    for (bool const fuse : {false, true}) {
        auto const plain = fuse ? fused(gpt_model(small)) : gpt_model(small);
        auto const dropping = fuse ? fused(gpt_model(with)) : gpt_model(with);
        options evaluation = whole(plain);
        evaluation.training = false;
        evaluation.backward = false;
        auto const expected = run_step(plain, step, evaluation);
        CHECK(run_step(dropping, step, evaluation) == expected);
        CHECK(expected.loss == run_step(plain, step, whole(plain)).loss);
        CHECK(run_step(dropping, step, whole(dropping)).loss != run_step(plain, step, whole(plain)).loss);
    }
}

TEST_CASE("stage: microbatches and operations draw own dropout")
{
    auto with = small;
    with.dropout_per_mille = 200;
    auto const model = gpt_model(with);
    auto step = random_step(with, 2);
    step[0].targets[3] = 1;
    step[1] = step[0];
    auto const first = run_step(model, std::vector{step[0]}, whole(model)).loss.fixed;
    auto const both = run_step(model, step, whole(model)).loss.fixed;
    CHECK(both - first != first);
}

TEST_CASE("stage: two uses of a parameter have own gradients")
{
    auto const step = random_step(small, 2);
    model_description const shared{{embedding_layer(small), two_products(true), classifier_layer(small)}};
    model_description const apart{{embedding_layer(small), two_products(false), classifier_layer(small)}};
    auto const expected = run_step(apart, step, {.cuts = {0, 3}, .prepare = [](resident_state& state) {
                                                     auto const first = state.tensor(tensor_id{2}).parameter.floats();
                                                     std::copy(first.begin(), first.end(), state.tensor(tensor_id{3}).parameter.floats().begin());
                                                 }});
    auto const actual = run_step(shared, step, {.cuts = {0, 3}});
    REQUIRE(state_of(apart).tensors[3].name == "second");
    CHECK(actual == expected);
    CHECK(run_step(shared, step, {.cuts = {0, 1, 2, 3}}) == expected);
    CHECK_FALSE(actual.uses[2].sums == actual.uses[3].sums);
}

TEST_CASE("stage: reports its uses, message sizes and loss")
{
    auto const model = gpt_model(small);
    auto const info = state_of(model);
    host_backend backend{1};
    resident_state state{info, backend};
    std::span const layers{model.layers};
    host_stage const first{layers.first(2), layer_id{0}, batch, 4, state, backend};
    host_stage const last{layers.last(2), layer_id{2}, batch, 4, state, backend};
    CHECK(first.input_bytes() == 0);
    CHECK(first.output_bytes() == 18 * 24 * 4);
    CHECK(last.input_bytes() == first.output_bytes());
    CHECK(last.output_bytes() == 0);
    CHECK_FALSE(first.has_loss());
    CHECK(last.has_loss());
    CHECK(last.loss_uses() == std::vector{use_id{static_cast<int>(info.uses.size()) - 1}});
    CHECK(first.uses().size() == 2 + 12);
    CHECK(last.uses().size() == 12 + 3);
    auto all = first.uses();
    all.insert(all.end(), last.uses().begin(), last.uses().end());
    for (std::size_t u = 0; u < all.size(); ++u) {
        CHECK(all[u] == use_id{static_cast<int>(u)});
    }
}

TEST_CASE("stage: allocates what is planned, to the byte")
{
    for (auto const& model : {gpt_model(small), fused(gpt_model(small))}) {
        std::span const layers{model.layers};
        for (std::size_t first = 0; first < layers.size(); ++first) {
            for (std::size_t last = first + 1; last <= layers.size(); ++last) {
                auto const part = layers.subspan(first, last - first);
                activation_layout const layout{part, batch};
                CHECK(activation_bytes(part, batch) == bytes{static_cast<std::int64_t>(layout.input_bytes + layout.memory_bytes)});
                CHECK(kept_gradient_bytes(part, batch) == bytes{static_cast<std::int64_t>(layout.gradient_bytes)});
                std::int64_t planned = 0;  // layer by layer, as plans that cut between layers add it up
                std::int64_t rounded_up = 0;
                for (std::size_t l = 0; l < part.size(); ++l) {
                    planned += activation_bytes(part[l], batch).count - (l == 0 ? 0 : part[l].in_width * rows(batch) * 4);
                    rounded_up += 64 * static_cast<std::int64_t>(part[l].slot_widths.size() + part[l].ops.size());
                }
                CHECK(activation_bytes(part, batch).count >= planned);
                CHECK(activation_bytes(part, batch).count <= planned + rounded_up);
            }
        }
    }
}
