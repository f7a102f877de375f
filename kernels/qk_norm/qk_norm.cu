// SPDX-License-Identifier: Apache-2.0
#include "kernels/qk_norm/qk_norm.hpp"

#include <algorithm>
#include <bit>

#include "kernels/cuda/policy.hpp"
#include "kernels/rms_norm/rms_norm.cuh"

namespace rheo::inline v0::cuda {

namespace {

// Rows and heads of q, k and v lie one after the other, each a row of one head's width. As many lanes of a warp as that has chunks, a power of two, have
// one of them: heads are narrow, and a warp has several. What a lane adds, and the tree over the lanes, follow from the width alone.

constexpr unsigned threads_of_block = 256;

template <class T>
unsigned lanes_of_head(std::int64_t head_width)
{
    return std::bit_ceil(static_cast<unsigned>(std::clamp<std::int64_t>(chunks_in<T>(head_width), 1, warp_size)));
}

template <class T>
launch_shape shape_of_heads(std::int64_t rows, std::int64_t all_heads, std::int64_t head_width)
{
    return {.grid = blocks_for(rows * all_heads, threads_of_block / lanes_of_head<T>(head_width)), .block = threads_of_block};
}

/// One head of one row; those beyond the last are empty, so that their lanes take part in everything.
struct head_place {
    std::int64_t row;
    std::int64_t head;
    std::int64_t first;  ///< its first element
    std::int64_t width;  ///< 0 beyond the last
    unsigned lane;
    unsigned lanes;

    template <class Arguments>
    __device__ head_place(Arguments const& a, unsigned lanes_of_it) : lane{threadIdx.x % lanes_of_it}, lanes{lanes_of_it}
    {
        std::int64_t const all = a.heads + 2 * a.kv_heads;
        std::int64_t const number = static_cast<std::int64_t>(blockIdx.x) * (blockDim.x / lanes) + threadIdx.x / lanes;
        row = number / all;
        head = number % all;
        first = number * a.head_width;
        width = row < a.rows ? a.head_width : 0;
    }

    template <class Arguments>
    __device__ bool is_normed(Arguments const& a) const
    {
        return head < a.heads + a.kv_heads;
    }
    template <class Arguments>
    __device__ auto gamma(Arguments const& a) const
    {
        return head < a.heads ? a.query_gamma : a.key_gamma;
    }
    __device__ float sum(float value) const
    {
        for (unsigned mask = 1; mask < lanes; mask *= 2) {
            value += __shfl_xor_sync(all_lanes, value, static_cast<int>(mask));
        }
        return value;
    }
};

template <class T, bool Whole>
__global__ void __launch_bounds__(threads_of_block) forward(qk_norm_forward_arguments<policy_storing<T>> a, unsigned lanes)
{
    head_place const place{a, lanes};
    T const* const input = a.input + place.first;
    float squares = 0;
    for (std::int64_t k = place.lane; k * chunk_size<T> < place.width; k += lanes) {
        auto const x = load<Whole>(input, place.width, k);
        for (int e = 0; e < chunk_size<T>; ++e) {
            squares = fmaf(x.at(e), x.at(e), squares);
        }
    }
    float const rstd = 1.0F / sqrtf(place.sum(squares) / static_cast<float>(a.head_width) + static_cast<float>(a.epsilon));
    for (std::int64_t k = place.lane; k * chunk_size<T> < place.width; k += lanes) {
        auto x = load<Whole>(input, place.width, k);
        if (place.is_normed(a)) {
            auto const gamma = load<Whole>(place.gamma(a), place.width, k);
            float y[chunk_size<T>];
            for (int e = 0; e < chunk_size<T>; ++e) {
                y[e] = x.at(e) * rstd * gamma.at(e);
            }
            x = packed<T>(y);
        }
        store<Whole>(a.output + place.first, place.width, k, x);
    }
    if (place.width > 0 && place.lane == 0 && place.is_normed(a)) {
        a.rstd[place.head * a.rows + place.row] = rstd;
    }
}

template <class T, bool Whole>
__global__ void __launch_bounds__(threads_of_block) backward_input(qk_norm_backward_input_arguments<policy_storing<T>> a, unsigned lanes)
{
    head_place const place{a, lanes};
    T const* const input = a.input + place.first;
    T const* const output_gradient = a.output_gradient + place.first;
    float const rstd = place.width > 0 && place.is_normed(a) ? a.rstd[place.head * a.rows + place.row] : 0;
    float projected = 0;  // gamma dy x^
    for (std::int64_t k = place.lane; k * chunk_size<T> < place.width && place.is_normed(a); k += lanes) {
        auto const x = load<Whole>(input, place.width, k);
        auto const dy = load<Whole>(output_gradient, place.width, k);
        auto const gamma = load<Whole>(place.gamma(a), place.width, k);
        for (int e = 0; e < chunk_size<T>; ++e) {
            projected = fmaf(gamma.at(e) * dy.at(e), x.at(e) * rstd, projected);
        }
    }
    float const mean = place.sum(projected) / static_cast<float>(a.head_width);
    for (std::int64_t k = place.lane; k * chunk_size<T> < place.width; k += lanes) {
        auto dy = load<Whole>(output_gradient, place.width, k);
        if (place.is_normed(a)) {
            auto const x = load<Whole>(input, place.width, k);
            auto const gamma = load<Whole>(place.gamma(a), place.width, k);
            float dx[chunk_size<T>];
            for (int e = 0; e < chunk_size<T>; ++e) {
                dx[e] = (gamma.at(e) * dy.at(e) - x.at(e) * rstd * mean) * rstd;
            }
            dy = packed<T>(dx);
        }
        store<Whole>(a.input_gradient + place.first, place.width, k, dy);
    }
}

/// The heads of q, or of k: `count` of them from `first` on.
struct head_range {
    std::int64_t first;
    std::int64_t count;
};

template <class T, class Sum, bool Whole>
__global__ void __launch_bounds__(column_threads) backward_weight(qk_norm_backward_weight_arguments<policy_of<T, Sum>> a, head_range heads, workspace scratch)
{
    auto const& gamma = heads.first == 0 ? a.query_gradient : a.key_gradient;
    rms_norm_weight_sums<T>(a.head_width, gamma, scratch, place_in_grid(), [&](std::int64_t number, std::int64_t chunk) {
        std::int64_t const row = number / heads.count;
        std::int64_t const head = heads.first + number % heads.count;
        std::int64_t const width = row < a.rows ? a.head_width : 0;
        std::int64_t const first = (row * (a.heads + 2 * a.kv_heads) + head) * a.head_width;
        return rms_norm_weight_item<T>{.x = load<Whole>(a.input + first, width, chunk),
                                       .dy = load<Whole>(a.output_gradient + first, width, chunk),
                                       .rstd = width > 0 ? a.rstd[head * a.rows + row] : 0};
    });
}

}  // namespace

template <dtype_policy Policy>
void qk_norm_forward(stream queue, qk_norm_forward_arguments<Policy> const& a)
{
    using T = storage_t<Policy>;
    expects(a.input != a.output, "a norm of queries and keys does not write over what its backward reads");
    auto const shape = shape_of_heads<T>(a.rows, a.heads + 2 * a.kv_heads, a.head_width);
    choose(whole_chunks<T>(a.head_width, a.input, a.query_gamma, a.key_gamma, a.output),
           [&](auto whole) { launch(queue, shape, forward<T, whole()>, a, lanes_of_head<T>(a.head_width)); });
}

template <dtype_policy Policy>
void qk_norm_backward_input(stream queue, qk_norm_backward_input_arguments<Policy> const& a)
{
    using T = storage_t<Policy>;
    auto const shape = shape_of_heads<T>(a.rows, a.heads + 2 * a.kv_heads, a.head_width);
    choose(whole_chunks<T>(a.head_width, a.input, a.query_gamma, a.key_gamma, a.output_gradient, a.input_gradient),
           [&](auto whole) { launch(queue, shape, backward_input<T, whole()>, a, lanes_of_head<T>(a.head_width)); });
}

template <dtype_policy Policy>
void qk_norm_backward_weight(stream queue, workspace scratch, qk_norm_backward_weight_arguments<Policy> const& a)
{
    using T = storage_t<Policy>;
    auto const add = [&](head_range heads, gradient_sum<Policy> const& target) {
        if (target.sums == nullptr) {
            return;
        }
        auto const shape = shape_of_columns<T>(a.rows * heads.count, a.head_width, 1, scratch);
        choose(whole_chunks<T>(a.head_width, a.input, a.output_gradient),
               [&](auto whole) { launch(queue, shape, backward_weight<T, accumulate_t<Policy>, whole()>, a, heads, scratch); });
    };
    add({0, a.heads}, a.query_gradient);
    add({a.heads, a.kv_heads}, a.key_gradient);
}

std::int64_t qk_norm_backward_weight_workspace_bytes(std::int64_t rows, std::int64_t heads, std::int64_t head_width)
{
    return column_workspace_bytes(rows * heads, head_width, 1);
}

template void qk_norm_forward(stream, qk_norm_forward_arguments<fp32> const&);
template void qk_norm_forward(stream, qk_norm_forward_arguments<bf16> const&);
template void qk_norm_backward_input(stream, qk_norm_backward_input_arguments<fp32> const&);
template void qk_norm_backward_input(stream, qk_norm_backward_input_arguments<bf16> const&);
template void qk_norm_backward_weight(stream, workspace, qk_norm_backward_weight_arguments<fp32> const&);
template void qk_norm_backward_weight(stream, workspace, qk_norm_backward_weight_arguments<bf16> const&);
template void qk_norm_backward_weight(stream, workspace, qk_norm_backward_weight_arguments<fp32_i32> const&);
template void qk_norm_backward_weight(stream, workspace, qk_norm_backward_weight_arguments<bf16_i32> const&);

}  // namespace rheo::inline v0::cuda
