#pragma once
// SPDX-License-Identifier: Apache-2.0

// The microbatches of a step over unequal pipelines.

#include <span>
#include <vector>

#include "rheo/pipeline/cost.hpp"

namespace rheo::inline v0 {

struct batch_split {
    std::vector<int> shares;  ///< microbatches per pipeline, in the pipelines' order
    int without_work = 0;     ///< pipelines whose share is 0; only when there are fewer microbatches than pipelines
    seconds time;             ///< of the slowest pipeline

    friend constexpr bool operator==(batch_split const&, batch_split const&) = default;
};

/// The shares that minimise the slowest pipeline, then the next slowest and so on; among equals the
/// lower pipeline takes more. Every pipeline gets at least one microbatch when there are enough.
/// @pre there is a pipeline, and microbatches >= 0
constexpr batch_split split_batch(std::span<pipeline_cost const> pipelines, int microbatches);

}  // namespace rheo::inline v0
