#pragma once
// SPDX-License-Identifier: Apache-2.0

// What is stored of a parameter whose storage type is not the master's: the nearest bfloat16, ties to even. The update writes it too
// (kernels/adamw); this is for parameters that came another way, made from the seed, read or received.

#include <cstdint>

#include "kernels/cuda/stream.hpp"
#include "rheo/tensor/bfloat16.hpp"

namespace rheo::inline v0 {

struct store_arguments {
    std::int64_t count;
    float const* master;  // [count]
    bfloat16* stored;     // [count]
};

namespace definition {

inline void store(store_arguments const& a)
{
    for (std::int64_t i = 0; i < a.count; ++i) {
        a.stored[i] = bfloat16{a.master[i]};
    }
}

}  // namespace definition

namespace cuda {

/// Pointers are the device's, and values are there when the stream is.
void store(stream queue, store_arguments const& arguments);

}  // namespace cuda
}  // namespace rheo::inline v0
