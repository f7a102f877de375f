#pragma once
// SPDX-License-Identifier: Apache-2.0

// The layer norm of a row that is in registers: alone, and after the residual sum. The variance is that of the differences from
// the mean, in a second sum over the same registers.

#include "kernels/cuda/exact.cuh"
#include "kernels/cuda/policy.hpp"
#include "kernels/cuda/rows_and_columns.cuh"
#include "kernels/layer_norm/layer_norm.hpp"

namespace rheo::inline v0::cuda {

/// Values that the sums of a row need temporary storage for.
inline constexpr int layer_norm_sums = 2;

/// Stores the norm of row x, its mean and 1 over its deviation. `a` has width, epsilon, gamma, beta, output, mean, rstd, as the contracts name them.
template <bool Whole, class T, class Arguments>
__device__ void layer_norm_of_row(chunk<T> const (&x)[items_per_thread], row_place const& place, Arguments const& a)
{
    auto* const temp_storage = shared_memory<float>();
    float sum[1] = {};
    for (auto const& some : x) {
        for (int e = 0; e < chunk_size<T>; ++e) {
            sum[0] += some.at(e);
        }
    }
    block_reduce(sum, temp_storage);
    float const mean = sum[0] / static_cast<float>(a.width);
    float squares[1] = {};
    for (int k = 0; k < items_per_thread; ++k) {
        for (int e = 0; e < chunk_size<T>; ++e) {
            float const difference = place.holds<Whole, T>(k, e) ? x[k].at(e) - mean : 0.0F;
            squares[0] = fmaf(difference, difference, squares[0]);
        }
    }
    block_reduce(squares, temp_storage + block_temp_storage<1>);
    float const rstd = 1.0F / sqrtf(squares[0] / static_cast<float>(a.width) + static_cast<float>(a.epsilon));
    for (int k = 0; k < items_per_thread; ++k) {
        auto const gamma = load<Whole>(a.gamma, place.width, place.chunk(k));
        auto const beta = load<Whole>(a.beta, place.width, place.chunk(k));
        float y[chunk_size<T>];
        for (int e = 0; e < chunk_size<T>; ++e) {
            y[e] = fmaf((x[k].at(e) - mean) * rstd, gamma.at(e), beta.at(e));
        }
        store<Whole>(a.output + place.first, place.width, place.chunk(k), packed<T>(y));
    }
    if (place.is_first_thread()) {
        a.mean[place.row] = mean;
        a.rstd[place.row] = rstd;
    }
}

/// Turns row x into its gradient. `a` has width, gamma, mean, rstd, output_gradient, bypass_gradient.
template <bool Whole, class T, class Arguments>
__device__ void layer_norm_gradient_of_row(chunk<T> (&x)[items_per_thread], row_place const& place, Arguments const& a)
{
    chunk<T> dy[items_per_thread];
    load_striped<Whole>(dy, a.output_gradient + place.first, place);
    float const mean = place.width > 0 ? a.mean[place.row] : 0;
    float const rstd = place.width > 0 ? a.rstd[place.row] : 0;
    float sums[2] = {};  // gamma dy, gamma dy x^; beyond the row dy is zero
    for (int k = 0; k < items_per_thread; ++k) {
        auto const gamma = load<Whole>(a.gamma, place.width, place.chunk(k));
        for (int e = 0; e < chunk_size<T>; ++e) {
            float const g = gamma.at(e) * dy[k].at(e);
            sums[0] += g;
            sums[1] = fmaf(g, (x[k].at(e) - mean) * rstd, sums[1]);
        }
    }
    block_reduce(sums, shared_memory<float>());
    float const mean_g = sums[0] / static_cast<float>(a.width);
    float const projected = sums[1] / static_cast<float>(a.width);
    for (int k = 0; k < items_per_thread; ++k) {
        auto const gamma = load<Whole>(a.gamma, place.width, place.chunk(k));
        float dx[chunk_size<T>];
        for (int e = 0; e < chunk_size<T>; ++e) {
            float const normal = (x[k].at(e) - mean) * rstd;
            dx[e] = (gamma.at(e) * dy[k].at(e) - mean_g - normal * projected) * rstd;
        }
        add_bypass<Whole>(dx, a.bypass_gradient, place, k);
        x[k] = packed<T>(dx);
    }
}

template <class T>
struct layer_norm_weight_item {
    chunk<T> x;
    chunk<T> dy;
    float mean;
    float rstd;
};

/// The block's part of both weights' gradients.
template <bool Whole, class T, class Arguments>
__device__ void layer_norm_weight_gradients(Arguments const& a, workspace scratch, column_place at)
{
    exact_adder gamma{a.gamma_gradient};
    exact_adder beta{a.beta_gradient};
    column_sums<2, T>(
        a.width, scratch, at,
        [&](std::int64_t row, std::int64_t chunk) {
            std::int64_t const width = row < a.rows ? a.width : 0;
            return layer_norm_weight_item<T>{.x = load<Whole>(a.input + row * a.width, width, chunk),
                                             .dy = load<Whole>(a.output_gradient + row * a.width, width, chunk),
                                             .mean = width > 0 ? a.mean[row] : 0,
                                             .rstd = width > 0 ? a.rstd[row] : 0};
        },
        [&](layer_norm_weight_item<T> const& item, column_chunk_sums<2, T>& sums) {
            for (int e = 0; e < chunk_size<T>; ++e) {
                sums[0][e] = fmaf(item.dy.at(e), (item.x.at(e) - item.mean) * item.rstd, sums[0][e]);
                sums[1][e] += item.dy.at(e);
            }
        },
        [&](int value, std::int64_t column, float sum) { value == 0 ? gamma.add(column, sum) : beta.add(column, sum); },
        [&] {
            gamma.merge();
            beta.merge();
        });
}

/// What the weights' gradients want of the arguments of an input gradient, and where they go.
template <class Arguments, class T, class Sum>
__device__ auto layer_norm_weight_part(Arguments const& a, T const* input, Sum const& gamma, Sum const& beta)
{
    return layer_norm_backward_weight_arguments<policy_storing<T>>{.rows = a.rows,
                                                                   .width = a.width,
                                                                   .input = input,
                                                                   .mean = a.mean,
                                                                   .rstd = a.rstd,
                                                                   .output_gradient = a.output_gradient,
                                                                   .gamma_gradient = gamma,
                                                                   .beta_gradient = beta};
}

}  // namespace rheo::inline v0::cuda
