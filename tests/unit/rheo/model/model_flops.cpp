// SPDX-License-Identifier: Apache-2.0
// Model flops against the formulas of PaLM and Megatron-LM, and what they do not depend on. The compiler decides all of it.
#include "rheo/model/model_flops.hpp"

#include "rheo/model/fusion.hpp"
#include "rheo/model/gpt.hpp"
#include "rheo/model/llama.hpp"
#include "rheo/model/model.hpp"
#include "well_formed.hpp"

using namespace rheo;

namespace {

/// Narayanan et al. 2021, section 5.1, without recomputation: 72 B s l h^2 (1 + s / 6h + V / 12 l h).
constexpr std::int64_t megatron(gpt_shape const& s, microbatch_shape shape)
{
    auto const tokens = std::int64_t{shape.sequences} * shape.tokens;
    return 72 * tokens * s.blocks * s.width * s.width + 12 * tokens * s.blocks * s.width * shape.tokens + 6 * tokens * s.vocabulary * s.width;
}

constexpr microbatch_shape shape{.sequences = 4, .tokens = 256};
constexpr auto gpt2 = test::gpt2_124m;
static_assert(model_flops(gpt_model(gpt2), shape).count == megatron(gpt2, shape));

// Neither fused operations nor slices change what the model needs.
static_assert(model_flops(fused(gpt_model(gpt2)), shape) == model_flops(gpt_model(gpt2), shape));
static_assert(model_flops(gpt_model(gpt2), {.sequences = 4, .tokens = 256, .slices = 8}) == model_flops(gpt_model(gpt2), shape));

// PaLM, appendix B: 6 N + 12 L H Q T per token. Here heads together are wider than the model, and keys and values are fewer.
constexpr llama_shape grouped{
    .vocabulary = 64, .context = 64, .width = 64, .heads = 4, .kv_heads = 2, .blocks = 2, .mlp_width = 176, .head_dim = 32, .qkv_bias = true};
constexpr std::int64_t in_products = 2 * (64 * (4 + 2 * 2) * 32 + 4 * 32 * 64 + 3 * 64 * 176) + 64 * 64;
static_assert(model_flops(llama_model(grouped), shape).count == 1024 * (6 * in_products + 12 * 2 * 4 * 32 * 256));

}  // namespace
