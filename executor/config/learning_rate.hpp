#pragma once
// SPDX-License-Identifier: Apache-2.0

// The learning rate of a step: linear warm-up, then half a cosine. Each rank computes it for itself, so it is made of
// sums and products only: ranks with other mathematics libraries get the same bits.

#include <algorithm>
#include <cstdint>
#include <numbers>

#include "executor/config/config.hpp"
#include "rheo/topology/tagged_index.hpp"

namespace rheo::inline v0 {

/// cos(pi t) as the Taylor series of sin(pi (1/2 - t)), to the 25th power, whose rest is below 1e-16. @pre 0 <= t <= 1
constexpr double cosine_of_half_turn(double t)
{
    double const y = std::numbers::pi * (0.5 - t);
    double term = y;
    double sum = y;
    for (int n = 2; n <= 24; n += 2) {
        term *= -y * y / static_cast<double>(n * (n + 1));
        sum += term;
    }
    return sum;
}

/// @param steps of the whole job  @param step counted from 0
constexpr double learning_rate(optimizer_config const& o, std::int64_t steps, step_id step)
{
    if (step.value < o.warmup_steps) {
        return o.learning_rate * static_cast<double>(step.value + 1) / static_cast<double>(o.warmup_steps);
    }
    auto const t = static_cast<double>(step.value - o.warmup_steps) / static_cast<double>(std::max<std::int64_t>(1, steps - o.warmup_steps));
    return o.final_learning_rate + 0.5 * (o.learning_rate - o.final_learning_rate) * (1 + cosine_of_half_turn(t));
}

}  // namespace rheo::inline v0
