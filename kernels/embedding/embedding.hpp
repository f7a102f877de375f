#pragma once
// SPDX-License-Identifier: Apache-2.0

// The model's input: x = dropout(token table[token] + position table[position]), or without the positions. Row b * length + t has
// position first + t. Backward first forms the microbatch's own gradient of a table row (rows of x that use it added
// in order of increasing row), then contributes it once; table rows that the microbatch does not use
// contribute nothing.

#include <cstdint>

#include "kernels/dropout/dropout.hpp"
#include "kernels/exact/exact.hpp"
#include "rheo/tensor/dtype.hpp"
#include "rheo/units/expects.hpp"

namespace rheo::inline v0 {

template <dtype_policy Policy = fp32>
struct embedding_forward_arguments {
    std::int64_t batch;
    std::int64_t length;      ///< tokens of a sequence, or of the slice of it that the item is
    std::int64_t first = 0;   ///< the position of the first of them
    std::int64_t width;
    std::int64_t vocabulary;
    std::int32_t const* tokens;               // [batch, length], each in 0 .. vocabulary-1
    storage_t<Policy> const* token_table;     // [vocabulary, width]
    storage_t<Policy> const* position_table;  // [at least first + length, width], or null: none
    dropout drop{};                           ///< element row * width + c
    storage_t<Policy>* output;                // [batch * length, width]
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
};

namespace definition {

template <dtype_policy Policy>
void embedding_forward(embedding_forward_arguments<Policy> const& a)
{
    using compute = compute_t<Policy>;
    dropout_factor<compute> const factor{a.drop};
    for (std::int64_t r = 0; r < a.batch * a.length; ++r) {
        expects(a.tokens[r] >= 0 && a.tokens[r] < a.vocabulary, "a token is not in the vocabulary");
        for (std::int64_t c = 0; c < a.width; ++c) {
            compute sum = compute(a.token_table[a.tokens[r] * a.width + c]);
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
    for (std::int64_t v = 0; v < a.vocabulary && a.token_gradient.sums != nullptr; ++v) {
        for (std::int64_t c = 0; c < a.width; ++c) {
            compute sum = 0;
            for (std::int64_t r = 0; r < rows; ++r) {
                if (a.tokens[r] == v) {
                    sum += compute(a.output_gradient[r * a.width + c]) * factor.at(r, c, a.width);
                }
            }
            contribute(a.token_gradient, v * a.width + c, sum);
        }
    }
    for (std::int64_t t = 0; t < a.length && a.position_gradient.sums != nullptr; ++t) {
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

}  // namespace host
}  // namespace rheo::inline v0
