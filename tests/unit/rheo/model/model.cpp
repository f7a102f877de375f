// SPDX-License-Identifier: Apache-2.0
// A model as a type and as a value: the same thing; and each way in which a list of layers is no model.
#include "rheo/model/model.hpp"

#include "support/catch.hpp"
#include "well_formed.hpp"

using namespace rheo;
using test::small;

namespace {

constexpr gpt_shape other{.vocabulary = 256, .context = 128, .width = 32, .heads = 4, .blocks = 2};
using gpt = model<embedding<small>, repeat<2, transformer_block<small>>, classifier<small>>;
using spelled = model<embedding<small>, transformer_block<small>, transformer_block<small>, classifier<small>>;

static_assert(describe<gpt>() == gpt_model(small) && describe<gpt>() == describe<spelled>());
static_assert(described_model<gpt> && !described_model<int>);
static_assert(check(describe<gpt>()) == model_error{} && check(fused(describe<gpt>())) == model_error{});
static_assert(fused(describe<gpt>()) != describe<gpt>());
static_assert(gpt_model(small).layers[0].ordinal == 0 && gpt_model(small).layers[1].ordinal == 0 && gpt_model(small).layers[2].ordinal == 1);

constexpr model_description of(std::initializer_list<layer_description> layers)
{
    model_description result;
    for (auto const& l : layers) {
        result.layers.push_back(l);
    }
    return result;
}

using enum model_error::kind;
static_assert(check({}) == model_error{.error = empty});
static_assert(check(of({block_layer(small), classifier_layer(small)})) == model_error{.error = does_not_read_tokens, .takes = 64});
static_assert(check(of({embedding_layer(small), block_layer(other), classifier_layer(small)})) ==
              model_error{.error = widths_differ, .layer = 1, .gives = 64, .takes = 32});
static_assert(check(of({embedding_layer(small), block_layer(small), classifier_layer(other)})) ==
              model_error{.error = widths_differ, .layer = 2, .gives = 64, .takes = 32});
static_assert(check(of({embedding_layer(small), block_layer(small)})) == model_error{.error = does_not_end_in_loss, .layer = 1, .gives = 64});
static_assert(check(of({embedding_layer(small), embedding_layer(small), classifier_layer(small)})).error == widths_differ);
static_assert(check(of({embedding_layer(small), classifier_layer(small), classifier_layer(small)})).error == widths_differ);
static_assert(check(of({embedding_layer(small), classifier_layer(small), embedding_layer(small), classifier_layer(small)})).layer == 2);
static_assert(check(of({embedding_layer(small), classifier_layer(small)})) == model_error{});

}  // namespace

TEST_CASE("model: a fault is a sentence with its culprits")
{
    CHECK(to_string(model_error{}).empty());
    CHECK(to_string(check({})) == "a model needs at least one layer");
    CHECK(to_string(check(of({block_layer(small)}))) == "layer 0 must read tokens but takes 64 columns");
    CHECK(to_string(check(of({embedding_layer(small), block_layer(other)}))) == "layer 1 takes 32 columns but the layer before it gives 64");
    CHECK(to_string(check(of({embedding_layer(small)}))) == "layer 0 is the last one and must end in the loss");
    CHECK(to_string(check(of({embedding_layer(small), embedding_layer(small)}))) == "layer 1 reads tokens but is not the first one");
    CHECK(to_string(check(of({embedding_layer(small), classifier_layer(small), block_layer(small)}))) == "layer 1 ends in the loss but is not the last one");
}

TEST_CASE("model: misfit layers and small losses are errors")
{
    auto wrong = of({embedding_layer(small), block_layer(small), classifier_layer(small)});
    wrong.layers[1].parameters[2].shape.columns = 8;
    CHECK(check(wrong).error == layer_does_not_fit);
    CHECK(to_string(check(wrong)) == "layer 1: operation 1 (linear) uses parameter 'attn.c_attn.weight', which must be 64 x 192, but it is 64 x 8");
    auto fewer = small;
    fewer.vocabulary = 100;
    CHECK(to_string(check(of({embedding_layer(small), classifier_layer(fewer)}))) == "layer 1 has logits of 100 tokens, but the first layer reads 256");
    CHECK(check(of({embedding_layer(fewer), classifier_layer(small)})) == model_error{});
}

TEST_CASE("model: any GPT shape is a model or rejected")
{
    for (int const blocks : {0, 1, 5}) {
        for (bool const tied : {true, false}) {
            auto shape = small;
            shape.blocks = blocks;
            shape.tied = tied;
            auto const m = gpt_model(shape);
            CHECK(m.layers.size() == static_cast<std::size_t>(blocks) + 2);
            CHECK(check(m) == model_error{});
            for (auto const& layer : fused(m).layers) {
                CHECK(test::well_formed(layer));
            }
        }
    }
    auto const refused = [](auto change) {
        auto shape = small;
        change(shape);
        CHECK_THROWS_AS(gpt_model(shape), precondition_error);
    };
    refused([](auto& s) { s.vocabulary = 0; });
    refused([](auto& s) { s.context = 0; });
    refused([](auto& s) { s.heads = 5; });
    refused([](auto& s) { s.heads = 0; });
    refused([](auto& s) { s.blocks = -1; });
    refused([](auto& s) { s.dropout_per_mille = 1000; });
    refused([](auto& s) { s.dropout_per_mille = -1; });
}
