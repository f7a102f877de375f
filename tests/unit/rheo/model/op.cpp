// SPDX-License-Identifier: Apache-2.0
// What operations cost and keep, against counts by thought and by loops. The compiler decides all of it.
#include "rheo/model/op.hpp"

using namespace rheo;

namespace {

constexpr microbatch_shape shape{.sequences = 3, .tokens = 7};

constexpr op make(op_kind kind, int in, int out, int heads = 0) { return {.kind = kind, .in_width = in, .out_width = out, .heads = heads}; }

/// Multiplications and additions of causal attention, counted one by one.
constexpr std::int64_t attention_by_loops(int width)
{
    std::int64_t count = 0;
    for (int s = 0; s < shape.sequences; ++s) {
        for (int query = 0; query < shape.tokens; ++query) {
            for (int key = 0; key <= query; ++key) {
                count += 2 * width + 2 * width;  // q k, p v
            }
        }
    }
    return count;
}

constexpr bool fused_cost_what_their_parts_cost()
{
    return forward_flops(make(op_kind::linear_gelu, 4, 16), shape) == forward_flops(make(op_kind::linear, 4, 16), shape) &&
           backward_flops(make(op_kind::linear_gelu, 4, 16), shape) == backward_flops(make(op_kind::linear, 4, 16), shape) &&
           saved_by(make(op_kind::residual_norm, 4, 4), shape) == saved_by(make(op_kind::layer_norm, 4, 4), shape);
}

constexpr bool names_are_unique()
{
    for (int a = 0; a <= static_cast<int>(op_kind::loss_gradient); ++a) {
        for (int b = 0; b < a; ++b) {
            if (name_of(static_cast<op_kind>(a)) == name_of(static_cast<op_kind>(b))) {
                return false;
            }
        }
    }
    return true;
}

static_assert(forward_flops(make(op_kind::linear, 5, 11), shape) == flops{2 * 21 * 5 * 11});
static_assert(backward_flops(make(op_kind::linear, 5, 11), shape) == flops{4 * 21 * 5 * 11});
static_assert(forward_flops(make(op_kind::unembed, 5, 11), shape) == flops{2 * 21 * 5 * 11});
static_assert(forward_flops(make(op_kind::attention, 12, 4, 2), shape) == flops{attention_by_loops(4)});
static_assert(backward_flops(make(op_kind::attention, 12, 4, 2), shape).count * 2 == attention_by_loops(4) * 5);
static_assert(forward_flops(make(op_kind::gelu, 4, 4), shape) == flops{0} && backward_flops(make(op_kind::layer_norm, 4, 4), shape) == flops{0});

static_assert(saved_by(make(op_kind::layer_norm, 4, 4), shape) == saved_elements{2 * 21});
static_assert(saved_by(make(op_kind::attention, 12, 4, 2), shape) == saved_elements{2 * 21});
static_assert(saved_by(make(op_kind::cross_entropy, 9, 0), shape) == saved_elements{21} &&
              saved_by(make(op_kind::loss_gradient, 9, 0), shape) == saved_elements{});
static_assert(saved_by(make(op_kind::linear, 4, 4), shape) == saved_elements{});
static_assert(fused_cost_what_their_parts_cost());
static_assert(names_are_unique() && name_of(op_kind::embedding) == "embedding" && name_of(op_kind::loss_gradient) == "loss_gradient");

}  // namespace
