// SPDX-License-Identifier: Apache-2.0
#include "kernels/store/store.hpp"

#include "kernels/cuda/rows.cuh"

namespace rheo::inline v0::cuda {

namespace {

/// A chunk of bfloat16 is two chunks of floats.
template <bool Whole>
__global__ void __launch_bounds__(256) nearest(store_arguments a)
{
    std::int64_t const index = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
    auto const low = load<Whole>(a.master, a.count, 2 * index);
    auto const high = load<Whole>(a.master, a.count, 2 * index + 1);
    float values[8];
    for (int e = 0; e < 4; ++e) {
        values[e] = low.at(e);
        values[4 + e] = high.at(e);
    }
    rheo::cuda::store<Whole>(a.stored, a.count, index, packed<bfloat16>(values));
}

}  // namespace

void store(stream queue, store_arguments const& a)
{
    choose(whole_chunks<bfloat16>(a.count, a.master, a.stored),
           [&](auto whole) { launch(queue, {.grid = {blocks_for(chunks_in<bfloat16>(a.count), 256)}, .block = {256}}, nearest<whole()>, a); });
}

}  // namespace rheo::inline v0::cuda
