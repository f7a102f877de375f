#pragma once
// SPDX-License-Identifier: Apache-2.0

// What the .cu files use of the CUDA runtime, for a C++ compiler: they are compiled unchanged, and their kernels run on
// the processor by grid.hpp. Arithmetic is the device's bit for bit where IEEE 754 decides (sums, products, quotients, roots,
// fma); exponentials and logarithms are the host's. Device memory is ordinary memory of the exact size, filled with a pattern that is
// not a number. What is missing here (__shared__ above all: see kernels/cuda/launch.cuh) no kernel uses yet.

#include <atomic>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <source_location>
#include <tuple>
#include <type_traits>

#include "grid.hpp"
#include "matrix.h"

#define __global__
#define __device__
#define __host__
#define __launch_bounds__(...)
#define __forceinline__ inline
#define __CUDA_EMULATED__ 1

// -- types

struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x{x_}, y{y_}, z{z_} {}
};
using uint3 = emulated::extent;
struct alignas(8) [[gnu::may_alias]] uint2 { unsigned x, y; };
struct alignas(16) [[gnu::may_alias]] uint4 { unsigned x, y, z, w; };
struct alignas(8) [[gnu::may_alias]] float2 { float x, y; };
struct alignas(16) [[gnu::may_alias]] float4 { float x, y, z, w; };

// -- a thread's place and its meetings

inline uint3 const& threadIdx = emulated::here().thread;
inline uint3 const& blockIdx = emulated::here().block;
inline uint3 const& blockDim = emulated::here().block_size;
inline uint3 const& gridDim = emulated::here().grid_size;
inline constexpr int warpSize = 32;

namespace emulated::detail {

template <class T>
std::uint64_t packed(T value)
{
    static_assert(std::is_trivially_copyable_v<T> && (sizeof(T) == 4 || sizeof(T) == 8), "a shuffle carries 4 or 8 bytes");
    if constexpr (sizeof(T) == 4) {
        return std::bit_cast<std::uint32_t>(value);
    } else {
        return std::bit_cast<std::uint64_t>(value);
    }
}

template <class T>
T unpacked(std::uint64_t bits)
{
    if constexpr (sizeof(T) == 4) {
        return std::bit_cast<T>(static_cast<std::uint32_t>(bits));
    } else {
        return std::bit_cast<T>(bits);
    }
}

template <class T>
T shuffle(unsigned mask, T value, int source, std::source_location place)
{
    return unpacked<T>(meet({.kind = meeting::warp_shuffle, .mask = mask, .value = packed(value), .source = source, .place = place}));
}

inline unsigned word(meeting kind, unsigned mask, unsigned value, std::source_location place)
{
    return static_cast<unsigned>(meet({.kind = kind, .mask = mask, .value = value, .place = place}));
}

}  // namespace emulated::detail

using emulated_place = std::source_location;
inline void __syncthreads(emulated_place at = emulated_place::current()) { emulated::detail::word(emulated::meeting::block_barrier, ~0U, 0, at); }
inline int __syncthreads_or(int p, emulated_place at = emulated_place::current()) { return static_cast<int>(emulated::detail::word(emulated::meeting::block_or, ~0U, p != 0, at)); }
inline int __syncthreads_and(int p, emulated_place at = emulated_place::current()) { return static_cast<int>(emulated::detail::word(emulated::meeting::block_and, ~0U, p != 0, at)); }
inline int __syncthreads_count(int p, emulated_place at = emulated_place::current()) { return static_cast<int>(emulated::detail::word(emulated::meeting::block_count, ~0U, p != 0, at)); }
inline void __syncwarp(unsigned mask = ~0U, emulated_place at = emulated_place::current()) { emulated::detail::word(emulated::meeting::warp_barrier, mask, 0, at); }
inline unsigned __ballot_sync(unsigned mask, int p, emulated_place at = emulated_place::current()) { return emulated::detail::word(emulated::meeting::warp_ballot, mask, p != 0, at); }
inline int __any_sync(unsigned mask, int p, emulated_place at = emulated_place::current()) { return __ballot_sync(mask, p, at) != 0; }
inline int __all_sync(unsigned mask, int p, emulated_place at = emulated_place::current()) { return __ballot_sync(mask, p, at) == mask; }
inline unsigned __reduce_add_sync(unsigned mask, unsigned v, emulated_place at = emulated_place::current()) { return emulated::detail::word(emulated::meeting::warp_add, mask, v, at); }
inline unsigned __reduce_min_sync(unsigned mask, unsigned v, emulated_place at = emulated_place::current()) { return emulated::detail::word(emulated::meeting::warp_min, mask, v, at); }
inline unsigned __reduce_max_sync(unsigned mask, unsigned v, emulated_place at = emulated_place::current()) { return emulated::detail::word(emulated::meeting::warp_max, mask, v, at); }

// `width` lanes, a power of two, form a group; a lane beyond its group's end gives its own value
template <class T>
T __shfl_sync(unsigned mask, T value, int source, int width = 32, emulated_place at = emulated_place::current())
{
    int const group = emulated::lane() & ~(width - 1);
    return emulated::detail::shuffle(mask, value, group + (source & (width - 1)), at);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int lane_mask, int width = 32, emulated_place at = emulated_place::current())
{
    int const self = emulated::lane();
    int const source = self ^ lane_mask;
    return emulated::detail::shuffle(mask, value, source < (self & ~(width - 1)) + width ? source : self, at);
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32, emulated_place at = emulated_place::current())
{
    int const self = emulated::lane();
    int const source = self - static_cast<int>(delta);
    return emulated::detail::shuffle(mask, value, source >= (self & ~(width - 1)) ? source : self, at);
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32, emulated_place at = emulated_place::current())
{
    int const self = emulated::lane();
    int const source = self + static_cast<int>(delta);
    return emulated::detail::shuffle(mask, value, source < (self & ~(width - 1)) + width ? source : self, at);
}

// -- arithmetic and memory of a thread

inline float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }
inline void __threadfence() {}
template <class T>
T __ldg(T const* p) { return *p; }
template <class T>
T __ldcg(T const* p) { return *p; }
template <class T>
void __stwb(T* p, T value) { *p = value; }

template <class T>
concept emulated_atomic = std::is_integral_v<T>;  // sums of floats depend on their order: there is no atomic for them
template <emulated_atomic T>
T atomicAdd(T* p, std::type_identity_t<T> v) { T const old = *p; *p = static_cast<T>(old + v); return old; }
template <emulated_atomic T>
T atomicMax(T* p, std::type_identity_t<T> v) { T const old = *p; *p = old < v ? v : old; return old; }
template <emulated_atomic T>
T atomicMin(T* p, std::type_identity_t<T> v) { T const old = *p; *p = v < old ? v : old; return old; }
template <emulated_atomic T>
T atomicOr(T* p, std::type_identity_t<T> v) { T const old = *p; *p = old | v; return old; }
template <emulated_atomic T>
T atomicExch(T* p, std::type_identity_t<T> v) { T const old = *p; *p = v; return old; }
template <emulated_atomic T>
T atomicCAS(T* p, std::type_identity_t<T> expected, std::type_identity_t<T> v) { T const old = *p; *p = old == expected ? v : old; return old; }

// -- the host's side

#include "runtime.h"
