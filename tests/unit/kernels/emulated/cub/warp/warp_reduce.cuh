#pragma once
// SPDX-License-Identifier: Apache-2.0

// cub::WarpReduce over whole warps, for a C++ compiler, in the tree of CUB's reduction by shuffles (cub/warp/specializations/warp_reduce_shfl.cuh): neighbours
// first, then pairs of them, and so on. The result is the first lane's, as CUB documents it; other lanes get a pattern that is not a number, so that
// a use of theirs shows.

#include <cstring>

#include "../../cuda_runtime.h"

namespace cub {

template <class T>
class WarpReduce {
public:
    struct TempStorage {};

    explicit WarpReduce(TempStorage&) {}

    template <class Op>
    T Reduce(T input, Op op, int valid_items = warpSize)
    {
        int const lane = emulated::lane();
        for (int offset = 1; offset < warpSize; offset *= 2) {
            T const other = __shfl_down_sync(0xffffffffU, input, static_cast<unsigned>(offset));
            if (lane + offset < valid_items) {
                input = op(input, other);
            }
        }
        if (lane != 0) {
            std::memset(static_cast<void*>(&input), 0xff, sizeof(T));
        }
        return input;
    }
};

}  // namespace cub
