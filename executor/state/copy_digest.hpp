#pragma once
// SPDX-License-Identifier: Apache-2.0

// The digest of what is copied between ranks: sender and receiver compute it of the bytes of a box as they travel, while these are in
// the cache. Tensor, role and place belong to it, and digests of boxes are added, so a tensor that came in pieces from several ranks
// has one. It is XXH3 (github.com/Cyan4973/xxHash), which reads memory as fast as messages do; the digest of state (rheo/tensor/digest.hpp) costs several
// times as much.

#include <cstddef>
#include <cstdint>
#include <span>

#include "rheo/tensor/collection.hpp"
#include "rheo/tensor/digest.hpp"
#include "rheo/topology/tagged_index.hpp"

namespace rheo::inline v0 {

/// @param place of the first element within the tensor, in bytes
state_digest digest_of_copy(tensor_id tensor, tensor_role role, std::int64_t place, std::span<std::byte const> data);

}  // namespace rheo::inline v0
