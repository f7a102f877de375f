// SPDX-License-Identifier: Apache-2.0
#include "kernels/initialise/initialise.hpp"

#include "kernels/cuda/launch.cuh"
#include "kernels/detail/scalar_functions.hpp"

namespace rheo::inline v0::cuda {

namespace {

constexpr int threads = 256;

__device__ std::int64_t element() { return static_cast<std::int64_t>(blockIdx.x) * threads + threadIdx.x; }

__global__ void __launch_bounds__(threads) normal(initialise_normal_arguments<> a, random_stream numbers)
{
    std::int64_t const i = element();
    if (i < a.count) {
        auto const word = 2 * static_cast<std::uint64_t>(a.first + i);
        double const value = rheo::detail::normal_of(random_word(numbers, word), random_word(numbers, word + 1));
        a.values[i] = static_cast<float>(a.mean + a.deviation * value);
    }
}

__global__ void __launch_bounds__(threads) constant(initialise_constant_arguments<> a)
{
    std::int64_t const i = element();
    if (i < a.count) {
        a.values[i] = static_cast<float>(a.value);
    }
}

}  // namespace

void initialise_normal(stream queue, initialise_normal_arguments<> const& a)
{
    launch(queue, {.grid = blocks_for(a.count, threads), .block = threads}, normal, a, stream_of(initial_values_key(a.seed, a.tensor)));
}

void initialise_constant(stream queue, initialise_constant_arguments<> const& a)
{
    launch(queue, {.grid = blocks_for(a.count, threads), .block = threads}, constant, a);
}

}  // namespace rheo::inline v0::cuda
