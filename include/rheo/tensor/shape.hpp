#pragma once
// SPDX-License-Identifier: Apache-2.0

// Shapes. A parameter is a matrix (a vector has one row); what flows between layers is, per
// microbatch, `sequences x tokens` rows of some width. Row-major everywhere.

#include <cstdint>

namespace rheo::inline v0 {

struct tensor_shape {
    std::int64_t rows = 1;
    std::int64_t columns = 1;

    friend constexpr bool operator==(tensor_shape, tensor_shape) = default;
};

constexpr std::int64_t elements(tensor_shape shape) { return shape.rows * shape.columns; }

struct microbatch_shape {
    int sequences = 1;
    int tokens = 1;  ///< per sequence

    friend constexpr bool operator==(microbatch_shape, microbatch_shape) = default;
};

constexpr std::int64_t rows(microbatch_shape shape)
{
    return std::int64_t{shape.sequences} * shape.tokens;
}

}  // namespace rheo::inline v0
