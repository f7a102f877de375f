#pragma once
// SPDX-License-Identifier: Apache-2.0

// AdamW (Loshchilov, Hutter: "Decoupled weight decay regularization", 2019) on one tensor, and the sum of
// squares that clipping needs. The reduced gradient is a plain sum; the one multiplier (1 / target tokens
// of the step, times the clip factor) is applied here. Scalars of the step are worked out in double, with
// products in place of pow, so that they do not depend on a mathematics library.

#include <array>
#include <cmath>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include "kernels/cuda/stream.hpp"
#include "rheo/tensor/dtype.hpp"
#include "rheo/tensor/exact_sum.hpp"
#include "rheo/tensor/random.hpp"

namespace rheo::inline v0 {

/// What all tensors of an update share.
struct adamw_settings {
    double gradient_multiplier = 1;  ///< 1 / target tokens x clip factor
    double learning_rate;
    double beta1 = 0.9;
    double beta2 = 0.999;
    double epsilon = 1e-8;
    std::int64_t step;  ///< counts committed updates, this one included: 1, 2, ...
};

template <dtype_policy Policy = fp32>
struct adamw_arguments {
    std::int64_t count;
    master_t<Policy>* master;                // [count], the parameter; in: before, out: after
    master_t<Policy>* first_moment;          // [count]
    master_t<Policy>* second_moment;         // [count]
    compute_t<Policy> const* gradient;       // [count], the reduced plain sum
    storage_t<Policy>* parameter = nullptr;  // [count], a storage copy of master to write, or null
    random_stream rounding{};                ///< by which a master of fewer bits than are computed with is rounded
    double weight_decay = 0;
    adamw_settings settings;
};

/// One tensor of an update of many. Its gradient is `gradient` or, where that is null, what the exact sums hold.
template <dtype_policy Policy = fp32>
struct adamw_tensor {
    std::int64_t count;
    master_t<Policy>* master;                     // [count], the parameter; in: before, out: after
    master_t<Policy>* first_moment;               // [count]
    master_t<Policy>* second_moment;              // [count]
    compute_t<Policy> const* gradient = nullptr;  // [count], the reduced plain sum
    std::int64_t* sums = nullptr;                 // [count], zero afterwards; or null
    int scale_log2 = 0;                           ///< of the sums
    storage_t<Policy>* parameter = nullptr;       // [count], a storage copy of master to write, or null
    compute_t<Policy> weight_decay = 0;
    random_stream rounding{};  ///< by which a master of fewer bits than are computed with is rounded
};

/// What the tensors of an update share, as numbers of the type that is computed in; see factors_of.
template <class Master>
struct adamw_factors {
    Master multiplier, beta1, one_less_beta1, beta2, one_less_beta2, correction1, correction2, epsilon, rate;

    friend constexpr bool operator==(adamw_factors const&, adamw_factors const&) = default;
};

/// An update of many tensors at once: clip and scale (in the multiplier), step, cast and zeroing. On a device everything it points at is the
/// device's, so that the same launch can be repeated with other values.
template <dtype_policy Policy = fp32>
struct adamw_list_arguments {
    std::int64_t tensor_count;
    adamw_tensor<Policy> const* tensors;              // [tensor_count]
    std::int64_t const* first_block;                  // [tensor_count + 1], see first_blocks
    std::int64_t blocks;                              ///< the last of first_block
    adamw_factors<compute_t<Policy>> const* factors;  // [1]
};

/// The sum of squares of a tensor's gradient: one double, over blocks of norm_block elements added in order.
struct gradient_norm_arguments {
    std::int64_t count;
    float const* gradient;  // [count]
};
inline constexpr std::int64_t norm_block = 4096;

/// Where the blocks of norm_block elements of each of several tensors begin, and after the last one how many there are.
inline std::vector<std::int64_t> first_blocks(std::span<std::int64_t const> counts)
{
    std::vector<std::int64_t> first{0};
    for (auto const count : counts) {
        first.push_back(first.back() + (count + norm_block - 1) / norm_block);
    }
    return first;
}

/// The factor that brings a gradient of this norm down to the limit; 1 when it is within, or limit is 0.
constexpr double clip_factor(double norm, double limit) { return limit > 0 && norm > limit ? limit / norm : 1.0; }

namespace definition {

/// The scalars of an AdamW step, in double.
struct adamw_scalars {
    double correction1;  ///< 1 / (1 - beta1^step)
    double correction2;
};

constexpr double integer_power(double base, std::int64_t exponent)
{
    double result = 1;
    for (; exponent > 0; exponent /= 2) {
        result = exponent % 2 != 0 ? result * base : result;
        base *= base;
    }
    return result;
}

constexpr adamw_scalars scalars_of(double beta1, double beta2, std::int64_t step)
{
    return {.correction1 = 1 / (1 - integer_power(beta1, step)), .correction2 = 1 / (1 - integer_power(beta2, step))};
}

template <class Master>
constexpr adamw_factors<Master> factors_of(adamw_settings const& a)
{
    auto const scalars = scalars_of(a.beta1, a.beta2, a.step);
    return {.multiplier = static_cast<Master>(a.gradient_multiplier),
            .beta1 = static_cast<Master>(a.beta1),
            .one_less_beta1 = static_cast<Master>(1 - a.beta1),
            .beta2 = static_cast<Master>(a.beta2),
            .one_less_beta2 = static_cast<Master>(1 - a.beta2),
            .correction1 = static_cast<Master>(scalars.correction1),
            .correction2 = static_cast<Master>(scalars.correction2),
            .epsilon = static_cast<Master>(a.epsilon),
            .rate = static_cast<Master>(a.learning_rate)};
}

/// One element's step: moments and parameter in, and out again.
template <class Master>
constexpr void adamw_element(adamw_factors<Master> const& f, Master weight_decay, Master gradient, Master& first, Master& second, Master& parameter)
{
    using std::sqrt;
    Master const g = gradient * f.multiplier;
    first = f.beta1 * first + f.one_less_beta1 * g;
    second = f.beta2 * second + f.one_less_beta2 * (g * g);
    Master const change = first * f.correction1 / (sqrt(second * f.correction2) + f.epsilon) + weight_decay * parameter;
    parameter -= f.rate * change;
}

/// The random bits of two neighbours, of which `index` is one: 16 for each value that is written.
constexpr std::array<std::uint32_t, 4> rounding_words(random_stream const& stream, std::int64_t index)
{
    auto const pair = static_cast<std::uint64_t>(index) / 2;
    return philox({static_cast<std::uint32_t>(pair), static_cast<std::uint32_t>(pair >> 32), stream.high[0], stream.high[1]}, stream.key);
}

/// A step's numbers of an element as they are written. In bfloat16 they are rounded stochastically: small changes of a large number would be lost otherwise.
template <class Master, class Compute>
constexpr void write_element(std::array<std::uint32_t, 4> const& words, std::int64_t index, Compute parameter, Compute first, Compute second, Master& to,
                             Master& to_first, Master& to_second)
{
    if constexpr (std::is_same_v<Master, bfloat16>) {
        auto const mine = static_cast<std::size_t>(index % 2 * 2);
        to = stochastically_rounded(parameter, words[mine]);
        to_first = stochastically_rounded(first, words[mine] >> 16);
        to_second = stochastically_rounded(second, words[mine + 1]);
    } else {
        to = parameter;
        to_first = first;
        to_second = second;
    }
}

/// One element's step, read and written where it lies.
template <class Master, class Compute>
constexpr void adamw_element_at(adamw_factors<Compute> const& f, Compute weight_decay, Compute gradient, random_stream const& rounding, std::int64_t index,
                                Master& first, Master& second, Master& parameter)
{
    auto m = static_cast<Compute>(first);
    auto v = static_cast<Compute>(second);
    auto p = static_cast<Compute>(parameter);
    adamw_element(f, weight_decay, gradient, m, v, p);
    std::array<std::uint32_t, 4> words{};
    if constexpr (std::is_same_v<Master, bfloat16>) {
        words = rounding_words(rounding, index);
    }
    write_element(words, index, p, m, v, parameter, first, second);
}

template <dtype_policy Policy>
void adamw(adamw_arguments<Policy> const& a)
{
    using compute = compute_t<Policy>;
    auto const factors = factors_of<compute>(a.settings);
    for (std::int64_t i = 0; i < a.count; ++i) {
        adamw_element_at(factors, static_cast<compute>(a.weight_decay), a.gradient[i], a.rounding, i, a.first_moment[i], a.second_moment[i], a.master[i]);
        if (a.parameter != nullptr) {
            a.parameter[i] = static_cast<storage_t<Policy>>(a.master[i]);
        }
    }
}

template <dtype_policy Policy>
void adamw_list(adamw_list_arguments<Policy> const& a)
{
    for (std::int64_t n = 0; n < a.tensor_count; ++n) {
        auto const& t = a.tensors[n];
        for (std::int64_t i = 0; i < t.count; ++i) {
            auto const gradient = t.gradient != nullptr ? t.gradient[i] : static_cast<compute_t<Policy>>(value_of(t.sums[i], t.scale_log2));
            adamw_element_at(*a.factors, t.weight_decay, gradient, t.rounding, i, t.first_moment[i], t.second_moment[i], t.master[i]);
            if (t.parameter != nullptr) {
                t.parameter[i] = static_cast<storage_t<Policy>>(t.master[i]);
            }
            if (t.sums != nullptr) {
                t.sums[i] = 0;
            }
        }
    }
}

inline double sum_of_squares(gradient_norm_arguments const& a)
{
    double total = 0;
    for (std::int64_t begin = 0; begin < a.count; begin += norm_block) {
        double block = 0;
        for (std::int64_t i = begin; i < a.count && i < begin + norm_block; ++i) {
            block += double(a.gradient[i]) * double(a.gradient[i]);
        }
        total += block;
    }
    return total;
}

}  // namespace definition

class tile_pool;

namespace host {

void adamw(tile_pool& pool, adamw_arguments<> const& arguments);
double sum_of_squares(tile_pool& pool, gradient_norm_arguments const& arguments);

}  // namespace host

namespace cuda {

// Policy is fp32, bf16 or bf16_state; pointers are the device's, and results are there when the stream is.
template <dtype_policy Policy>
void adamw_list(stream queue, adamw_list_arguments<Policy> const& arguments);

/// The sums of squares of gradients block by block, of many at once or of one; with sums_of_blocks they have the bits of the host's.
struct norm_tensor {
    std::int64_t count;
    float const* gradient;  // [count]
};
struct gradient_norm_list_arguments {
    std::int64_t tensor_count;
    norm_tensor const* tensors;       // [tensor_count]
    std::int64_t const* first_block;  // [tensor_count + 1], see first_blocks
    std::int64_t blocks;              ///< the last of first_block
    double* block_sums;               // [blocks]
};
void sums_of_squares_by_block(stream queue, gradient_norm_list_arguments const& arguments);
void sums_of_squares_by_block(stream queue, norm_tensor const& gradient, double* block_sums);

/// The blocks of each gradient, added in their order: for all gradients at once, since each is one thread's work.
struct sums_of_blocks_arguments {
    std::int64_t count;
    std::int64_t const* first_block;  // [count + 1]
    double const* block_sums;
    double* sums;  // [count]
};
void sums_of_blocks(stream queue, sums_of_blocks_arguments const& arguments);

}  // namespace cuda
}  // namespace rheo::inline v0
