// SPDX-License-Identifier: Apache-2.0
// The Llama family: the published parameter counts, names, and layers that hang together, fused or not.
#include "rheo/model/llama.hpp"

#include "rheo/model/footprint.hpp"
#include "rheo/model/model.hpp"
#include "rheo/model/state.hpp"
#include "support/catch.hpp"
#include "well_formed.hpp"

using namespace rheo;

namespace {

constexpr llama_shape small{.width = 48, .heads = 4, .kv_heads = 2, .mlp_width = 80};
constexpr llama_shape llama2_7b{.vocabulary = 32000, .context = 4096, .width = 4096, .heads = 32, .kv_heads = 32, .blocks = 32, .mlp_width = 11008};
constexpr llama_shape llama3_8b{
    .vocabulary = 128256, .context = 8192, .width = 4096, .heads = 32, .kv_heads = 8, .blocks = 32, .mlp_width = 14336, .rope_base = 500000};
constexpr llama_shape llama32_1b{
    .vocabulary = 128256, .context = 8192, .width = 2048, .heads = 32, .kv_heads = 8, .blocks = 16, .mlp_width = 8192, .rope_base = 500000, .tied = true};
constexpr llama_shape tiny_1b{.vocabulary = 32000, .context = 2048, .width = 2048, .heads = 32, .kv_heads = 4, .blocks = 22, .mlp_width = 5632};

constexpr llama_shape nemo_12b{.vocabulary = 131072,
                               .context = 128000,
                               .width = 5120,
                               .heads = 32,
                               .kv_heads = 8,
                               .blocks = 40,
                               .mlp_width = 14336,
                               .rope_base = 1'000'000,
                               .head_dim = 128};
constexpr llama_shape qwen2_7b{.vocabulary = 152064,
                               .context = 32768,
                               .width = 3584,
                               .heads = 28,
                               .kv_heads = 4,
                               .blocks = 28,
                               .mlp_width = 18944,
                               .rope_base = 1'000'000,
                               .norm_epsilon_e9 = 1000,
                               .qkv_bias = true};
constexpr llama_shape qwen3_06b{.vocabulary = 151936,
                                .context = 40960,
                                .width = 1024,
                                .heads = 16,
                                .kv_heads = 8,
                                .blocks = 28,
                                .mlp_width = 3072,
                                .rope_base = 1'000'000,
                                .tied = true,
                                .head_dim = 128,
                                .norm_epsilon_e9 = 1000,
                                .qk_norm = true};

/// Elements of all parameters, a tied tensor once.
constexpr std::int64_t distinct_parameters(llama_shape s)
{
    auto const all = parameter_count(llama_embedding_layer(s)) + s.blocks * parameter_count(llama_block_layer(s)) + parameter_count(llama_classifier_layer(s));
    return s.tied ? all - std::int64_t{s.vocabulary} * s.width : all;
}

// The sizes of the published weights.
static_assert(distinct_parameters(llama2_7b) == 6'738'415'616);
static_assert(distinct_parameters(llama3_8b) == 8'030'261'248);
static_assert(distinct_parameters(llama32_1b) == 1'235'814'400);
static_assert(distinct_parameters(tiny_1b) == 1'100'048'384);
static_assert(distinct_parameters(nemo_12b) == 12'247'782'400);
static_assert(distinct_parameters(qwen2_7b) == 7'615'616'512);
static_assert(distinct_parameters(qwen3_06b) == 596'049'920);

static_assert(test::well_formed(llama_block_layer(nemo_12b)) && test::well_formed(llama_block_layer(qwen2_7b)) &&
              test::well_formed(fused(llama_block_layer(qwen3_06b))));
static_assert(error_of(llama_block_layer(qwen3_06b)).empty() && error_of(fused(llama_block_layer(qwen2_7b))).empty());

// Attention's two products are as wide as its heads, not as the model.
constexpr microbatch_shape one{.sequences = 1, .tokens = 1024};
static_assert(forward_flops(llama_block_layer(qwen3_06b), one).count == 2LL * 1024 * (1024 * 4096 + 2048 * 1024 + 3 * 1024 * 3072) + 2LL * 1024 * 1025 * 2048);
// The norms of queries and keys keep one number of each head and row, and q, k and v before them.
constexpr auto without_norms = [] {
    auto shape = qwen3_06b;
    shape.qk_norm = false;
    return shape;
}();
static_assert(activation_bytes(llama_block_layer(qwen3_06b), one) - activation_bytes(llama_block_layer(without_norms), one) ==
              bytes{4LL * 1024 * (4096 + 16 + 8)});

static_assert(test::well_formed(llama_embedding_layer(small)) && test::well_formed(llama_block_layer(small)) &&
              test::well_formed(llama_classifier_layer(small)));
static_assert(test::well_formed(fused(llama_block_layer(small))) && test::well_formed(fused(llama_classifier_layer(small))));
static_assert(llama_embedding<small>::describe() == llama_embedding_layer(small) && llama_block<small>::describe() == llama_block_layer(small) &&
              llama_classifier<small>::describe() == llama_classifier_layer(small));
static_assert(describe<model<llama_embedding<small>, repeat<2, llama_block<small>>, llama_classifier<small>>>() == llama_model(small));

/// How many operations of a kind the layer has.
constexpr int count_of(layer_description const& layer, op_kind kind)
{
    int count = 0;
    for (auto const& o : layer.ops) {
        count += o.kind == kind ? 1 : 0;
    }
    return count;
}

// Fusing joins the residual sum inside the block with the norm behind it; the norm at its begin reads another layer's sum.
constexpr auto block = llama_block_layer(small);
static_assert(block.ops.size() == 11 && fused(block).ops.size() == 10);
static_assert(count_of(fused(block), op_kind::residual_rms_norm) == 1 && count_of(fused(block), op_kind::rms_norm) == 1);
static_assert(count_of(fused(llama_classifier_layer(small)), op_kind::loss_gradient) == 1);
constexpr microbatch_shape shape{.sequences = 4, .tokens = 32};
static_assert(activation_bytes(fused(block), shape) == activation_bytes(block, shape) && forward_flops(fused(block), shape) == forward_flops(block, shape));

// Queries and keys are turned in place: one matrix of q, k and v, of 48 + 2 * 24 columns, from the product to attention's backward.
static_assert(is_in_place(block.ops[2]) && block.ops[3].x[0] == block.ops[1].z[0]);
static_assert(activation_bytes(block, shape) == bytes{4 * rows(shape) * (8 * 48 + 96 + 3 * 80 + 2 + 4)});

// Slices keep the gradients of keys and values alone, which are fewer than those of as many heads.
constexpr microbatch_shape sliced{.sequences = 4, .tokens = 32, .slices = 2};
static_assert(saved_by(block.ops[3], sliced) == saved_elements{4 * rows(sliced), 2 * 2 * 12 * rows(sliced)} && head_width(block.ops[2]) == 12 &&
              head_width(block.ops[3]) == 12);

}  // namespace

TEST_CASE("llama: tensors have names and shapes, and no bias")
{
    auto const state = state_of(llama_model(llama32_1b));
    auto const shape_of = [&](std::string const& name) {
        for (auto const& t : state.tensors) {
            if (t.name == name) {
                return t.shape;
            }
        }
        return tensor_shape{0, 0};
    };
    CHECK(state.tensors.size() == 1 + 16 * 6 + 1 + 1);  // the table is the classifier's weight, too; and the loss
    CHECK(shape_of("model.embed_tokens.weight") == tensor_shape{128256, 2048});
    CHECK(shape_of("model.layers.15.self_attn.qkv_proj.weight") == tensor_shape{2048, 2048 + 2 * 512});
    CHECK(shape_of("model.layers.0.mlp.gate_up_proj.weight") == tensor_shape{2048, 2 * 8192});
    CHECK(shape_of("model.layers.3.mlp.down_proj.weight") == tensor_shape{8192, 2048});
    CHECK(shape_of("model.norm.weight") == tensor_shape{1, 2048});
    for (auto const& t : state.tensors) {
        CHECK((!t.is_parameter || t.decays == (t.shape.rows > 1)));
    }
}

TEST_CASE("llama: a Llama of an impossible shape is refused")
{
    for (llama_shape const& bad :
         {llama_shape{.heads = 3}, llama_shape{.width = 60, .heads = 4}, llama_shape{.kv_heads = 3}, llama_shape{.kv_heads = 0}, llama_shape{.mlp_width = 0},
          llama_shape{.rope_base = 0}, llama_shape{.head_dim = 5}, llama_shape{.head_dim = -2}, llama_shape{.scaling = {.kind = rope_scaling_kind::linear}},
          llama_shape{.scaling = {.factor_per_mille = 2000}}, llama_shape{.norm_epsilon_e9 = 0}}) {
        CHECK_THROWS_AS(llama_model(bad), precondition_error);
    }
}
