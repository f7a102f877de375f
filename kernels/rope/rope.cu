// SPDX-License-Identifier: Apache-2.0
#include "kernels/rope/rope.hpp"

#include <limits>

#include "kernels/cuda/policy.hpp"
#include "kernels/cuda/rows.cuh"

namespace rheo::inline v0::cuda {

namespace {

// A row is a run of pairs, those of all heads that are written one after the other; a thread turns four chunks of pairs. The products are not fused
// with the sum: so a turn has the bits of the definition.

/// The heads of a row that are written: in place the values stay.
template <class Arguments>
__host__ __device__ std::int64_t written_heads(Arguments const& a)
{
    return a.turned + (a.input == a.output ? 0 : a.kept);
}

/// Where the pairs begin that a thread turns.
struct pair_place {
    std::uint32_t head;
    std::uint32_t at;  ///< within the head's first half

    __device__ std::int64_t low(std::int64_t head_width) const { return head * head_width + at; }
};

template <class T>
__device__ void turn_chunks(chunk<T>& low, chunk<T>& high, float const* cosines, float const* sines, bool back)
{
    constexpr int floats = chunk_size<float>;
    float turned_low[chunk_size<T>];
    float turned_high[chunk_size<T>];
    for (int part = 0; part < chunk_size<T> / floats; ++part) {
        auto const cosine = load<true>(cosines, chunk_size<T>, part);
        auto const sine = load<true>(sines, chunk_size<T>, part);
        for (int i = 0; i < floats; ++i) {
            int const e = part * floats + i;
            float const s = back ? -sine.at(i) : sine.at(i);
            turned_low[e] = low.at(e) * cosine.at(i) - high.at(e) * s;
            turned_high[e] = high.at(e) * cosine.at(i) + low.at(e) * s;
        }
    }
    low = packed<T>(turned_low);
    high = packed<T>(turned_high);
}

template <class T, bool Whole>
__global__ void __launch_bounds__(256) turn(rope_arguments<policy_storing<T>> a)
{
    constexpr int size = chunk_size<T>;
    auto const half = static_cast<std::uint32_t>(a.head_width / 2);
    row_place const place{a.rows, written_heads(a) * half};
    std::int64_t const position = a.first + static_cast<std::uint32_t>(place.row) % static_cast<std::uint32_t>(a.length);
    float const* const cosines = a.table + position * a.head_width;
    std::int64_t const first = place.row * (a.turned + a.kept) * a.head_width;
    T const* const input = a.input + first;
    T* const output = a.output + first;
    auto const place_of = [&](std::int64_t pair) { return pair_place{static_cast<std::uint32_t>(pair) / half, static_cast<std::uint32_t>(pair) % half}; };
    if constexpr (Whole) {
        chunk<T> low[items_per_thread];
        chunk<T> high[items_per_thread];
        for (int k = 0; k < items_per_thread; ++k) {  // all in flight at once, before anything is written
            if (std::int64_t const pair = place.chunk(k) * size; pair < place.width) {
                auto const from = input + place_of(pair).low(a.head_width);
                low[k] = load<true>(from, size, 0);
                high[k] = load<true>(from + half, size, 0);
            }
        }
        for (int k = 0; k < items_per_thread; ++k) {
            if (std::int64_t const pair = place.chunk(k) * size; pair < place.width) {
                auto const here = place_of(pair);
                if (here.head < a.turned) {
                    turn_chunks(low[k], high[k], cosines + here.at, cosines + half + here.at, a.back);
                }
                auto const to = output + here.low(a.head_width);
                store<true>(to, size, 0, low[k]);
                store<true>(to + half, size, 0, high[k]);
            }
        }
    } else {
        for (int k = 0; k < items_per_thread; ++k) {
            std::int64_t const pair = place.chunk(k) * size;
            for (std::int64_t p = pair; p < pair + size && p < place.width; ++p) {
                auto const here = place_of(p);
                auto const low_at = here.low(a.head_width);
                T const low = input[low_at];
                T const high = input[low_at + half];
                float const cosine = cosines[here.at];
                float const sine = a.back ? -cosines[half + here.at] : cosines[half + here.at];
                bool const turns = here.head < a.turned;
                output[low_at] = turns ? static_cast<T>(float(low) * cosine - float(high) * sine) : low;
                output[low_at + half] = turns ? static_cast<T>(float(high) * cosine + float(low) * sine) : high;
            }
        }
    }
}

}  // namespace

template <dtype_policy Policy>
void rope(stream queue, rope_arguments<Policy> const& a)
{
    using T = storage_t<Policy>;
    expects(a.head_width % 2 == 0, "the width of a head that is turned is even");
    expects(a.rows <= std::numeric_limits<std::uint32_t>::max() && written_heads(a) * a.head_width <= std::numeric_limits<std::uint32_t>::max(),
            "rows, and elements of a row, that are turned are counted in 32 bits");
    auto const shape = shape_of_tiles<T>(a.rows, written_heads(a) * (a.head_width / 2));
    choose(whole_chunks<T>(a.head_width / 2, a.input, a.output, a.table), [&](auto whole) { launch(queue, shape, turn<T, whole()>, a); });
}

template void rope(stream, rope_arguments<fp32> const&);
template void rope(stream, rope_arguments<bf16> const&);

}  // namespace rheo::inline v0::cuda
