#pragma once
// SPDX-License-Identifier: Apache-2.0

// Runs of elements in chunks of 16 bytes, the widest access of a thread. Which chunk holds an element does not depend on how it
// is read: a run that is aligned and whole is read by 16-byte accesses, another one by elements, with the same bits. (cub::BlockLoad would give a thread
// other elements in the second case, and wants the size of a block at compile time.)

#include <bit>
#include <cstdint>

#include <cuda_runtime.h>

#include "rheo/tensor/bfloat16.hpp"

namespace rheo::inline v0::cuda {

/// Elements of a chunk.
template <class T>
inline constexpr int chunk_size = static_cast<int>(16 / sizeof(T));

/// 16 bytes of elements, kept as they are stored: so a row takes no more registers than bytes.
template <class T>
struct chunk {
    std::uint32_t words[4];

    /// Element e.
    __device__ float at(int e) const
    {
        if constexpr (sizeof(T) == 4) {
            return std::bit_cast<float>(words[e]);
        } else {
            return std::bit_cast<float>(e % 2 == 0 ? words[e / 2] << 16 : words[e / 2] & 0xffff0000U);
        }
    }
};

/// Two bfloat16 in a word, the first in its lower half, by the device's instruction where it runs; the bits are the constructor's.
__device__ inline std::uint32_t two_bfloat16(float first, float second)
{
#ifdef __CUDA_ARCH__
    std::uint32_t word = 0;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(second), "f"(first));
    return word;
#else
    return std::uint32_t{bfloat16{first}.bits()} | std::uint32_t{bfloat16{second}.bits()} << 16;
#endif
}

/// A value as storing it leaves it.
template <class T>
__device__ float rounded(float value)
{
    if constexpr (sizeof(T) == 4) {
        return value;
    } else {
        return std::bit_cast<float>(two_bfloat16(0, value) & 0xffff0000U);
    }
}

template <class T>
__device__ chunk<T> packed(float const (&values)[chunk_size<T>])
{
    chunk<T> result;
    for (int w = 0; w < 4; ++w) {
        if constexpr (sizeof(T) == 4) {
            result.words[w] = std::bit_cast<std::uint32_t>(values[w]);
        } else {
            result.words[w] = two_bfloat16(values[2 * w], values[2 * w + 1]);
        }
    }
    return result;
}

template <class T>
constexpr std::int64_t chunks_in(std::int64_t count)
{
    return (count + chunk_size<T> - 1) / chunk_size<T>;
}

/// Whether runs of `count` elements one after the other from each pointer on can be read in whole chunks; null pointers can.
template <class T, class... Pointers>
bool whole_chunks(std::int64_t count, Pointers const*... from)
{
    return count % chunk_size<T> == 0 && ((reinterpret_cast<std::uintptr_t>(from) % 16 == 0) && ...);
}

/// Chunk `index` of a run of `count` elements; elements beyond the run are zero. @pre Whole only where whole_chunks says so
template <bool Whole, class T>
__device__ chunk<T> load(T const* run, std::int64_t count, std::int64_t index)
{
    std::int64_t const first = index * chunk_size<T>;
    if constexpr (Whole) {
        uint4 raw{0, 0, 0, 0};
        if (first < count) {
            raw = *reinterpret_cast<uint4 const*>(run + first);
        }
        return {{raw.x, raw.y, raw.z, raw.w}};
    } else {
        float values[chunk_size<T>];
        for (int e = 0; e < chunk_size<T>; ++e) {
            values[e] = first + e < count ? float(run[first + e]) : 0.0F;
        }
        return packed<T>(values);
    }
}

/// Writes what lies within the run.
template <bool Whole, class T>
__device__ void store(T* run, std::int64_t count, std::int64_t index, chunk<T> const& values)
{
    std::int64_t const first = index * chunk_size<T>;
    if constexpr (Whole) {
        if (first < count) {
            // spelled out, because the compiler turns an assignment into four stores
            __stwb(reinterpret_cast<uint4*>(run + first), uint4{values.words[0], values.words[1], values.words[2], values.words[3]});
        }
    } else {
        for (int e = 0; e < chunk_size<T>; ++e) {
            if (first + e < count) {
                run[first + e] = static_cast<T>(values.at(e));
            }
        }
    }
}

}  // namespace rheo::inline v0::cuda
