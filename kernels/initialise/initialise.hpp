#pragma once
// SPDX-License-Identifier: Apache-2.0

// Initial values as a function of (seed, tensor, element): any rank makes any sub-range of a tensor with
// the same bits. Normal values by Box and Muller ("A note on the generation of random normal deviates",
// 1958), one per element from its own two words; logarithm and cosine are computed here with sums and products
// only, so that machines with other mathematics libraries agree.

#include <cmath>
#include <cstdint>
#include <numbers>

#include "kernels/cuda/stream.hpp"
#include "rheo/tensor/dtype.hpp"
#include "rheo/tensor/random.hpp"

namespace rheo::inline v0 {

template <dtype_policy Policy = fp32>
struct initialise_normal_arguments {
    std::uint64_t seed;
    tensor_id tensor;
    std::int64_t first = 0;  ///< the sub-range's first element within the tensor
    std::int64_t count;
    double mean = 0;
    double deviation;
    master_t<Policy>* values;  // [count]
};

template <dtype_policy Policy = fp32>
struct initialise_constant_arguments {
    std::int64_t count;
    double value;
    master_t<Policy>* values;  // [count]
};

namespace definition {

/// The standard normal value of an element: sqrt(-2 ln u) cos(2 pi w), u in (0, 1], w in [0, 1).
inline double normal_value(random_stream const& stream, std::int64_t element)
{
    auto const first = 2 * static_cast<std::uint64_t>(element);
    double const u = (static_cast<double>(random_word(stream, first)) + 1.0) * 0x1p-32;
    double const w = static_cast<double>(random_word(stream, first + 1)) * 0x1p-32;
    return std::sqrt(-2.0 * std::log(u)) * std::cos(2.0 * std::numbers::pi * w);
}

template <dtype_policy Policy>
void initialise_normal(initialise_normal_arguments<Policy> const& a)
{
    auto const stream = stream_of(initial_values_key(a.seed, a.tensor));
    for (std::int64_t i = 0; i < a.count; ++i) {
        a.values[i] = static_cast<master_t<Policy>>(a.mean + a.deviation * normal_value(stream, a.first + i));
    }
}

template <dtype_policy Policy>
void initialise_constant(initialise_constant_arguments<Policy> const& a)
{
    for (std::int64_t i = 0; i < a.count; ++i) {
        a.values[i] = static_cast<master_t<Policy>>(a.value);
    }
}

}  // namespace definition

class tile_pool;

namespace host {

void initialise_normal(tile_pool& pool, initialise_normal_arguments<> const& arguments);
void initialise_constant(tile_pool& pool, initialise_constant_arguments<> const& arguments);

}  // namespace host

namespace cuda {

// Masters are float under every policy of a device; pointers are the device's, and values are there when the stream is. They have the bits of the host's.
void initialise_normal(stream queue, initialise_normal_arguments<> const& arguments);
void initialise_constant(stream queue, initialise_constant_arguments<> const& arguments);

}  // namespace cuda
}  // namespace rheo::inline v0
