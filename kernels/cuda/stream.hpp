#pragma once
// SPDX-License-Identifier: Apache-2.0

// The queue of a device in which a kernel is put. Opaque, so that contracts and those who call kernels need no header of CUDA.

namespace rheo::inline v0::cuda {

/// A cudaStream_t; as it stands, the default stream. Kernels put into one stream run one after the other.
struct stream {
    void* handle = nullptr;

    friend constexpr bool operator==(stream const&, stream const&) = default;
};

}  // namespace rheo::inline v0::cuda
