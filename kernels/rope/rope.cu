// SPDX-License-Identifier: Apache-2.0
#include "kernels/rope/rope.hpp"

#include "kernels/cuda/policy.hpp"
#include "kernels/cuda/rows.cuh"

namespace rheo::inline v0::cuda {

namespace {

// A row is a run of pairs, those of all heads one after the other; a thread turns a chunk of pairs. The products are not fused
// with the sum: so a turn has the bits of the definition.
template <class T, bool Whole>
__global__ void __launch_bounds__(256) turn(rope_arguments<policy_storing<T>> a)
{
    constexpr int size = chunk_size<T>;
    std::int64_t const half = a.head_width / 2;
    row_place const place{a.rows, (a.turned + a.kept) * half};
    float const* const cosines = a.table + (a.first + place.row % a.length) * a.head_width;
    T const* const input = a.input + 2 * place.first;
    T* const output = a.output + 2 * place.first;
    for (int k = 0; k < items_per_thread; ++k) {
        std::int64_t const pair = place.chunk(k) * size;
        if (pair >= place.width) {
            continue;
        }
        if constexpr (Whole) {
            std::int64_t const head = pair / half;
            std::int64_t const at = pair % half;
            std::int64_t const low_at = head * a.head_width + at;
            auto low = load<true>(input + low_at, size, 0);
            auto high = load<true>(input + low_at + half, size, 0);
            if (head < a.turned) {
                float turned_low[size];
                float turned_high[size];
                for (int part = 0; part < size / chunk_size<float>; ++part) {
                    auto const cosine = load<true>(cosines + at, half, part);
                    auto const sine = load<true>(cosines + half + at, half, part);
                    for (int i = 0; i < chunk_size<float>; ++i) {
                        int const e = part * chunk_size<float> + i;
                        float const s = a.back ? -sine.at(i) : sine.at(i);
                        turned_low[e] = low.at(e) * cosine.at(i) - high.at(e) * s;
                        turned_high[e] = high.at(e) * cosine.at(i) + low.at(e) * s;
                    }
                }
                low = packed<T>(turned_low);
                high = packed<T>(turned_high);
            }
            store<true>(output + low_at, size, 0, low);
            store<true>(output + low_at + half, size, 0, high);
        } else {
            for (std::int64_t p = pair; p < pair + size && p < place.width; ++p) {
                std::int64_t const head = p / half;
                std::int64_t const at = p % half;
                std::int64_t const low_at = head * a.head_width + at;
                T const low = input[low_at];
                T const high = input[low_at + half];
                float const cosine = cosines[at];
                float const sine = a.back ? -cosines[half + at] : cosines[half + at];
                bool const turns = head < a.turned;
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
    auto const shape = shape_of_tiles<T>(a.rows, (a.turned + a.kept) * (a.head_width / 2));
    choose(whole_chunks<T>(a.head_width / 2, a.input, a.output, a.table), [&](auto whole) { launch(queue, shape, turn<T, whole()>, a); });
}

template void rope(stream, rope_arguments<fp32> const&);
template void rope(stream, rope_arguments<bf16> const&);

}  // namespace rheo::inline v0::cuda
