// SPDX-License-Identifier: Apache-2.0
#include "kernels/exact_rows/exact_rows.hpp"

#include <bit>
#include <cstddef>

#include "kernels/cuda/rows.cuh"
#include "kernels/exact/exact_panel.hpp"

namespace rheo::inline v0::cuda {

namespace {

/// As many sums as a chunk of T has elements.
template <class T>
struct sum_chunk {
    std::int32_t at[chunk_size<T>];
};

struct alignas(16) [[gnu::may_alias]] four_sums {
    std::int32_t at[4];
};

/// Beyond the row they are zero.
template <bool Whole, class T>
__device__ sum_chunk<T> load_sums(std::int32_t const* row, row_place const& place, int k)
{
    sum_chunk<T> result{};
    std::int64_t const first = place.chunk(k) * chunk_size<T>;
    if constexpr (Whole) {
        for (int part = 0; part < chunk_size<T> / 4 && first < place.width; ++part) {
            auto const four = *reinterpret_cast<four_sums const*>(row + first + part * 4);
            for (int e = 0; e < 4; ++e) {
                result.at[part * 4 + e] = four.at[e];
            }
        }
    } else {
        for (int e = 0; e < chunk_size<T>; ++e) {
            result.at[e] = first + e < place.width ? row[first + e] : 0;
        }
    }
    return result;
}

template <bool Whole, class T>
__device__ void store_sums(std::int32_t* row, row_place const& place, int k, sum_chunk<T> const& sums)
{
    std::int64_t const first = place.chunk(k) * chunk_size<T>;
    if constexpr (Whole) {
        for (int part = 0; part < chunk_size<T> / 4 && first < place.width; ++part) {
            auto const word = [&](int e) { return static_cast<unsigned>(sums.at[part * 4 + e]); };
            // spelled out, because the compiler turns an assignment into four stores
            __stwb(reinterpret_cast<uint4*>(row + first + part * 4), uint4{word(0), word(1), word(2), word(3)});
        }
    } else {
        for (int e = 0; e < chunk_size<T>; ++e) {
            if (first + e < place.width) {
                row[first + e] = sums.at[e];
            }
        }
    }
}

/// Sizes are not negative, so their bits are in their order; infinite is the largest.
__device__ inline unsigned* size_of_row(row_sum_state* state) { return reinterpret_cast<unsigned*>(state) + 1; }
static_assert(sizeof(row_sum_state) == 8 && offsetof(row_sum_state, max_abs) == 4);

/// What enters the sums: whole rows, or some columns of them.
template <class T>
struct row_panel {
    std::int64_t rows;
    std::int64_t columns;
    T const* gradient;                   // [rows, columns]
    gradient_sum_of<dtype::i32> target;  // [rows, columns] of [rows, width]
};

template <class T, bool Whole>
__global__ void __launch_bounds__(256) accumulate(row_panel<T> a)
{
    row_place const place{a.rows, a.columns};
    auto* const row = a.target.sums + place.row * a.target.width;
    chunk<T> g[items_per_thread];
    sum_chunk<T> sums[items_per_thread];
    load_striped<Whole>(g, a.gradient + place.first, place);
    for (int k = 0; k < items_per_thread; ++k) {
        sums[k] = load_sums<Whole, T>(row, place, k);
    }
    int const scale_log2 = place.width > 0 ? a.target.states[place.row].scale_log2 : 0;
    auto const limit = std::bit_cast<std::uint32_t>(row_overflow_threshold(scale_log2, a.target.contributions));
    double const scale = rheo::detail::power_of_two(scale_log2);
    std::uint32_t largest = 0;
    for (int k = 0; k < items_per_thread; ++k) {
        for (int e = 0; e < chunk_size<T>; ++e) {
            float const value = g[k].at(e);  // beyond the row: zero, which says nothing
            auto const bits = std::bit_cast<std::uint32_t>(value) & 0x7fffffffU;
            auto const size = bits < 0x7f800000U ? bits : 0x7f800000U;
            largest = largest < size ? size : largest;
            if (size < limit) {
                sums[k].at[e] += static_cast<std::int32_t>(rheo::detail::nearest_integer(static_cast<double>(value) * scale));
            }
        }
        store_sums<Whole, T>(row, place, k, sums[k]);
    }
    largest = __reduce_max_sync(all_lanes, largest);  // a warp has one row
    if (place.width > 0 && threadIdx.x % warp_size == 0) {
        auto* const size = size_of_row(a.target.states + place.row);
        if (largest > __ldcg(size)) {
            atomicMax(size, largest);
        }
    }
}

template <bool Whole>
__global__ void __launch_bounds__(256) add(exact_rows_add_arguments a)
{
    row_place const place{a.rows, a.target.width};
    auto* const row = a.target.sums + place.first;
    for (int k = 0; k < items_per_thread; ++k) {
        auto const source = load_sums<Whole, float>(a.source + place.first, place, k);
        auto target = load_sums<Whole, float>(row, place, k);
        for (int e = 0; e < 4; ++e) {
            target.at[e] += source.at[e];
        }
        store_sums<Whole, float>(row, place, k, target);
    }
    if (place.is_first_thread() && blockIdx.y == 0 && a.source_states != nullptr) {
        auto const other = a.source_states[place.row].max_abs;
        auto& mine = a.target.states[place.row].max_abs;
        mine = mine < other ? other : mine;
    }
}

template <bool Whole>
__global__ void __launch_bounds__(256) convert(exact_rows_convert_arguments a)
{
    row_place const place{a.rows, a.source.width};
    int const scale_log2 = place.width > 0 ? a.source.states[place.row].scale_log2 : 0;
    for (int k = 0; k < items_per_thread; ++k) {
        auto const sums = load_sums<Whole, float>(a.source.sums + place.first, place, k);
        float values[4];
        for (int e = 0; e < 4; ++e) {
            values[e] = value_of(sums.at[e], scale_log2);
        }
        store<Whole>(a.gradient + place.first, place.width, place.chunk(k), packed<float>(values));
    }
}

__device__ std::int64_t own_row() { return static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; }

__global__ void __launch_bounds__(256) judge(exact_rows_judge_arguments a)
{
    auto const row = own_row();
    auto const state = row < a.rows ? a.states[row] : row_sum_state{};
    auto const size = std::bit_cast<std::uint32_t>(state.max_abs);
    bool const infinite = size >= 0x7f800000U;
    auto const largest = __reduce_max_sync(all_lanes, infinite ? 0U : size);
    unsigned const flags =
        (__any_sync(all_lanes, row < a.rows && overflowed(state, a.contributions)) != 0 ? 1U : 0U) | (__any_sync(all_lanes, infinite) != 0 ? 0x100U : 0U);
    if (threadIdx.x % warp_size == 0) {
        auto* const words = reinterpret_cast<unsigned*>(a.verdict);
        atomicMax(words + 1, largest);
        atomicOr(words + 2, flags);
    }
}

__global__ void __launch_bounds__(256) begin(exact_rows_begin_arguments a)
{
    auto const row = own_row();
    if (row < a.rows) {
        auto& state = a.states[row];
        state = {.scale_log2 = not_finite(state) ? state.scale_log2 : next_row_scale(state.max_abs, a.contributions, state.scale_log2), .max_abs = 0};
    }
}

launch_shape shape_of_states(std::int64_t rows) { return {.grid = blocks_for(rows, 256), .block = 256}; }

template <class T>
void accumulate_rows(stream queue, row_panel<T> const& a)
{
    choose(whole_chunks<T>(a.columns, a.gradient) && whole_chunks<float>(a.target.width, a.target.sums),
           [&](auto whole) { launch(queue, shape_of_tiles<T>(a.rows, a.columns), accumulate<T, whole()>, a); });
}

}  // namespace

void exact_rows_accumulate(stream queue, exact_rows_accumulate_arguments<float> const& a)
{
    accumulate_rows<float>(queue, {.rows = a.rows, .columns = a.target.width, .gradient = a.gradient, .target = a.target});
}

void exact_rows_accumulate(stream queue, exact_rows_accumulate_arguments<bfloat16> const& a)
{
    accumulate_rows<bfloat16>(queue, {.rows = a.rows, .columns = a.target.width, .gradient = a.gradient, .target = a.target});
}

void exact_accumulate_panel(stream queue, exact_panel_arguments<dtype::i32> const& a)
{
    rheo::detail::expect_panel(a);
    accumulate_rows<float>(queue, {.rows = a.rows, .columns = a.columns, .gradient = a.gradient, .target = a.target});
}

void exact_rows_add(stream queue, exact_rows_add_arguments const& a)
{
    auto const width = a.target.width;
    choose(whole_chunks<float>(width, a.source, a.target.sums), [&](auto whole) { launch(queue, shape_of_tiles<float>(a.rows, width), add<whole()>, a); });
}

void exact_rows_convert(stream queue, exact_rows_convert_arguments const& a)
{
    auto const width = a.source.width;
    choose(whole_chunks<float>(width, a.source.sums, a.gradient),
           [&](auto whole) { launch(queue, shape_of_tiles<float>(a.rows, width), convert<whole()>, a); });
}

void exact_rows_judge(stream queue, exact_rows_judge_arguments const& a) { launch(queue, shape_of_states(a.rows), judge, a); }

void exact_rows_begin(stream queue, exact_rows_begin_arguments const& a) { launch(queue, shape_of_states(a.rows), begin, a); }

}  // namespace rheo::inline v0::cuda
