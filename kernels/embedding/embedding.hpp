#pragma once
// SPDX-License-Identifier: Apache-2.0

// The model's input: x = dropout(token table[token] + position table[position]), or without the positions. Row b * length + t has
// position first + t. Backward first forms the microbatch's own gradient of a table row (rows of x that use it added
// in order of increasing row), then contributes it once; table rows that the microbatch does not use
// contribute nothing.
//
// A shard of the layer has a range of the token table's rows: it writes the rows of x whose tokens these are and leaves the others, which other shards
// write, as they are; its gradient takes those rows, and a range of the position table's.

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/cuda/stream.hpp"
#include "kernels/dropout/dropout.hpp"
#include "kernels/exact/exact.hpp"
#include "rheo/tensor/dtype.hpp"
#include "rheo/tensor/shard_grid.hpp"
#include "rheo/units/expects.hpp"

namespace rheo::inline v0 {

template <dtype_policy Policy = fp32>
struct embedding_forward_arguments {
    std::int64_t batch;
    std::int64_t length;     ///< tokens of a sequence, or of the slice of it that the item is
    std::int64_t first = 0;  ///< the position of the first of them
    std::int64_t width;
    std::int64_t vocabulary;
    std::int32_t const* tokens;               // [batch, length], each in 0 .. vocabulary-1
    storage_t<Policy> const* token_table;     // [vocabulary, width]
    storage_t<Policy> const* position_table;  // [at least first + length, width], or null: none
    dropout drop{};                           ///< element row * width + c
    storage_t<Policy>* output;                // [batch * length, width]
    std::int64_t token_begin = 0;             ///< token_table has rows token_begin .. token_end - 1 of the vocabulary; an end of 0: all
    std::int64_t token_end = 0;
};

template <dtype_policy Policy = fp32>
struct embedding_backward_weight_arguments {
    std::int64_t batch;
    std::int64_t length;
    std::int64_t first = 0;
    std::int64_t width;
    std::int64_t vocabulary;
    std::int32_t const* tokens;                // [batch, length]
    storage_t<Policy> const* output_gradient;  // [batch * length, width]
    dropout drop{};
    gradient_sum<Policy> token_gradient{};     // [vocabulary, width]; left out when sums is null
    gradient_sum<Policy> position_gradient{};  // [at least first + length, width]; left out when sums is null
    std::int64_t token_begin = 0;              ///< token_gradient has rows token_begin .. token_end - 1 of the vocabulary; an end of 0: all
    std::int64_t token_end = 0;
    std::int64_t position_begin = 0;  ///< positions that contribute; an end of 0: all
    std::int64_t position_end = 0;
};

/// The tokens whose rows of the table are there. @pre within the vocabulary
template <class Arguments>
constexpr shard_range tokens_there(Arguments const& a)
{
    shard_range const range{a.token_begin, a.token_end == 0 ? a.vocabulary : a.token_end};
    expects(0 <= range.begin && range.begin <= range.end && range.end <= a.vocabulary, "the rows of a token table are of the vocabulary");
    return range;
}

/// Which of the item's positions contribute to the position table: 0 is the item's first.
template <dtype_policy Policy>
constexpr shard_range positions_there(embedding_backward_weight_arguments<Policy> const& a)
{
    auto const end = a.position_end == 0 ? a.length : std::clamp<std::int64_t>(a.position_end - a.first, 0, a.length);
    return {std::min(std::max<std::int64_t>(0, a.position_begin - a.first), end), end};
}

/// The rows of a microbatch in order of their tokens, then of their own: each segment is the rows of one token.
struct token_order {
    std::vector<std::int32_t> rows;    ///< [batch * length]
    std::vector<std::int32_t> first;   ///< [segments + 1], where each segment begins in rows
    std::vector<std::int32_t> tokens;  ///< [segments]

    friend bool operator==(token_order const&, token_order const&) = default;
};

/// One order serves the whole table and any rows of it. @pre each token is in 0 .. vocabulary-1
inline token_order order_of(std::span<std::int32_t const> tokens, std::int64_t vocabulary)
{
    token_order result;
    for (std::size_t r = 0; r < tokens.size(); ++r) {
        expects(tokens[r] >= 0 && tokens[r] < vocabulary, "a token is not in the vocabulary");
        result.rows.push_back(static_cast<std::int32_t>(r));
    }
    std::stable_sort(result.rows.begin(), result.rows.end(),
                     [&](std::int32_t a, std::int32_t b) { return tokens[static_cast<std::size_t>(a)] < tokens[static_cast<std::size_t>(b)]; });
    for (std::size_t i = 0; i < result.rows.size(); ++i) {
        auto const token = tokens[static_cast<std::size_t>(result.rows[i])];
        if (result.tokens.empty() || result.tokens.back() != token) {
            result.tokens.push_back(token);
            result.first.push_back(static_cast<std::int32_t>(i));
        }
    }
    result.first.push_back(static_cast<std::int32_t>(result.rows.size()));
    return result;
}

namespace definition {

template <dtype_policy Policy>
void embedding_forward(embedding_forward_arguments<Policy> const& a)
{
    using compute = compute_t<Policy>;
    dropout_factor<compute> const factor{a.drop};
    auto const there = tokens_there(a);
    for (std::int64_t r = 0; r < a.batch * a.length; ++r) {
        expects(a.tokens[r] >= 0 && a.tokens[r] < a.vocabulary, "a token is not in the vocabulary");
        if (a.tokens[r] < there.begin || a.tokens[r] >= there.end) {
            continue;
        }
        for (std::int64_t c = 0; c < a.width; ++c) {
            compute sum = compute(a.token_table[(a.tokens[r] - there.begin) * a.width + c]);
            if (a.position_table != nullptr) {
                sum += compute(a.position_table[(a.first + r % a.length) * a.width + c]);
            }
            a.output[r * a.width + c] = static_cast<storage_t<Policy>>(sum * factor.at(r, c, a.width));
        }
    }
}

template <dtype_policy Policy>
void embedding_backward_weight(embedding_backward_weight_arguments<Policy> const& a)
{
    using compute = compute_t<Policy>;
    dropout_factor<compute> const factor{a.drop};
    std::int64_t const rows = a.batch * a.length;
    auto const there = tokens_there(a);
    auto const positions = positions_there(a);
    for (std::int64_t v = there.begin; v < there.end && a.token_gradient.sums != nullptr; ++v) {
        for (std::int64_t c = 0; c < a.width; ++c) {
            compute sum = 0;
            for (std::int64_t r = 0; r < rows; ++r) {
                if (a.tokens[r] == v) {
                    sum += compute(a.output_gradient[r * a.width + c]) * factor.at(r, c, a.width);
                }
            }
            contribute(a.token_gradient, (v - there.begin) * a.width + c, sum);
        }
    }
    for (std::int64_t t = positions.begin; t < positions.end && a.position_gradient.sums != nullptr; ++t) {
        for (std::int64_t c = 0; c < a.width; ++c) {
            compute sum = 0;
            for (std::int64_t r = t; r < rows; r += a.length) {
                sum += compute(a.output_gradient[r * a.width + c]) * factor.at(r, c, a.width);
            }
            contribute(a.position_gradient, (a.first + t) * a.width + c, sum);
        }
    }
}

}  // namespace definition

class tile_pool;

namespace host {

void embedding_forward(tile_pool& pool, embedding_forward_arguments<> const& arguments);
void embedding_backward_weight(tile_pool& pool, embedding_backward_weight_arguments<> const& arguments);
void embedding_backward_weight(tile_pool& pool, embedding_backward_weight_arguments<fp32_i32> const& arguments);

}  // namespace host

namespace cuda {

/// A token_order in the device's memory. The host sorts, while the device computes what comes before: it has the tokens first, and looks at
/// each of them anyhow. Segments without rows may follow: a launch that is recorded and done again for other tokens has as many as there can be.
struct token_order_on_device {
    std::int64_t segments;
    std::int32_t const* rows;    // [batch * length]
    std::int32_t const* first;   // [segments + 1]
    std::int32_t const* tokens;  // [segments]
};

// Policy is fp32 or bf16, backward also fp32_i32 or bf16_i32; pointers are the device's, and results are there when the stream is. @pre tokens are in the vocabulary: order_of has looked
template <dtype_policy Policy>
void embedding_forward(stream queue, embedding_forward_arguments<Policy> const& arguments);
template <dtype_policy Policy>
void embedding_backward_weight(stream queue, token_order_on_device const& order, embedding_backward_weight_arguments<Policy> const& arguments);

}  // namespace cuda
}  // namespace rheo::inline v0
