#pragma once
// SPDX-License-Identifier: Apache-2.0

// Rotary position embedding (Su et al.: "RoFormer", 2021), as Llama has it in Hugging Face's form: of each head of width d the
// elements i and i + d/2 are a pair, turned by position * base^(-2i/d). Here it turns the queries and keys of packed
// q, k, v, whose rows are all heads of q, then of k, then of v, and copies the values; in place it does not touch them. Backward turns gradients back.
// Cosines and sines come from a table that is made once, by sums and products alone, so that all machines agree.

#include <cstdint>

#include "kernels/cuda/stream.hpp"
#include "rheo/model/rope_scaling.hpp"
#include "rheo/tensor/dtype.hpp"
#include "rheo/units/expects.hpp"

namespace rheo::inline v0 {

template <dtype_policy Policy = fp32>
struct rope_arguments {
    std::int64_t rows;    ///< sequences times `length`
    std::int64_t length;  ///< tokens of a sequence, or of the slice of it that the item is; row r has position first + r % length
    std::int64_t first = 0;
    std::int64_t turned;             ///< heads of q and k together
    std::int64_t kept;               ///< heads of v
    std::int64_t head_width;         ///< even
    compute_t<Policy> const* table;  // [at least first + length, 2, head_width / 2]: cosines, then sines
    storage_t<Policy> const* input;  // [rows, (turned + kept) * head_width]
    storage_t<Policy>* output;       // the same, may be input
    bool back = false;               ///< the other way round, for gradients
};

namespace definition {

template <dtype_policy Policy>
void rope(rope_arguments<Policy> const& a)
{
    using compute = compute_t<Policy>;
    using storage = storage_t<Policy>;
    std::int64_t const half = a.head_width / 2;
    std::int64_t const width = (a.turned + a.kept) * a.head_width;
    for (std::int64_t r = 0; r < a.rows; ++r) {
        auto const* const turn = a.table + (a.first + r % a.length) * a.head_width;
        for (std::int64_t h = 0; h < a.turned + a.kept; ++h) {
            auto const* const x = a.input + r * width + h * a.head_width;
            auto* const y = a.output + r * width + h * a.head_width;
            for (std::int64_t i = 0; i < half; ++i) {
                compute const low = compute(x[i]);
                compute const high = compute(x[half + i]);
                compute const cosine = h < a.turned ? turn[i] : compute(1);
                compute const sine = h < a.turned ? (a.back ? -turn[half + i] : turn[half + i]) : compute(0);
                y[i] = static_cast<storage>(low * cosine - high * sine);
                y[half + i] = static_cast<storage>(high * cosine + low * sine);
            }
        }
    }
}

}  // namespace definition

/// Fills the table of the first `positions` positions, [positions, 2, head_width / 2]. Each value is within 6e-8 of the exact one up to
/// a million positions. @pre head_width is even, base >= 1, error_of(scaling) is empty
void fill_rope_table(std::int64_t positions, std::int64_t head_width, double base, float* table, rope_scaling const& scaling = {});

class tile_pool;

namespace host {

void rope(tile_pool& pool, rope_arguments<> const& arguments);

}  // namespace host

namespace cuda {

// Policy is fp32 or bf16; pointers are the device's, and results are there when the stream is.
template <dtype_policy Policy>
void rope(stream queue, rope_arguments<Policy> const& arguments);

}  // namespace cuda
}  // namespace rheo::inline v0
