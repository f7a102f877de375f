// SPDX-License-Identifier: Apache-2.0
#include "kernels/digest/digest.hpp"

#include <algorithm>
#include <bit>

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/reduce.cuh"

namespace rheo::inline v0::cuda {

namespace {

constexpr int threads = 256;
constexpr std::int64_t most_blocks = 1024;

/// A digest as four numbers of 32 bits in 64, which add up without carries.
struct limbs {
    unsigned long long of[4];
};

__device__ limbs to_limbs(state_digest sum)
{
    constexpr std::uint64_t mask = 0xffffffffU;
    return {{sum.low & mask, sum.low >> 32, sum.high & mask, sum.high >> 32}};
}

__device__ state_digest from_limbs(limbs const& sum)
{
    state_digest result{sum.of[2] + (sum.of[3] << 32), sum.of[0]};
    return result += {sum.of[1] >> 32, sum.of[1] << 32};
}

/// A thread takes every n-th element; sums mod 2^128 come out the same in any order.
template <class T>
__global__ void __launch_bounds__(threads) by_block(digest_arguments a, state_digest* block_sums)
{
    auto const* const values = static_cast<T const*>(a.values);
    auto const width = a.where.first.count;
    auto const count = elements(a.where);
    state_digest sum;
    for (std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x; i < count; i += std::int64_t{gridDim.x} * threads) {
        auto const run = a.where.runs == 1 ? 0 : i / width;
        auto const place = a.where.first.own + run * (a.where.own_stride - width) + i;
        auto const position = a.where.first.in_parameter + run * (a.where.stride_in_parameter - width) + i;
        sum += digest_of_element(a.key, static_cast<std::uint64_t>(position), std::bit_cast<std::uint32_t>(static_cast<float>(values[place])));
    }
    auto all = to_limbs(sum);
    block_reduce(all.of, shared_memory<unsigned long long>());
    if (threadIdx.x == 0) {
        block_sums[blockIdx.x] = from_limbs(all);
    }
}

}  // namespace

std::int64_t digest_blocks(digest_arguments const& a) { return std::min<std::int64_t>(blocks_for(elements(a.where), threads), most_blocks); }

void digest_by_block(stream queue, digest_arguments const& a, state_digest* block_sums)
{
    auto const run = [&](auto const& kernel) {
        launch(queue,
               {.grid = {static_cast<unsigned>(digest_blocks(a))}, .block = {threads}, .shared_bytes = block_temp_storage<4> * sizeof(unsigned long long)},
               kernel, a, block_sums);
    };
    if (a.type == dtype::bf16) {
        run(by_block<bfloat16>);
    } else {
        run(by_block<float>);
    }
}

}  // namespace rheo::inline v0::cuda
