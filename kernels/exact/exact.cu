// SPDX-License-Identifier: Apache-2.0
#include "kernels/exact/exact.hpp"

#include "kernels/cuda/launch.cuh"
#include "kernels/exact/exact_pairs.cuh"

namespace rheo::inline v0::cuda {

namespace {

template <class T, bool Whole>
__global__ void __launch_bounds__(pair_threads) accumulate(std::int64_t count, T const* gradient, gradient_sum_of<dtype::i64> target)
{
    accumulate_block<Whole>(blockIdx.x, count, gradient, target);
}

template <bool Whole>
__global__ void __launch_bounds__(pair_threads) accumulate_panel(panel_runs runs)
{
    accumulate_block<Whole>(blockIdx.x, runs);
}

template <bool Whole>
__global__ void __launch_bounds__(pair_threads) add(exact_add_arguments a)
{
    auto const source = load_block<Whole>(a.source, a.count, blockIdx.x);
    auto target = load_block<Whole>(a.target, a.count, blockIdx.x);
    for (int i = 0; i < target.size; ++i) {
        target[i] += source[i];
    }
    store_block(a.target, a.count, blockIdx.x, target);
}

template <bool Whole>
__global__ void __launch_bounds__(pair_threads) convert(exact_convert_arguments a)
{
    auto const sums = load_block<Whole>(a.sums, a.count, blockIdx.x);
    block_items<float, Whole> gradient;
    for (int i = 0; i < sums.size; ++i) {
        gradient[i] = value_of(sums[i], a.scale_log2);
    }
    store_block(a.gradient, a.count, blockIdx.x, gradient);
}

launch_shape shape_of(std::int64_t count) { return {.grid = blocks_for(count, pairs_of_block), .block = pair_threads}; }

template <class T>
void accumulate_run(stream queue, std::int64_t count, T const* gradient, gradient_sum_of<dtype::i64> const& target)
{
    auto const kernel = in_pairs(count, gradient, target.sums) ? accumulate<T, true> : accumulate<T, false>;
    launch(queue, shape_of(count), kernel, count, gradient, target);
}

}  // namespace

void exact_accumulate(stream queue, exact_accumulate_arguments const& a) { accumulate_run(queue, a.count, a.gradient, a.target); }

void exact_accumulate_bf16(stream queue, exact_accumulate_bf16_arguments const& a) { accumulate_run(queue, a.count, a.gradient, a.target); }

void exact_accumulate_panel(stream queue, exact_panel_arguments<dtype::i64> const& a)
{
    auto const runs = runs_of(a);
    launch(queue, {.grid = runs.blocks, .block = pair_threads}, runs.whole ? accumulate_panel<true> : accumulate_panel<false>, runs);
}

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
