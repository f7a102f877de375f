#pragma once
// SPDX-License-Identifier: Apache-2.0

// What kernels read of an item besides matrices. On a device all of it goes into the device's memory in one copy before the kernels are launched, always
// to the same places: so a launch that was recorded for one item computes every item of its slot.

#include <cstdint>
#include <span>

#include "kernels/embedding/embedding.hpp"
#include "rheo/tensor/random.hpp"

namespace rheo::inline v0 {

struct item_values {
    std::span<std::int32_t const> tokens{};    ///< none: nothing reads them
    std::span<std::int32_t const> targets{};   ///< the same
    token_order const* order = nullptr;        ///< of the tokens; null: nothing reads it
    std::span<random_stream const> streams{};  ///< of the operations that drop
};

}  // namespace rheo::inline v0
