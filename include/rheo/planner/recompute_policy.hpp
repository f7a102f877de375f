#pragma once
// SPDX-License-Identifier: Apache-2.0

// How a job trades computing for memory: plan.recompute of a config.

#include <cstdint>

namespace rheo::inline v0 {

/// Which activations are recomputed in the backward instead of kept.
enum class recompute_policy : std::uint8_t {
    never,
    always,     ///< of each stage only the inputs are kept
    automatic,  ///< as few stages as keep each rank within the memory limit
    selective   ///< layers drop what costs least to recompute, as few as keep each rank within the memory limit
};

}  // namespace rheo::inline v0
