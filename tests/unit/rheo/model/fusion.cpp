// SPDX-License-Identifier: Apache-2.0
// Fusion as a rewrite: what it joins, what it leaves alone, and what it may not change.
#include "rheo/model/fusion.hpp"

#include <string>

#include "rheo/model/footprint.hpp"
#include "rheo/model/model.hpp"
#include "support/catch.hpp"
#include "well_formed.hpp"

using namespace rheo;
using test::small;

namespace {

std::string drawn(layer_description const& layer)
{
    std::string text;
    for (auto const& o : layer.ops) {
        text += text.empty() ? "" : " ";
        text += std::to_string(o.id.value) + ":" + std::string{name_of(o.kind)};
    }
    return text;
}

constexpr auto block = block_layer(small);
constexpr auto last = classifier_layer(small);
constexpr microbatch_shape shape{.sequences = 4, .tokens = 32};

/// Parameters, slots, widths, names and the place stay those of the unfused layer.
constexpr bool only_ops_differ(layer_description const& a)
{
    auto b = fused(a);
    b.ops = a.ops;
    return a == b;
}
static_assert(only_ops_differ(block) && only_ops_differ(last) && only_ops_differ(embedding_layer(small)));
static_assert(test::well_formed(fused(block)) && test::well_formed(fused(last)) && test::well_formed(fused(embedding_layer(small))));
static_assert(fused(fused(block)) == fused(block) && fused(fused(last)) == fused(last));
static_assert(fused(embedding_layer(small)) == embedding_layer(small));

// It saves no memory at the price of arithmetic, nor the other way round.
static_assert(forward_flops(fused(block), shape) == forward_flops(block, shape) && backward_flops(fused(block), shape) == backward_flops(block, shape));
static_assert(activation_bytes(fused(block), shape) == activation_bytes(block, shape));
static_assert(activation_bytes(fused(last), shape) < activation_bytes(last, shape));  // no log-sum-exp is kept

/// The fused operation keeps the key of the part that draws random numbers.
constexpr bool keys_stay(layer_description const& layer)
{
    for (auto const& o : fused(layer).ops) {
        if (o.dropout_per_mille != layer.ops[at(o.id)].dropout_per_mille) {
            return false;
        }
    }
    return true;
}
static_assert(keys_stay(block) && keys_stay(last));

/// A residual sum and a norm that reads something else.
constexpr layer_description strangers()
{
    layer_description layer{.name = "strangers", .in_width = 8, .out_width = 8};
    auto const x = add_slot(layer, 8);
    auto const sum = add_slot(layer, 8);
    auto const y = add_slot(layer, 8);
    add_op(layer, {.kind = op_kind::residual_add, .x = {x, x}, .z = {sum, no_slot}, .in_width = 8, .out_width = 8});
    add_op(layer, {.kind = op_kind::layer_norm, .x = {x, no_slot}, .z = {y, no_slot}, .in_width = 8, .out_width = 8});
    return layer;
}
static_assert(fused(strangers()) == strangers());

}  // namespace

TEST_CASE("fusion: a block and a classifier before and after fusion")
{
    CHECK(drawn(block) == "0:layer_norm 1:linear 2:attention 3:linear 4:residual_add 5:layer_norm 6:linear 7:gelu 8:linear 9:residual_add");
    CHECK(drawn(fused(block)) == "0:layer_norm 1:linear 2:attention 3:linear 4:residual_norm 6:linear_gelu 8:linear 9:residual_add");
    CHECK(drawn(last) == "0:layer_norm 1:unembed 2:cross_entropy");
    CHECK(drawn(fused(last)) == "0:layer_norm 1:unembed 2:loss_gradient");
}

TEST_CASE("fusion: fused operation has both outputs and parameters")
{
    auto const f = fused(block);
    CHECK(f.ops[4].z == std::array{block.ops[4].z[0], block.ops[5].z[0]});
    CHECK(f.ops[4].x == block.ops[4].x);
    CHECK(f.ops[4].parameters == block.ops[5].parameters);
    CHECK(f.ops[5].z == std::array{block.ops[6].z[0], block.ops[7].z[0]});
    CHECK(f.ops[5].parameters == block.ops[6].parameters);
}
