// SPDX-License-Identifier: Apache-2.0
#include "kernels/embedding/embedding.hpp"

#include "kernels/cuda/exact.cuh"
#include "kernels/cuda/policy.hpp"
#include "kernels/dropout/dropout.cuh"

namespace rheo::inline v0::cuda {

namespace {

template <class T, bool Whole>
__global__ void __launch_bounds__(256) forward(embedding_forward_arguments<policy_storing<T>> a, shard_range there, drop_rule rule)
{
    row_place place{a.batch * a.length, a.width};
    std::int64_t const token = (place.width > 0 ? a.tokens[place.row] : there.begin) - there.begin;
    if (token < 0 || token >= there.count()) {
        place.width = 0;  // another shard's
    }
    chunk<T> x[items_per_thread];
    chunk<T> position[items_per_thread];
    load_striped<Whole>(x, a.token_table + token * a.width, place);
    if (a.position_table != nullptr) {
        load_striped<Whole>(position, a.position_table + (a.first + place.row % a.length) * a.width, place);
    }
    drop_mask<T> const mask{rule, place};
    for (int k = 0; k < items_per_thread; ++k) {
        float sum[chunk_size<T>];
        for (int e = 0; e < chunk_size<T>; ++e) {
            sum[e] = x[k].at(e);
            if (a.position_table != nullptr) {
                sum[e] += position[k].at(e);
            }
            sum[e] *= mask.factor(k, e);
        }
        store<Whole>(a.output + place.first, place.width, place.chunk(k), packed<T>(sum));
    }
}

constexpr int segment_threads = 128;
constexpr int rows_in_flight = 8;

/// The sum of a segment's rows in their order, one contribution to a row of the table; a thread has one chunk of columns. `row_at(i)` is the i-th row.
template <bool Whole, class T, class RowAt, dtype Accumulate>
__device__ void contribute_segment(std::int64_t count, RowAt row_at, T const* gradient, std::int64_t width, drop_rule const& rule,
                                   gradient_sum_of<Accumulate> const& target, std::int64_t table_row)
{
    std::int64_t const at = static_cast<std::int64_t>(blockIdx.y) * segment_threads + threadIdx.x;
    auto const numbers = rule.numbers();
    float sums[chunk_size<T>] = {};
    for (std::int64_t i = 0; i < count; i += rows_in_flight) {
        chunk<T> some[rows_in_flight];
        for (int k = 0; k < rows_in_flight; ++k) {
            some[k] = load<Whole>(gradient + (i + k < count ? row_at(i + k) : 0) * width, i + k < count ? width : 0, at);
        }
        std::uint64_t dropped = 0;  // drawn first, as in drop_mask, so that the loop below is short
        for (int n = 0; rule.threshold != 0 && n < rows_in_flight * chunk_size<T> && i + n / chunk_size<T> < count; ++n) {
            std::int64_t const element = rule.rows(row_at(i + n / chunk_size<T>)) * width + at * chunk_size<T> + n % chunk_size<T>;
            dropped |= static_cast<std::uint64_t>(random_word(numbers, static_cast<std::uint64_t>(element)) < rule.threshold) << n;
        }
        for (int k = 0; k < rows_in_flight; ++k) {  // beyond the last row zeros are added, which changes no sum that began with zero
            for (int e = 0; e < chunk_size<T>; ++e) {
                float const kept = rule.threshold != 0 ? rule.scale : 1.0F;
                sums[e] += some[k].at(e) * ((dropped >> (k * chunk_size<T> + e) & 1U) != 0 ? 0.0F : kept);
            }
        }
    }
    exact_adder adder{at_row(target, table_row)};
    for (int e = 0; e < chunk_size<T>; ++e) {
        std::int64_t const column = at * chunk_size<T> + e;
        if (column < width) {
            adder.add(table_row * width + column, sums[e]);
        }
    }
    adder.merge();
}

template <class T, class Sum, bool Whole>
__global__ void __launch_bounds__(segment_threads)
    backward_tokens(token_order_on_device order, embedding_backward_weight_arguments<policy_of<T, Sum>> a, shard_range there, drop_rule rule)
{
    std::int64_t const first = order.first[blockIdx.x];
    std::int64_t const count = order.first[blockIdx.x + 1] - first;
    std::int64_t const token = order.tokens[blockIdx.x];
    if (count == 0 || token < there.begin || token >= there.end) {
        return;
    }
    contribute_segment<Whole>(
        count, [&](std::int64_t i) { return static_cast<std::int64_t>(order.rows[first + i]); }, a.output_gradient, a.width, rule, a.token_gradient,
        token - there.begin);
}

template <class T, class Sum, bool Whole>
__global__ void __launch_bounds__(segment_threads)
    backward_positions(embedding_backward_weight_arguments<policy_of<T, Sum>> a, std::int64_t begin, drop_rule rule)
{
    std::int64_t const position = begin + blockIdx.x;
    contribute_segment<Whole>(
        a.batch, [&](std::int64_t b) { return b * a.length + position; }, a.output_gradient, a.width, rule, a.position_gradient, a.first + position);
}

}  // namespace

template <dtype_policy Policy>
void embedding_forward(stream queue, embedding_forward_arguments<Policy> const& a)
{
    using T = storage_t<Policy>;
    auto const there = tokens_there(a);
    choose(whole_chunks<T>(a.width, a.token_table, a.position_table, a.output),
           [&](auto whole) { launch(queue, shape_of_tiles<T>(a.batch * a.length, a.width), forward<T, whole()>, a, there, rule_of(a.drop)); });
}

template <dtype_policy Policy>
void embedding_backward_weight(stream queue, token_order_on_device const& order, embedding_backward_weight_arguments<Policy> const& a)
{
    using T = storage_t<Policy>;
    auto const rule = rule_of(a.drop);
    unsigned const tiles = blocks_for(chunks_in<T>(a.width), segment_threads);
    choose(whole_chunks<T>(a.width, a.output_gradient), [&](auto whole) {
        if (a.token_gradient.sums != nullptr) {
            launch(queue, {.grid = {blocks_for(order.segments, 1), tiles}, .block = segment_threads}, backward_tokens<T, accumulate_t<Policy>, whole()>, order,
                   a, tokens_there(a), rule);
        }
        if (auto const positions = positions_there(a); a.position_gradient.sums != nullptr && positions.count() > 0) {
            launch(queue, {.grid = {blocks_for(positions.count(), 1), tiles}, .block = segment_threads}, backward_positions<T, accumulate_t<Policy>, whole()>,
                   a, positions.begin, rule);
        }
    });
}

template void embedding_forward(stream, embedding_forward_arguments<fp32> const&);
template void embedding_forward(stream, embedding_forward_arguments<bf16> const&);
template void embedding_backward_weight(stream, token_order_on_device const&, embedding_backward_weight_arguments<fp32> const&);
template void embedding_backward_weight(stream, token_order_on_device const&, embedding_backward_weight_arguments<bf16> const&);
template void embedding_backward_weight(stream, token_order_on_device const&, embedding_backward_weight_arguments<fp32_i32> const&);
template void embedding_backward_weight(stream, token_order_on_device const&, embedding_backward_weight_arguments<bf16_i32> const&);

}  // namespace rheo::inline v0::cuda
