#pragma once
// SPDX-License-Identifier: Apache-2.0

// The digest of much state at the speed of the processor's vectors: rheo/tensor/digest.hpp is its definition, and the bits are the same.

#include <cstdint>
#include <span>
#include <string_view>

#include "rheo/tensor/digest.hpp"

namespace rheo::inline v0::host {

/// Of consecutive elements of one tensor's role, on the calling thread. @param first the row-major index of the first element within the whole tensor
state_digest digest_of(std::string_view tensor, tensor_role role, std::int64_t first, std::span<float const> values);

}  // namespace rheo::inline v0::host
