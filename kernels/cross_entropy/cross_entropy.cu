// SPDX-License-Identifier: Apache-2.0
#include "kernels/cross_entropy/cross_entropy.hpp"

#include <cfloat>

#include "kernels/cuda/approximate.cuh"
#include "kernels/cuda/policy.hpp"
#include "kernels/cuda/rows.cuh"
#include "rheo/tensor/exact_sum.hpp"

namespace rheo::inline v0::cuda {

namespace {

constexpr int threads = 512;
constexpr int in_flight = 4;

/// Blocks of the fused kernel on a multiprocessor: floats in whole chunks need few registers, so three fit; 0: the compiler chooses.
template <class T, bool Whole>
inline constexpr int blocks_at_once = Whole && sizeof(T) == 4 ? 3 : 0;

/// e^x: exactly 1 at 0; below, the error of the product counts |x| times, where e^x is as much smaller.
__device__ float exponential(float x) { return power_of_two(1.44269504F * x); }

/// A sum of exponentials that begins again with every larger one (Milakov, Gimelshein: "Online normalizer calculation for softmax", 2018).
struct running_sum {
    float largest = -FLT_MAX;
    float sum = 0;  ///< of exp(x - largest)
};

struct add_running_sums {
    __device__ running_sum operator()(running_sum const& a, running_sum const& b) const
    {
        float const largest = fmaxf(a.largest, b.largest);
        return {.largest = largest, .sum = a.sum * exponential(a.largest - largest) + b.sum * exponential(b.largest - largest)};
    }
};

template <bool Whole, class T>
__device__ running_sum sum_of_row(T const* logits, std::int64_t vocabulary)
{
    running_sum mine;
    for (std::int64_t first = threadIdx.x; first < chunks_in<T>(vocabulary); first += threads * in_flight) {
        chunk<T> some[in_flight];
        for (int k = 0; k < in_flight; ++k) {
            some[k] = load<Whole>(logits, vocabulary, first + k * threads);
        }
        for (int k = 0; k < in_flight; ++k) {
            std::int64_t const left = vocabulary - (first + k * threads) * chunk_size<T>;
            if (left <= 0) {
                break;
            }
            float largest = mine.largest;
            for (int e = 0; e < chunk_size<T>; ++e) {
                largest = Whole || e < left ? fmaxf(largest, some[k].at(e)) : largest;  // NaN is left out
            }
            float sum = mine.sum * exponential(mine.largest - largest);
            for (int e = 0; e < chunk_size<T>; ++e) {
                sum += Whole || e < left ? exponential(some[k].at(e) - largest) : 0.0F;
            }
            mine = {.largest = largest, .sum = sum};
        }
    }
    running_sum row[] = {mine};
    block_reduce(row, shared_memory<running_sum>(), add_running_sums{});
    return row[0];
}

/// Writes softmax - onehot, or zeros in a row that is ignored. `here`: where the target is among these logits, below zero: nowhere.
template <bool Whole, class T>
__device__ void gradient_of_row(T const* logits, std::int64_t vocabulary, std::int32_t target, std::int64_t here, float log_sum, T* gradient)
{
    for (std::int64_t first = threadIdx.x; first < chunks_in<T>(vocabulary); first += threads * in_flight) {
        chunk<T> some[in_flight];
        for (int k = 0; k < in_flight; ++k) {
            some[k] = load<Whole>(logits, vocabulary, first + k * threads);
        }
        for (int k = 0; k < in_flight; ++k) {
            std::int64_t const target_here = here - (first + k * threads) * chunk_size<T>;
            int const hot = target_here >= 0 && target_here < chunk_size<T> ? static_cast<int>(target_here) : -1;
            float result[chunk_size<T>];
            for (int e = 0; e < chunk_size<T>; ++e) {
                float const p = exponential(some[k].at(e) - log_sum);
                result[e] = e == hot ? p - 1.0F : p;
            }
            store<Whole>(gradient, vocabulary, first + k * threads, target == ignored_target ? chunk<T>{} : packed<T>(result));
        }
    }
}

/// As add_loss, from many threads: integers, so in any order.
__device__ void add_loss_of_row(loss_sum* sum, double loss)
{
    static_assert(sizeof(long long) == sizeof(std::int64_t));
    atomicAdd(reinterpret_cast<unsigned long long*>(&sum->targets), 1ULL);
    if (!(fabs(loss) < largest_row_loss)) {
        sum->not_finite = true;  // all that write it write the same
        return;
    }
    atomicAdd(reinterpret_cast<unsigned long long*>(&sum->fixed), static_cast<unsigned long long>(rheo::detail::nearest_integer(loss * loss_units_per_nat)));
}

/// The row's log sum exp, its loss added up.
template <bool Whole, class T>
__device__ double forward_of_row(T const* logits, std::int64_t vocabulary, std::int32_t target, loss_sum* loss)
{
    bool const writes = threadIdx.x == 0 && target != ignored_target;
    float const wanted = writes ? float(logits[target]) : 0.0F;  // before a gradient overwrites it
    auto const all = sum_of_row<Whole>(logits, vocabulary);
    double const log_sum = static_cast<double>(all.largest) + log(static_cast<double>(all.sum));
    if (writes) {
        add_loss_of_row(loss, log_sum - static_cast<double>(wanted));
    }
    return log_sum;
}

template <class T, bool Whole>
__global__ void __launch_bounds__(threads) forward(cross_entropy_forward_arguments<policy_storing<T>> a)
{
    std::int64_t const row = blockIdx.x;
    double const log_sum = forward_of_row<Whole>(a.logits + row * a.vocabulary, a.vocabulary, a.targets[row], a.loss);
    if (threadIdx.x == 0 && a.log_sum_exp != nullptr) {
        a.log_sum_exp[row] = static_cast<float>(log_sum);
    }
}

template <class T, bool Whole>
__global__ void __launch_bounds__(threads) backward(cross_entropy_backward_arguments<policy_storing<T>> a)
{
    std::int64_t const row = blockIdx.x;
    gradient_of_row<Whole>(a.logits + row * a.vocabulary, a.vocabulary, a.targets[row], a.targets[row], a.log_sum_exp[row],
                           a.logits_gradient + row * a.vocabulary);
}

template <class T, bool Whole>
__global__ void __launch_bounds__(threads, blocks_at_once<T, Whole>) fused(cross_entropy_fused_arguments<policy_storing<T>> a)
{
    std::int64_t const row = blockIdx.x;
    T* const logits = a.logits + row * a.vocabulary;
    double const log_sum = forward_of_row<Whole>(logits, a.vocabulary, a.targets[row], a.loss);
    gradient_of_row<Whole>(logits, a.vocabulary, a.targets[row], a.targets[row], static_cast<float>(log_sum), logits);
}

template <class T, bool Whole>
__global__ void __launch_bounds__(threads) statistics(cross_entropy_statistics_arguments<policy_storing<T>> a)
{
    std::int64_t const row = blockIdx.x;
    auto const all = sum_of_row<Whole>(a.logits + row * a.vocabulary, a.vocabulary);
    if (threadIdx.x == 0) {
        a.statistics[row] = {.sum = static_cast<double>(all.sum), .largest = all.largest};
    }
}

/// The log sum exp of a row of which each shard has a part; exp(0) is 1, so of one part it is that of the row.
__device__ double joined_log_sum(row_statistics const* row, std::int64_t shards, std::int64_t rows)
{
    float largest = row[0].largest;
    for (std::int64_t j = 1; j < shards; ++j) {
        largest = largest < row[j * rows].largest ? row[j * rows].largest : largest;
    }
    double sum = 0;
    for (std::int64_t j = 0; j < shards; ++j) {
        sum += row[j * rows].sum * exp(static_cast<double>(row[j * rows].largest) - static_cast<double>(largest));
    }
    return static_cast<double>(largest) + log(sum);
}

template <class T, bool Whole>
__global__ void __launch_bounds__(threads) finish(cross_entropy_finish_arguments<policy_storing<T>> a)
{
    std::int64_t const row = blockIdx.x;
    T const* const logits = a.logits + row * a.vocabulary;
    std::int64_t const here = target_in_shard(a.targets[row], a.first_token, a.vocabulary);
    bool const writes = threadIdx.x == 0 && here != ignored_target;
    float const wanted = writes ? float(logits[here]) : 0.0F;
    __syncthreads();  // it is read before a gradient overwrites it
    double const log_sum = joined_log_sum(a.statistics + row, a.shards, a.rows);
    if (writes) {
        add_loss_of_row(a.loss, log_sum - static_cast<double>(wanted));
    }
    if (threadIdx.x == 0 && a.log_sum_exp != nullptr) {
        a.log_sum_exp[row] = static_cast<float>(log_sum);
    }
    if (a.logits_gradient != nullptr) {
        gradient_of_row<Whole>(logits, a.vocabulary, a.targets[row], here, static_cast<float>(log_sum), a.logits_gradient + row * a.vocabulary);
    }
}

launch_shape shape_of(std::int64_t rows)
{
    return {.grid = blocks_for(rows, 1), .block = threads, .shared_bytes = sizeof(running_sum) * block_temp_storage<1>};
}

}  // namespace

template <dtype_policy Policy>
void cross_entropy_forward(stream queue, cross_entropy_forward_arguments<Policy> const& a)
{
    using T = storage_t<Policy>;
    choose(whole_chunks<T>(a.vocabulary, a.logits), [&](auto whole) { launch(queue, shape_of(a.rows), forward<T, whole()>, a); });
}

template <dtype_policy Policy>
void cross_entropy_backward(stream queue, cross_entropy_backward_arguments<Policy> const& a)
{
    using T = storage_t<Policy>;
    choose(whole_chunks<T>(a.vocabulary, a.logits, a.logits_gradient), [&](auto whole) { launch(queue, shape_of(a.rows), backward<T, whole()>, a); });
}

template <dtype_policy Policy>
void cross_entropy_fused(stream queue, cross_entropy_fused_arguments<Policy> const& a)
{
    using T = storage_t<Policy>;
    choose(whole_chunks<T>(a.vocabulary, a.logits), [&](auto whole) { launch(queue, shape_of(a.rows), fused<T, whole()>, a); });
}

template <dtype_policy Policy>
void cross_entropy_statistics(stream queue, cross_entropy_statistics_arguments<Policy> const& a)
{
    using T = storage_t<Policy>;
    choose(whole_chunks<T>(a.vocabulary, a.logits), [&](auto whole) { launch(queue, shape_of(a.rows), statistics<T, whole()>, a); });
}

template <dtype_policy Policy>
void cross_entropy_finish(stream queue, cross_entropy_finish_arguments<Policy> const& a)
{
    using T = storage_t<Policy>;
    expects(a.shards >= 1, "a vocabulary has 1 shard or more");
    choose(whole_chunks<T>(a.vocabulary, a.logits, a.logits_gradient), [&](auto whole) { launch(queue, shape_of(a.rows), finish<T, whole()>, a); });
}

template void cross_entropy_forward(stream, cross_entropy_forward_arguments<fp32> const&);
template void cross_entropy_forward(stream, cross_entropy_forward_arguments<bf16> const&);
template void cross_entropy_backward(stream, cross_entropy_backward_arguments<fp32> const&);
template void cross_entropy_backward(stream, cross_entropy_backward_arguments<bf16> const&);
template void cross_entropy_fused(stream, cross_entropy_fused_arguments<fp32> const&);
template void cross_entropy_fused(stream, cross_entropy_fused_arguments<bf16> const&);
template void cross_entropy_statistics(stream, cross_entropy_statistics_arguments<fp32> const&);
template void cross_entropy_statistics(stream, cross_entropy_statistics_arguments<bf16> const&);
template void cross_entropy_finish(stream, cross_entropy_finish_arguments<fp32> const&);
template void cross_entropy_finish(stream, cross_entropy_finish_arguments<bf16> const&);

}  // namespace rheo::inline v0::cuda
