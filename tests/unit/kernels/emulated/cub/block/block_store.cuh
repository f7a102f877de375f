#pragma once
// SPDX-License-Identifier: Apache-2.0

// What the kernels use of cub/block/block_store.cuh, for a C++ compiler.

namespace cub {

template <int BlockThreads, class T, int ItemsPerThread, class Iterator>
void StoreDirectStriped(int linear_tid, Iterator to, T (&items)[ItemsPerThread], int valid_items)
{
    for (int i = 0; i < ItemsPerThread; ++i) {
        if (linear_tid + i * BlockThreads < valid_items) {
            to[linear_tid + i * BlockThreads] = items[i];
        }
    }
}

}  // namespace cub
