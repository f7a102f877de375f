#pragma once
// SPDX-License-Identifier: Apache-2.0

// The digest of much state at the speed of the processor's vectors, and of a device: rheo/tensor/digest.hpp is its definition, and the bits are the same.

#include <cstdint>
#include <span>
#include <string_view>

#include "kernels/cuda/stream.hpp"
#include "rheo/tensor/digest.hpp"
#include "rheo/tensor/dtype.hpp"
#include "rheo/tensor/parameter_part.hpp"

namespace rheo::inline v0 {

/// Elements of one tensor's role.
struct digest_arguments {
    std::uint64_t key;        ///< digest_key of parameter and role
    strided_runs where;       ///< which of the tensor's elements, and where these are in the parameter
    void const* values;       ///< of the tensor
    dtype type = dtype::f32;  ///< of the values, f32 or bf16; what is digested is the float that each is
};

namespace host {

/// On the calling thread.
state_digest digest(digest_arguments const& arguments);

/// Of consecutive elements of one tensor's role. @param first the row-major index of the first element within the whole tensor
state_digest digest_of(std::string_view tensor, tensor_role role, std::int64_t first, std::span<float const> values);

}  // namespace host

namespace cuda {

/// How many sums digest_by_block writes.
std::int64_t digest_blocks(digest_arguments const& arguments);

/// The sums of blocks, whose sum is the digest. Pointers are the device's, and values are there when the stream is.
void digest_by_block(stream queue, digest_arguments const& arguments, state_digest* block_sums);

}  // namespace cuda
}  // namespace rheo::inline v0
