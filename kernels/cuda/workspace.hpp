#pragma once
// SPDX-License-Identifier: Apache-2.0

// Device memory that a kernel works in besides its arguments: partial sums, and counters by which the last block to finish
// knows that it is the last. One serves all kernels of a stream, one after the other.

#include <cstdint>

namespace rheo::inline v0::cuda {

/// @pre `memory` is aligned to 256; its first `counter_bytes` were zero when it was made, and are zero again after each kernel
struct workspace {
    void* memory = nullptr;
    std::int64_t bytes = 0;

    static constexpr std::int64_t counters = 16384;
    static constexpr std::int64_t counter_bytes = counters * 4;

    friend constexpr bool operator==(workspace const&, workspace const&) = default;
};

}  // namespace rheo::inline v0::cuda
