#pragma once
// SPDX-License-Identifier: Apache-2.0

// Shapes. A parameter is a matrix (a vector has one row); what flows between layers is, per
// microbatch, `sequences x tokens` rows of some width, or those of a slice of it. Row-major everywhere.

#include <cstdint>

#include "rheo/version.hpp"

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
    int slices = 1;  ///< equal parts of each sequence, computed one after the other; they divide `tokens`

    friend constexpr bool operator==(microbatch_shape, microbatch_shape) = default;
};

/// Tokens of a sequence that are computed at once.
constexpr int slice_tokens(microbatch_shape shape) { return shape.tokens / shape.slices; }

/// Rows that are computed at once: those of a microbatch, or of one slice of it.
constexpr std::int64_t rows(microbatch_shape shape) { return std::int64_t{shape.sequences} * slice_tokens(shape); }

/// Rows of all slices.
constexpr std::int64_t microbatch_rows(microbatch_shape shape) { return rows(shape) * shape.slices; }

}  // namespace rheo::inline v0
