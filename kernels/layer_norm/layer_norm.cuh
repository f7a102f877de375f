#pragma once
// SPDX-License-Identifier: Apache-2.0

// The layer norm of a row that is in registers: alone, and after the residual sum. The variance is that of the differences from
// the mean, in a second sum over the same registers.

#include "kernels/cuda/rows.cuh"

namespace rheo::inline v0::cuda {

/// Values that a row's sums need room for.
inline constexpr int layer_norm_sums = 2;

/// Stores the norm of row x, its mean and 1 over its deviation. `a` has width, epsilon, gamma, beta, output, mean, rstd, as the contracts name them.
template <bool Whole, class T, class Arguments>
__device__ void layer_norm_of_kept(chunk<T> const (&x)[kept_chunks], row_place const& place, Arguments const& a)
{
    auto* const room = shared_memory<float>();
    float sum[1] = {};
    for (auto const& some : x) {
        for (int e = 0; e < chunk_size<T>; ++e) {
            sum[0] += some.at(e);
        }
    }
    block_join(sum, 0.0F, room);
    float const mean = sum[0] / static_cast<float>(a.width);
    float squares[1] = {};
    for (int k = 0; k < kept_chunks; ++k) {
        for (int e = 0; e < chunk_size<T>; ++e) {
            float const difference = place.holds<Whole, T>(k, e) ? x[k].at(e) - mean : 0.0F;
            squares[0] = fmaf(difference, difference, squares[0]);
        }
    }
    block_join(squares, 0.0F, room + block_room<1>);
    float const rstd = 1.0F / sqrtf(squares[0] / static_cast<float>(a.width) + static_cast<float>(a.epsilon));
    for (int k = 0; k < kept_chunks; ++k) {
        auto const gamma = load<Whole>(a.gamma, place.width, place.chunk(k));
        auto const beta = load<Whole>(a.beta, place.width, place.chunk(k));
        float y[chunk_size<T>];
        for (int e = 0; e < chunk_size<T>; ++e) {
            y[e] = fmaf((x[k].at(e) - mean) * rstd, gamma.at(e), beta.at(e));
        }
        store<Whole>(a.output + place.first, place.width, place.chunk(k), packed<T>(y));
    }
    if (place.speaks()) {
        a.mean[place.row] = mean;
        a.rstd[place.row] = rstd;
    }
}

/// Turns row x into its gradient. `a` has width, gamma, mean, rstd, output_gradient, bypass_gradient.
template <bool Whole, class T, class Arguments>
__device__ void layer_norm_gradient_of_kept(chunk<T> (&x)[kept_chunks], row_place const& place, Arguments const& a)
{
    chunk<T> dy[kept_chunks];
    load_kept<Whole>(dy, a.output_gradient + place.first, place);
    float const mean = place.width > 0 ? a.mean[place.row] : 0;
    float const rstd = place.width > 0 ? a.rstd[place.row] : 0;
    float sums[2] = {};  // gamma dy, gamma dy x^; beyond the row dy is zero
    for (int k = 0; k < kept_chunks; ++k) {
        auto const gamma = load<Whole>(a.gamma, place.width, place.chunk(k));
        for (int e = 0; e < chunk_size<T>; ++e) {
            float const g = gamma.at(e) * dy[k].at(e);
            sums[0] += g;
            sums[1] = fmaf(g, (x[k].at(e) - mean) * rstd, sums[1]);
        }
    }
    block_join(sums, 0.0F, shared_memory<float>());
    float const mean_g = sums[0] / static_cast<float>(a.width);
    float const projected = sums[1] / static_cast<float>(a.width);
    for (int k = 0; k < kept_chunks; ++k) {
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

}  // namespace rheo::inline v0::cuda
