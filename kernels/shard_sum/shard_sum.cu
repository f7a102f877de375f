// SPDX-License-Identifier: Apache-2.0
#include "kernels/shard_sum/shard_sum.hpp"

#include "kernels/cuda/policy.hpp"
#include "kernels/cuda/rows.cuh"

namespace rheo::inline v0::cuda {

namespace {

constexpr int most_depth = 5;  // of the stack: 1 + the logarithm of most_shards

struct merge_counts {
    int of[most_shards];
};

/// As many floats of a row as a chunk of T has elements, which are one chunk of floats or two.
template <class T, bool Whole>
struct wide_chunk {
    float values[chunk_size<T>];
    static constexpr int parts = chunk_size<T> / chunk_size<float>;

    __device__ void read(float const* row, std::int64_t width, std::int64_t index)
    {
        for (int p = 0; p < parts; ++p) {
            auto const some = load<Whole>(row, width, index * parts + p);
            for (int e = 0; e < chunk_size<float>; ++e) {
                values[p * chunk_size<float> + e] = some.at(e);
            }
        }
    }
    __device__ void write(float* row, std::int64_t width, std::int64_t index) const
    {
        for (int p = 0; p < parts; ++p) {
            float some[chunk_size<float>];
            for (int e = 0; e < chunk_size<float>; ++e) {
                some[e] = values[p * chunk_size<float> + e];
            }
            store<Whole>(row, width, index * parts + p, packed<float>(some));
        }
    }
    __device__ void add(wide_chunk const& other)
    {
        for (int e = 0; e < chunk_size<T>; ++e) {
            values[e] += other.values[e];
        }
    }
};

template <class T, bool Whole>
__global__ void __launch_bounds__(256) sum(shard_sum_arguments<policy_storing<T>> a, merge_counts merges)
{
    row_place const place{a.rows, a.width};
    for (int k = 0; k < items_per_thread; ++k) {
        std::int64_t const index = place.chunk(k);
        wide_chunk<T, Whole> stack[most_depth];
        int depth = 0;
        for (int i = 0; i < a.count; ++i) {
            stack[depth++].read(a.nodes[i].values + place.first, place.width, index);
            for (int merge = 0; merge < merges.of[i]; ++merge) {
                --depth;
                stack[depth - 1].add(stack[depth]);
            }
        }
        if (a.output == nullptr) {
            stack[0].write(a.node + place.first, place.width, index);
            continue;
        }
        if (a.bias != nullptr) {
            auto const bias = load<Whole>(a.bias, place.width, index);
            for (int e = 0; e < chunk_size<T>; ++e) {
                stack[0].values[e] += bias.at(e);
            }
        }
        store<Whole>(a.output + place.first, place.width, index, packed<T>(stack[0].values));
    }
}

}  // namespace

template <dtype_policy Policy>
void shard_sum(stream queue, shard_sum_arguments<Policy> const& a)
{
    using T = storage_t<Policy>;
    auto const order = order_of(a);
    merge_counts merges{};
    bool whole = whole_chunks<T>(a.width, a.bias, a.output, a.node);
    for (std::size_t i = 0; i < static_cast<std::size_t>(a.count); ++i) {
        merges.of[i] = order.merges[i];
        whole = whole && whole_chunks<T>(a.width, a.nodes[i].values);
    }
    choose(whole, [&](auto is_whole) { launch(queue, shape_of_tiles<T>(a.rows, a.width), sum<T, is_whole()>, a, merges); });
}

template void shard_sum(stream, shard_sum_arguments<fp32> const&);
template void shard_sum(stream, shard_sum_arguments<bf16> const&);

}  // namespace rheo::inline v0::cuda
