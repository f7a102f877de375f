#pragma once
// SPDX-License-Identifier: Apache-2.0

// The root-mean-square norm of a row that is in registers: alone, and after the residual sum.

#include "kernels/cuda/exact.cuh"
#include "kernels/cuda/policy.hpp"
#include "kernels/cuda/rows_and_columns.cuh"
#include "kernels/rms_norm/rms_norm.hpp"

namespace rheo::inline v0::cuda {

/// Stores the norm of row x, and 1 over its root mean square. `a` has width, epsilon, gamma, output, rstd, as the contracts name them.
template <bool Whole, class T, class Arguments>
__device__ void rms_norm_of_row(chunk<T> const (&x)[items_per_thread], row_place const& place, Arguments const& a)
{
    chunk<T> gamma[items_per_thread];
    load_striped<Whole>(gamma, a.gamma, place);
    float squares[1] = {};
    for (auto const& some : x) {
        for (int e = 0; e < chunk_size<T>; ++e) {
            squares[0] = fmaf(some.at(e), some.at(e), squares[0]);
        }
    }
    block_reduce(squares, shared_memory<float>());
    float const rstd = 1.0F / sqrtf(squares[0] / static_cast<float>(a.width) + static_cast<float>(a.epsilon));
    for (int k = 0; k < items_per_thread; ++k) {
        float y[chunk_size<T>];
        for (int e = 0; e < chunk_size<T>; ++e) {
            y[e] = x[k].at(e) * rstd * gamma[k].at(e);
        }
        store<Whole>(a.output + place.first, place.width, place.chunk(k), packed<T>(y));
    }
    if (place.is_first_thread()) {
        a.rstd[place.row] = rstd;
    }
}

/// Turns row x into its gradient. `a` has width, gamma, rstd, output_gradient, bypass_gradient.
template <bool Whole, class T, class Arguments>
__device__ void rms_norm_gradient_of_row(chunk<T> (&x)[items_per_thread], row_place const& place, Arguments const& a)
{
    chunk<T> dy[items_per_thread];
    load_striped<Whole>(dy, a.output_gradient + place.first, place);
    float const rstd = place.width > 0 ? a.rstd[place.row] : 0;
    float projected[1] = {};  // gamma dy x^
    for (int k = 0; k < items_per_thread; ++k) {
        auto const gamma = load<Whole>(a.gamma, place.width, place.chunk(k));
        for (int e = 0; e < chunk_size<T>; ++e) {
            projected[0] = fmaf(gamma.at(e) * dy[k].at(e), x[k].at(e) * rstd, projected[0]);
        }
    }
    block_reduce(projected, shared_memory<float>());
    float const mean = projected[0] / static_cast<float>(a.width);
    for (int k = 0; k < items_per_thread; ++k) {
        auto const gamma = load<Whole>(a.gamma, place.width, place.chunk(k));
        float dx[chunk_size<T>];
        for (int e = 0; e < chunk_size<T>; ++e) {
            dx[e] = (gamma.at(e) * dy[k].at(e) - x[k].at(e) * rstd * mean) * rstd;
        }
        add_bypass<Whole>(dx, a.bypass_gradient, place, k);
        x[k] = packed<T>(dx);
    }
}

template <class T>
struct rms_norm_weight_item {
    chunk<T> x;
    chunk<T> dy;
    float rstd;
};

/// The block's part of a weight's gradient. item(row, chunk) gives what a row has, zeros beyond the last.
template <class T, class Sum, class Item>
__device__ void rms_norm_weight_sums(std::int64_t width, Sum const& gamma, workspace scratch, column_place at, Item const& item)
{
    exact_adder adder{gamma};
    column_sums<1, T>(
        width, scratch, at, item,
        [&](rms_norm_weight_item<T> const& of, column_chunk_sums<1, T>& sums) {
            for (int e = 0; e < chunk_size<T>; ++e) {
                sums[0][e] = fmaf(of.dy.at(e), of.x.at(e) * of.rstd, sums[0][e]);
            }
        },
        [&](int, std::int64_t column, float sum) { adder.add(column, sum); }, [&] { adder.merge(); });
}

/// The same of the rows of a matrix.
template <bool Whole, class T, class Arguments>
__device__ void rms_norm_weight_gradient(Arguments const& a, workspace scratch, column_place at)
{
    rms_norm_weight_sums<T>(a.width, a.gamma_gradient, scratch, at, [&](std::int64_t row, std::int64_t chunk) {
        std::int64_t const width = row < a.rows ? a.width : 0;
        return rms_norm_weight_item<T>{.x = load<Whole>(a.input + row * a.width, width, chunk),
                                       .dy = load<Whole>(a.output_gradient + row * a.width, width, chunk),
                                       .rstd = width > 0 ? a.rstd[row] : 0};
    });
}

/// What the weight's gradient wants of the arguments of an input gradient, and where it goes.
template <class Arguments, class T, class Sum>
__device__ auto rms_norm_weight_part(Arguments const& a, T const* input, Sum const& gamma)
{
    return rms_norm_backward_weight_arguments<policy_storing<T>>{
        .rows = a.rows, .width = a.width, .input = input, .rstd = a.rstd, .output_gradient = a.output_gradient, .gamma_gradient = gamma};
}

}  // namespace rheo::inline v0::cuda
