#pragma once
// SPDX-License-Identifier: Apache-2.0

// AdamW (Loshchilov, Hutter: "Decoupled weight decay regularization", 2019) on one tensor, and the sum of
// squares that clipping needs. The reduced gradient is a plain sum; the one multiplier (1 / target tokens
// of the step, times the clip factor) is applied here. Scalars of the step are worked out in double, with
// products in place of pow, so that they do not depend on a mathematics library.

#include <cmath>
#include <cstdint>

#include "rheo/tensor/dtype.hpp"

namespace rheo::inline v0 {

template <dtype_policy Policy = fp32>
struct adamw_arguments {
    std::int64_t count;
    master_t<Policy>* master;                // [count], the parameter; in: before, out: after
    master_t<Policy>* first_moment;          // [count]
    master_t<Policy>* second_moment;         // [count]
    master_t<Policy> const* gradient;        // [count], the reduced plain sum
    storage_t<Policy>* parameter = nullptr;  // [count], a storage copy of master to write, or null
    double gradient_multiplier = 1;          ///< 1 / target tokens x clip factor
    double learning_rate;
    double beta1 = 0.9;
    double beta2 = 0.999;
    double epsilon = 1e-8;
    double weight_decay = 0;
    std::int64_t step;                       ///< counts committed updates, this one included: 1, 2, ...
};

/// The sum of squares of a tensor's gradient: one double, over blocks of norm_block elements added in order.
struct gradient_norm_arguments {
    std::int64_t count;
    float const* gradient;  // [count]
};
inline constexpr std::int64_t norm_block = 4096;

/// The factor that brings a gradient of this norm down to the limit; 1 when it is within, or limit is 0.
constexpr double clip_factor(double norm, double limit)
{
    return limit > 0 && norm > limit ? limit / norm : 1.0;
}

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

template <dtype_policy Policy>
void adamw(adamw_arguments<Policy> const& a)
{
    using master = master_t<Policy>;
    auto const scalars = scalars_of(a.beta1, a.beta2, a.step);
    for (std::int64_t i = 0; i < a.count; ++i) {
        master const g = a.gradient[i] * static_cast<master>(a.gradient_multiplier);
        master const m = static_cast<master>(a.beta1) * a.first_moment[i] + static_cast<master>(1 - a.beta1) * g;
        master const v = static_cast<master>(a.beta2) * a.second_moment[i] + static_cast<master>(1 - a.beta2) * (g * g);
        master const m_hat = m * static_cast<master>(scalars.correction1);
        master const v_hat = v * static_cast<master>(scalars.correction2);
        master const change =
            m_hat / (std::sqrt(v_hat) + static_cast<master>(a.epsilon)) + static_cast<master>(a.weight_decay) * a.master[i];
        a.first_moment[i] = m;
        a.second_moment[i] = v;
        a.master[i] -= static_cast<master>(a.learning_rate) * change;
        if (a.parameter != nullptr) {
            a.parameter[i] = static_cast<storage_t<Policy>>(a.master[i]);
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
}  // namespace rheo::inline v0
