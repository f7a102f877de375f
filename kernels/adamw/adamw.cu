// SPDX-License-Identifier: Apache-2.0
#include "kernels/adamw/adamw.hpp"

#include <array>
#include <bit>
#include <type_traits>

#include "kernels/cuda/pieces.cuh"
#include "kernels/cuda/policy.hpp"
#include "kernels/cuda/reduce.cuh"
#include "kernels/cuda/rows.cuh"

namespace rheo::inline v0::cuda {

namespace {

constexpr int threads = 256;
static_assert(threads * items_per_thread * chunk_size<float> == norm_block, "a block of threads is a block of the norm");

constexpr int four = chunk_size<float>;

/// Four numbers as they are kept: 16 bytes of float, 8 of bfloat16. Beyond the tensor they are zero.
template <bool Whole, class T>
__device__ void load_four(float (&values)[four], T const* run, std::int64_t count, std::int64_t at)
{
    if constexpr (sizeof(T) == 4) {
        auto const all = load<Whole>(run, count, at);
        for (int e = 0; e < four; ++e) {
            values[e] = all.at(e);
        }
    } else if constexpr (Whole) {
        auto const bits = at * four < count ? *reinterpret_cast<uint2 const*>(run + at * four) : uint2{};
        unsigned const words[] = {bits.x << 16, bits.x & 0xffff0000U, bits.y << 16, bits.y & 0xffff0000U};
        for (int e = 0; e < four; ++e) {
            values[e] = std::bit_cast<float>(words[e]);
        }
    } else {
        for (int e = 0; e < four; ++e) {
            values[e] = at * four + e < count ? static_cast<float>(run[at * four + e]) : 0.0F;
        }
    }
}

template <bool Whole, class T>
__device__ void store_four(T* run, std::int64_t count, std::int64_t at, T const (&values)[four])
{
    if constexpr (sizeof(T) == 4) {
        store<Whole>(run, count, at, packed<float>(values));
    } else if constexpr (Whole) {
        auto const pair = [&](int e) { return static_cast<unsigned>(values[e].bits()) | static_cast<unsigned>(values[e + 1].bits()) << 16; };
        if (at * four < count) {
            __stwb(reinterpret_cast<uint2*>(run + at * four), uint2{pair(0), pair(2)});
        }
    } else {
        for (int e = 0; e < four; ++e) {
            if (at * four + e < count) {
                run[at * four + e] = values[e];
            }
        }
    }
}

template <bool Whole>
__device__ void store_nearest(bfloat16* run, std::int64_t count, std::int64_t at, float const (&values)[four])
{
    if constexpr (Whole) {
        if (at * four < count) {
            __stwb(reinterpret_cast<uint2*>(run + at * four), uint2{two_bfloat16(values[0], values[1]), two_bfloat16(values[2], values[3])});
        }
    } else {
        for (int e = 0; e < four; ++e) {
            if (at * four + e < count) {
                run[at * four + e] = static_cast<bfloat16>(values[e]);
            }
        }
    }
}

/// What the optimizer keeps in Master, and stages read in T.
template <class T, class Master>
inline constexpr dtype_policy policy_keeping = std::is_same_v<Master, bfloat16> ? bf16_state : policy_storing<T>;

template <class T, class Master, bool Whole>
__device__ void update(adamw_tensor<policy_keeping<T, Master>> const& t, adamw_factors<float> const& factors, std::int64_t block)
{
    for (int k = 0; k < items_per_thread; ++k) {
        std::int64_t const at = (block * items_per_thread + k) * threads + threadIdx.x;
        float p[four];
        float m[four];
        float v[four];
        float g[four] = {};
        load_four<Whole>(p, t.master, t.count, at);
        load_four<Whole>(m, t.first_moment, t.count, at);
        load_four<Whole>(v, t.second_moment, t.count, at);
        if (t.gradient != nullptr) {
            load_four<Whole>(g, t.gradient, t.count, at);
        }
        Master kept[four];
        Master first[four];
        Master second[four];
        std::array<std::uint32_t, 4> words{};
        for (int e = 0; e < four; ++e) {
            std::int64_t const i = at * four + e;
            if (t.sums != nullptr && i < t.count) {
                g[e] = t.gradient != nullptr ? g[e] : value_of(t.sums[i], t.scale_log2);
                t.sums[i] = 0;
            }
            definition::adamw_element(factors, t.weight_decay, g[e], m[e], v[e], p[e]);
            if (std::is_same_v<Master, bfloat16> && e % 2 == 0) {
                words = definition::rounding_words(t.rounding, i);
            }
            definition::write_element(words, i, p[e], m[e], v[e], kept[e], first[e], second[e]);
        }
        store_four<Whole>(t.master, t.count, at, kept);
        store_four<Whole>(t.first_moment, t.count, at, first);
        store_four<Whole>(t.second_moment, t.count, at, second);
        if (t.parameter != nullptr) {
            if constexpr (std::is_same_v<T, Master>) {
                store_four<Whole>(t.parameter, t.count, at, kept);
            } else {
                store_nearest<Whole>(t.parameter, t.count, at, kept);
            }
        }
    }
}

template <class T, class Master>
__global__ void __launch_bounds__(threads) step(adamw_list_arguments<policy_keeping<T, Master>> a)
{
    auto const n = piece_of(blockIdx.x, a.first_block, a.tensor_count);
    auto const t = a.tensors[n];
    auto const factors = *a.factors;
    auto const block = blockIdx.x - a.first_block[n];
    // the pointers are known on the device alone, so the choice is made here, by all threads of the block alike
    auto const lies_whole = [](auto const* run) { return reinterpret_cast<std::uintptr_t>(run) % (four * sizeof(*run)) == 0; };
    bool const whole = t.count % four == 0 && lies_whole(t.master) && lies_whole(t.first_moment) && lies_whole(t.second_moment) && lies_whole(t.gradient) &&
                       lies_whole(t.parameter);
    if (whole) {
        update<T, Master, true>(t, factors, block);
    } else {
        update<T, Master, false>(t, factors, block);
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
    launch(queue, {.grid = blocks_for(a.blocks, 1), .block = threads}, step<storage_t<Policy>, master_t<Policy>>, a);
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
template void adamw_list(stream, adamw_list_arguments<bf16_state> const&);

}  // namespace rheo::inline v0::cuda
