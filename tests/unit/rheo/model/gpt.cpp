// SPDX-License-Identifier: Apache-2.0
// The GPT-2 family: the published parameter counts, Hugging Face's names, and layers that hang together.
#include "rheo/model/gpt.hpp"

#include <cmath>
#include <set>

#include "rheo/model/footprint.hpp"
#include "rheo/model/model.hpp"
#include "rheo/model/state.hpp"
#include "support/catch.hpp"
#include "well_formed.hpp"

using namespace rheo;
using test::gpt2_124m;
using test::small;

namespace {

constexpr gpt_shape gpt2_medium{.vocabulary = 50257, .context = 1024, .width = 1024, .heads = 16, .blocks = 24};
constexpr gpt_shape gpt2_large{.vocabulary = 50257, .context = 1024, .width = 1280, .heads = 20, .blocks = 36};
constexpr gpt_shape gpt2_xl{.vocabulary = 50257, .context = 1024, .width = 1600, .heads = 25, .blocks = 48};

/// Elements of all parameters, each tied tensor once.
constexpr std::int64_t distinct_parameters(gpt_shape s)
{
    auto const all = parameter_count(embedding_layer(s)) + s.blocks * parameter_count(block_layer(s)) + parameter_count(classifier_layer(s));
    return s.tied ? all - std::int64_t{s.vocabulary} * s.width : all;
}

static_assert(distinct_parameters(gpt2_124m) == 124'439'808);
static_assert(distinct_parameters(gpt2_medium) == 354'823'168);
static_assert(distinct_parameters(gpt2_large) == 774'030'080);
static_assert(distinct_parameters(gpt2_xl) == 1'557'611'200);
static_assert(parameter_count(block_layer(gpt2_124m)) == 7'087'872);

static_assert(test::well_formed(embedding_layer(small)) && test::well_formed(block_layer(small)) && test::well_formed(classifier_layer(small)));
static_assert(embedding_layer(small).in_width == 0 && classifier_layer(small).out_width == 0);
static_assert(block_layer(small).in_width == 64 && block_layer(small).out_width == 64);
static_assert(embedding<small>::describe() == embedding_layer(small) && transformer_block<small>::describe() == block_layer(small) &&
              classifier<small>::describe() == classifier_layer(small));

/// Dropout belongs to the sum of the embeddings, the probabilities and both branches, and to nothing else.
constexpr int dropped(layer_description const& layer)
{
    int count = 0;
    for (auto const& o : layer.ops) {
        count += o.dropout_per_mille == 100 ? 1 : 0;
    }
    return count;
}
static_assert(dropped(embedding_layer(small)) == 1 && dropped(block_layer(small)) == 3 && dropped(classifier_layer(small)) == 0);

/// Matrices decay, vectors do not; tables and matrices begin random, norms at one, biases at zero.
constexpr bool decays_and_begins_as_published(layer_description const& layer)
{
    for (auto const& p : layer.parameters) {
        bool const matrix = p.shape.rows > 1;
        bool const one = p.name == "ln_1.weight" || p.name == "ln_2.weight" || p.name == "ln_f.weight";
        if (p.decays != matrix || (p.initial.deviation > 0) != matrix || p.initial.mean != (one ? 1 : 0)) {
            return false;
        }
    }
    return true;
}
static_assert(decays_and_begins_as_published(embedding_layer(small)) && decays_and_begins_as_published(block_layer(small)) &&
              decays_and_begins_as_published(classifier_layer(small)));

}  // namespace

TEST_CASE("gpt: residual projections start smaller when deep")
{
    for (int const blocks : {1, 2, 12, 48}) {
        auto shape = small;
        shape.blocks = blocks;
        auto const layer = block_layer(shape);
        CHECK(layer.parameters[4].name == "attn.c_proj.weight");
        CHECK(layer.parameters[4].initial.deviation == Approx(0.02 / std::sqrt(2.0 * blocks)).epsilon(1e-14));
        CHECK(layer.parameters[10].initial == layer.parameters[4].initial);
        CHECK(layer.parameters[2].initial.deviation == 0.02);
    }
    for (double const x : {1e-6, 0.3, 1.0, 2.0, 96.0, 1e9}) {
        CHECK(detail::inverse_square_root(x) == Approx(1 / std::sqrt(x)).epsilon(1e-14));
    }
}

TEST_CASE("gpt: GPT-2 124M has Hugging Face's names and shapes")
{
    auto const state = state_of(gpt_model(gpt2_124m));
    std::set<std::string> names;
    std::int64_t count = 0;
    for (auto const& t : state.tensors) {
        CHECK(names.insert(t.name).second);
        count += t.is_parameter ? elements(t.shape) : 0;
    }
    CHECK(count == 124'439'808);
    CHECK(names.size() == 2 + 12 * 12 + 2 + 1);
    auto const shape = [&](std::string const& name) {
        for (auto const& t : state.tensors) {
            if (t.name == name) {
                return t.shape;
            }
        }
        return tensor_shape{0, 0};
    };
    CHECK(shape("wte.weight") == tensor_shape{50257, 768});
    CHECK(shape("wpe.weight") == tensor_shape{1024, 768});
    CHECK(shape("h.11.attn.c_attn.weight") == tensor_shape{768, 2304});  // [in, out], as Conv1D has it
    CHECK(shape("h.0.attn.c_attn.bias") == tensor_shape{1, 2304});
    CHECK(shape("h.5.mlp.c_fc.weight") == tensor_shape{768, 3072});
    CHECK(shape("h.5.mlp.c_proj.weight") == tensor_shape{3072, 768});
    CHECK(shape("ln_f.weight") == tensor_shape{1, 768});
    CHECK(names.count("lm_head.weight") == 0);
}
