// SPDX-License-Identifier: Apache-2.0
// What `run` is given is looked at before anything begins: a model whose operations would read or write beyond what it declares is rejected with
// the compiler's sentence.
#include "executor/train/job_setup.hpp"

#include <string>

#include "rheo/model/model.hpp"
#include "rheo/units/exit_code.hpp"
#include "support/catch.hpp"

using namespace rheo;

namespace {

constexpr gpt_shape shape{.vocabulary = 256, .context = 32, .width = 32, .heads = 4, .blocks = 1};

/// One product of 32 columns, of a weight and into a slot of these shapes.
layer_description product(tensor_shape weight, int slot)
{
    layer_description layer{.name = "product", .prefix = "p.#.", .in_width = 32, .out_width = 32};
    auto const x = add_slot(layer, 32);
    layer.output = add_slot(layer, slot);
    auto const w = add_parameter(layer, {"weight", weight, {0, 0.02}, true});
    add_op(layer, {.kind = op_kind::linear, .x = {x, no_slot}, .z = {layer.output, no_slot}, .parameters = {w, no_parameter}, .in_width = 32, .out_width = 32});
    return layer;
}

std::string refusal_of(model_description const& model, int tokens = 16)
{
    run_config config;
    config.train.microbatch.tokens = tokens;
    auto const prepared = prepare(model, config, {}, 1);
    CHECK((prepared.error.code == exit_code::usage || prepared.error.message.empty()));
    return prepared.error.message;
}

std::string refusal_of(layer_description const& middle) { return refusal_of(model_description{{embedding_layer(shape), middle, classifier_layer(shape)}}); }

model_description gpt_of(gpt_shape s) { return {{embedding_layer(s), block_layer(s), classifier_layer(s)}}; }

}  // namespace

TEST_CASE("job_setup: operation that does not fit is rejected")
{
    CHECK(refusal_of(product({32, 8}, 32)) ==
          "the model cannot be run: layer 1: operation 0 (linear) uses parameter 'weight', which must be 32 x 32, but it is 32 x 8");
    CHECK(refusal_of(product({32, 32}, 8)) ==
          "the model cannot be run: layer 1: operation 0 (linear) writes slot 1, which must be 32 columns wide, but it is 8");
    auto wide = shape;
    wide.width = 130;
    CHECK(refusal_of(gpt_of(wide)) == "the model cannot be run: layer 1: operation 2 (attention) is 130 wide, which is no multiple of its 4 heads");
    auto negative = shape;
    negative.width = -128;
    CHECK(refusal_of(gpt_of(negative)) == "the model cannot be run: layer 0: slot 1 is -128 columns wide, but must be at least 1");
}

TEST_CASE("job_setup: sequences beyond the positions are rejected")
{
    CHECK(refusal_of(gpt_of(shape), 33) == "train.microbatch.tokens = 33 must be at most 32, the rows of 'wpe.weight' of the model's first layer");
}
