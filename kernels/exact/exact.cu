// SPDX-License-Identifier: Apache-2.0
#include "kernels/exact/exact.hpp"

#include "kernels/cuda/exact.cuh"
#include "kernels/cuda/launch.cuh"

namespace rheo::inline v0::cuda {

namespace {

// A thread takes two neighbouring sums, 16 bytes, at a time, eight times over; a warp reads and writes without gaps.
constexpr int threads = 256;
constexpr int times = 8;
constexpr std::int64_t per_block = std::int64_t{threads} * times * 2;

struct alignas(16) [[gnu::may_alias]] two_sums {
    std::int64_t at[2];
};
struct alignas(8) [[gnu::may_alias]] two_floats {
    float at[2];
};
struct alignas(4) [[gnu::may_alias]] two_halves {
    bfloat16 at[2];
};

template <class T>
struct pair_of;
template <>
struct pair_of<std::int64_t> { using type = two_sums; };
template <>
struct pair_of<float> { using type = two_floats; };
template <>
struct pair_of<bfloat16> { using type = two_halves; };

template <class... T>
bool in_pairs(std::int64_t count, T const*... from)
{
    return count % 2 == 0 && ((reinterpret_cast<std::uintptr_t>(from) % (2 * sizeof(T)) == 0) && ...);
}

/// Elements first and first + 1; beyond the run they are zero.
template <bool Whole, class T>
__device__ typename pair_of<T>::type load_pair(T const* run, std::int64_t count, std::int64_t first)
{
    typename pair_of<T>::type result{};
    if constexpr (Whole) {
        if (first < count) {
            result = *reinterpret_cast<typename pair_of<T>::type const*>(run + first);
        }
    } else {
        for (int e = 0; e < 2; ++e) {
            if (first + e < count) {
                result.at[e] = run[first + e];
            }
        }
    }
    return result;
}

template <bool Whole, class T>
__device__ void store_pair(T* run, std::int64_t count, std::int64_t first, typename pair_of<T>::type const& values)
{
    if constexpr (Whole) {
        if (first < count) {
            *reinterpret_cast<typename pair_of<T>::type*>(run + first) = values;
        }
    } else {
        for (int e = 0; e < 2; ++e) {
            if (first + e < count) {
                run[first + e] = values.at[e];
            }
        }
    }
}

__device__ std::int64_t pair_at(int k) { return ((static_cast<std::int64_t>(blockIdx.x) * times + k) * threads + threadIdx.x) * 2; }

template <class T, bool Whole>
__global__ void __launch_bounds__(threads) accumulate(std::int64_t count, T const* gradient, gradient_sum_of<dtype::i64> target)
{
    typename pair_of<T>::type g[times];
    two_sums sums[times];
    for (int k = 0; k < times; ++k) {
        g[k] = load_pair<Whole>(gradient, count, pair_at(k));
        sums[k] = load_pair<Whole>(target.sums, count, pair_at(k));
    }
    exact_adder adder{target};
    for (int k = 0; k < times; ++k) {
        for (int e = 0; e < 2; ++e) {
            sums[k].at[e] = adder.sum_with(sums[k].at[e], float(g[k].at[e]));  // beyond the run: zero, which says nothing
        }
        store_pair<Whole>(target.sums, count, pair_at(k), sums[k]);
    }
    adder.merge();
}

template <bool Whole>
__global__ void __launch_bounds__(threads) add(exact_add_arguments a)
{
    two_sums source[times];
    two_sums target[times];
    for (int k = 0; k < times; ++k) {
        source[k] = load_pair<Whole>(a.source, a.count, pair_at(k));
        target[k] = load_pair<Whole>(a.target, a.count, pair_at(k));
    }
    for (int k = 0; k < times; ++k) {
        store_pair<Whole>(a.target, a.count, pair_at(k), {{source[k].at[0] + target[k].at[0], source[k].at[1] + target[k].at[1]}});
    }
}

template <bool Whole>
__global__ void __launch_bounds__(threads) convert(exact_convert_arguments a)
{
    two_sums sums[times];
    for (int k = 0; k < times; ++k) {
        sums[k] = load_pair<Whole>(a.sums, a.count, pair_at(k));
    }
    for (int k = 0; k < times; ++k) {
        store_pair<Whole>(a.gradient, a.count, pair_at(k), {{value_of(sums[k].at[0], a.scale_log2), value_of(sums[k].at[1], a.scale_log2)}});
    }
}

launch_shape shape_of(std::int64_t count) { return {.grid = blocks_for(count, per_block), .block = threads}; }

template <class T>
void accumulate_run(stream queue, std::int64_t count, T const* gradient, gradient_sum_of<dtype::i64> const& target)
{
    auto const kernel = in_pairs(count, gradient, target.sums) ? accumulate<T, true> : accumulate<T, false>;
    launch(queue, shape_of(count), kernel, count, gradient, target);
}

}  // namespace

void exact_accumulate(stream queue, exact_accumulate_arguments const& a) { accumulate_run(queue, a.count, a.gradient, a.target); }

void exact_accumulate_bf16(stream queue, exact_accumulate_bf16_arguments const& a) { accumulate_run(queue, a.count, a.gradient, a.target); }

void exact_add(stream queue, exact_add_arguments const& a)
{
    launch(queue, shape_of(a.count), in_pairs(a.count, a.source, a.target) ? add<true> : add<false>, a);
}

void exact_convert(stream queue, exact_convert_arguments const& a)
{
    launch(queue, shape_of(a.count), in_pairs(a.count, a.sums, a.gradient) ? convert<true> : convert<false>, a);
}

void exact_zero(stream queue, std::int64_t count, std::int64_t* sums)
{
    check(cudaMemsetAsync(sums, 0, static_cast<std::size_t>(count) * sizeof(std::int64_t), static_cast<cudaStream_t>(queue.handle)), "cudaMemsetAsync");
}

}  // namespace rheo::inline v0::cuda
