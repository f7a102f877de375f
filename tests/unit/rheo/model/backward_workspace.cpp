// SPDX-License-Identifier: Apache-2.0
// Against counts by thought. The compiler decides all of it.
#include "rheo/model/backward_workspace.hpp"

#include <array>

#include "rheo/model/model.hpp"
#include "well_formed.hpp"

using namespace rheo;
using test::gpt2_124m;

namespace {

constexpr microbatch_shape shape{.sequences = 4, .tokens = 64};
constexpr std::int64_t r = 256;
constexpr std::int64_t w = 768;

// The gradients of a block's slots (19 widths) and twice its widest (4); more blocks work in the same memory.
constexpr std::array one{block_layer(gpt2_124m)};
constexpr std::array two{one[0], one[0]};
static_assert(backward_workspace_bytes(array_view{one}, shape) == bytes{4 * r * (19 + 2 * 4) * w});
static_assert(backward_workspace_bytes(array_view{two}, shape) == backward_workspace_bytes(array_view{one}, shape));
static_assert(backward_workspace_bytes(array_view{one}, shape, bf16) * 2 == backward_workspace_bytes(array_view{one}, shape));

// With a classifier the widest are logits, and its slots are the most, too.
constexpr std::array last{one[0], classifier_layer(gpt2_124m)};
static_assert(backward_workspace_bytes(array_view{last}, shape) == bytes{4 * r * (2 * w + 3 * 50257)});

}  // namespace
