#pragma once
// SPDX-License-Identifier: Apache-2.0

// What the kernels use of cub/block/block_load.cuh, for a C++ compiler.

namespace cub {

template <int BlockThreads, class T, int ItemsPerThread, class Iterator, class Default>
void LoadDirectStriped(int linear_tid, Iterator from, T (&items)[ItemsPerThread], int valid_items, Default out_of_bounds)
{
    for (int i = 0; i < ItemsPerThread; ++i) {
        items[i] = linear_tid + i * BlockThreads < valid_items ? from[linear_tid + i * BlockThreads] : out_of_bounds;
    }
}

}  // namespace cub
