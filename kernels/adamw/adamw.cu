// SPDX-License-Identifier: Apache-2.0
#include "kernels/adamw/adamw.hpp"

#include "kernels/cuda/pieces.cuh"
#include "kernels/cuda/policy.hpp"
#include "kernels/cuda/reduce.cuh"
#include "kernels/cuda/rows.cuh"

namespace rheo::inline v0::cuda {

namespace {

constexpr int threads = 256;
static_assert(threads * items_per_thread * chunk_size<float> == norm_block, "a block of threads is a block of the norm");

/// Four numbers as they are stored: 16 bytes of float, 8 of bfloat16.
template <class T, bool Whole>
__device__ void store_cast(T* run, std::int64_t count, std::int64_t at, float const (&values)[chunk_size<float>])
{
    constexpr int size = chunk_size<float>;
    if constexpr (sizeof(T) == 4) {
        store<Whole>(run, count, at, packed<float>(values));
    } else if constexpr (Whole) {
        if (at * size < count) {
            __stwb(reinterpret_cast<uint2*>(run + at * size), uint2{two_bfloat16(values[0], values[1]), two_bfloat16(values[2], values[3])});
        }
    } else {
        for (int e = 0; e < size; ++e) {
            if (at * size + e < count) {
                run[at * size + e] = static_cast<T>(values[e]);
            }
        }
    }
}

template <class T, bool Whole>
__device__ void update(adamw_tensor<policy_storing<T>> const& t, adamw_factors<float> const& factors, std::int64_t block)
{
    constexpr int size = chunk_size<float>;
    for (int k = 0; k < items_per_thread; ++k) {
        std::int64_t const at = (block * items_per_thread + k) * threads + threadIdx.x;
        auto const master = load<Whole>(t.master, t.count, at);
        auto const first = load<Whole>(t.first_moment, t.count, at);
        auto const second = load<Whole>(t.second_moment, t.count, at);
        float g[size] = {};
        if (t.gradient != nullptr) {
            auto const gradient = load<Whole>(t.gradient, t.count, at);
            for (int e = 0; e < size; ++e) {
                g[e] = gradient.at(e);
            }
        }
        float p[size];
        float m[size];
        float v[size];
        for (int e = 0; e < size; ++e) {
            std::int64_t const i = at * size + e;
            if (t.sums != nullptr && i < t.count) {
                g[e] = t.gradient != nullptr ? g[e] : value_of(t.sums[i], t.scale_log2);
                t.sums[i] = 0;
            }
            p[e] = master.at(e);
            m[e] = first.at(e);
            v[e] = second.at(e);
            definition::adamw_element(factors, t.weight_decay, g[e], m[e], v[e], p[e]);
        }
        store<Whole>(t.master, t.count, at, packed<float>(p));
        store<Whole>(t.first_moment, t.count, at, packed<float>(m));
        store<Whole>(t.second_moment, t.count, at, packed<float>(v));
        if (t.parameter != nullptr) {
            store_cast<T, Whole>(t.parameter, t.count, at, p);
        }
    }
}

template <class T>
__global__ void __launch_bounds__(threads) step(adamw_list_arguments<policy_storing<T>> a)
{
    auto const n = piece_of(blockIdx.x, a.first_block, a.tensor_count);
    auto const t = a.tensors[n];
    auto const factors = *a.factors;
    auto const block = blockIdx.x - a.first_block[n];
    // the pointers are known on the device alone, so the choice is made here, by all threads of the block alike
    bool const whole = t.count % chunk_size<float> == 0 &&
                       (reinterpret_cast<std::uintptr_t>(t.master) | reinterpret_cast<std::uintptr_t>(t.first_moment) |
                        reinterpret_cast<std::uintptr_t>(t.second_moment) | reinterpret_cast<std::uintptr_t>(t.gradient)) %
                               16 ==
                           0 &&
                       reinterpret_cast<std::uintptr_t>(t.parameter) % (4 * sizeof(T)) == 0;
    if (whole) {
        update<T, true>(t, factors, block);
    } else {
        update<T, false>(t, factors, block);
    }
}

/// Sixteen lanes of a warp add a block as the host's sixteen lanes do: lane l the elements l, l + 16, ...; then the lanes fold. All lanes of a warp call it.
__device__ void add_block(norm_tensor const& tensor, std::int64_t block, bool works, double* block_sum)
{
    constexpr int lanes = 16;
    std::int64_t const begin = works ? block * norm_block : 0;
    std::int64_t const end = works ? (tensor.count < begin + norm_block ? tensor.count : begin + norm_block) : 0;
    double sum = 0;
    for (std::int64_t i = begin + threadIdx.x % lanes; i < end; i += 8 * lanes) {
        float some[8];
        for (int k = 0; k < 8; ++k) {
            some[k] = i + k * lanes < end ? tensor.gradient[i + k * lanes] : 0.0F;
        }
        for (float const value : some) {
            sum += static_cast<double>(value) * static_cast<double>(value);
        }
    }
    // by hand: cub::WarpReduce joins neighbours first, the host's lanes the halves
    for (int half = lanes / 2; half > 0; half /= 2) {
        sum += __shfl_xor_sync(all_lanes, sum, half);
    }
    if (works && threadIdx.x % lanes == 0) {
        *block_sum = sum;
    }
}

__device__ std::int64_t block_of_half_warp() { return (static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x) / 16; }

__global__ void __launch_bounds__(threads) blocks_of_all(gradient_norm_list_arguments a)
{
    auto const block = block_of_half_warp();
    bool const works = block < a.blocks;
    auto const n = works ? piece_of(block, a.first_block, a.tensor_count) : 0;
    add_block(a.tensors[n], block - a.first_block[n], works, a.block_sums + block);
}

__global__ void __launch_bounds__(threads) blocks_of_one(norm_tensor gradient, std::int64_t blocks, double* block_sums)
{
    auto const block = block_of_half_warp();
    add_block(gradient, block, block < blocks, block_sums + block);
}

__global__ void __launch_bounds__(warp_size) add_blocks(sums_of_blocks_arguments a)
{
    std::int64_t const n = static_cast<std::int64_t>(blockIdx.x) * warp_size + threadIdx.x;
    if (n >= a.count) {
        return;
    }
    double total = 0;
    for (auto b = a.first_block[n]; b < a.first_block[n + 1]; ++b) {
        total += a.block_sums[b];
    }
    a.sums[n] = total;
}

}  // namespace

template <dtype_policy Policy>
void adamw_list(stream queue, adamw_list_arguments<Policy> const& a)
{
    launch(queue, {.grid = blocks_for(a.blocks, 1), .block = threads}, step<storage_t<Policy>>, a);
}

void sums_of_squares_by_block(stream queue, gradient_norm_list_arguments const& a)
{
    launch(queue, {.grid = blocks_for(a.blocks, threads / 16), .block = threads}, blocks_of_all, a);
}

void sums_of_squares_by_block(stream queue, norm_tensor const& gradient, double* block_sums)
{
    auto const blocks = (gradient.count + norm_block - 1) / norm_block;
    launch(queue, {.grid = blocks_for(blocks, threads / 16), .block = threads}, blocks_of_one, gradient, blocks, block_sums);
}

void sums_of_blocks(stream queue, sums_of_blocks_arguments const& a)
{
    launch(queue, {.grid = blocks_for(a.count, warp_size), .block = warp_size}, add_blocks, a);
}

template void adamw_list(stream, adamw_list_arguments<fp32> const&);
template void adamw_list(stream, adamw_list_arguments<bf16> const&);

}  // namespace rheo::inline v0::cuda
