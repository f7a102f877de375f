#pragma once
// SPDX-License-Identifier: Apache-2.0

// Sums that do not care about order: a gradient element g enters as the integer nearest to g * 2^k, and
// integers add up the same in any order, over any composition of microbatches, ranks and uses. One scale
// 2^k serves a whole tensor for a whole step. Each contribution is judged alone against a bound that
// leaves room for all contributions of the step, so no sum can overflow and the verdict, too, does
// not depend on order. An attempt always runs to its end; one that was flagged is redone with the
// scale its own largest element asks for, and that redo cannot be flagged again.

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>

#include "rheo/units/expects.hpp"

namespace rheo::inline v0 {

/// What an accumulator knows beside its int64 sums; it belongs to them and moves with them.
struct accumulator_state {
    int scale_log2 = 0;       ///< k: the sums count units of 2^-k
    float max_abs = 0;        ///< the largest finite |g| of all contributions
    bool overflow = false;    ///< some finite |g * 2^k| reached the bound and was left out of the sum
    bool not_finite = false;  ///< some g was infinite or not a number and was left out of the sum

    friend constexpr bool operator==(accumulator_state const&, accumulator_state const&) = default;
};

/// The scales in use: within them g * 2^k is exact in double for every float g.
inline constexpr int least_scale_log2 = -200;
inline constexpr int largest_scale_log2 = 200;

namespace detail {

/// 2^exponent, exactly. @pre -1022 <= exponent <= 1023
constexpr double power_of_two(int exponent) { return std::bit_cast<double>(static_cast<std::uint64_t>(exponent + 1023) << 52); }

constexpr bool is_finite(float value) { return (std::bit_cast<std::uint32_t>(value) & 0x7f800000U) != 0x7f800000U; }

constexpr float magnitude(float value) { return std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) & 0x7fffffffU); }

/// std::clamp by value. std::clamp takes references, and for a reference to a constant of the host nvcc emits a trap on the device, without a warning.
constexpr int clamped(int value, int least, int largest) { return value < least ? least : value > largest ? largest : value; }

/// Adding this rounds a double below 2^51 to the nearest integer (ties to even) and leaves it in the low bits.
inline constexpr double rounding_shift = 6755399441055744.0;  // 1.5 * 2^52

/// The integer nearest to value. @pre |value| < 2^51
constexpr std::int64_t nearest_integer(double value)
{
    return std::bit_cast<std::int64_t>(value + rounding_shift) - std::bit_cast<std::int64_t>(rounding_shift);
}

}  // namespace detail

/// log2 of the bound on |g * 2^k| of one contribution: min(51, 62 - ceil(log2(contributions))).
/// @pre contributions >= 1
constexpr int contribution_bound_log2(int contributions)
{
    expects(contributions >= 1, "an exact sum needs at least one contribution per step");
    return std::min(51, 62 - static_cast<int>(std::bit_width(static_cast<unsigned>(contributions) - 1U)));
}

/// The smallest |g| that overflows: 2^(bound - k), infinite where no float reaches it.
/// @pre contributions >= 1; least_scale_log2 <= scale_log2 <= largest_scale_log2
constexpr float overflow_threshold(int scale_log2, int contributions)
{
    expects(scale_log2 >= least_scale_log2 && scale_log2 <= largest_scale_log2, "the scale of an exact sum lies between 2^-200 and 2^200");
    int const exponent = contribution_bound_log2(contributions) - scale_log2;
    if (exponent > 127) {
        return std::numeric_limits<float>::infinity();
    }
    return static_cast<float>(detail::power_of_two(std::max(exponent, -149)));
}

/// Adds one contribution to one sum and notes its size; what cannot be added is left out and flagged.
/// @pre contributions is the same for all contributions to the sum
constexpr void add_contribution(std::int64_t& sum, accumulator_state& state, float value, int contributions)
{
    if (!detail::is_finite(value)) {
        state.not_finite = true;
        return;
    }
    float const size = detail::magnitude(value);
    state.max_abs = std::max(state.max_abs, size);
    if (size >= overflow_threshold(state.scale_log2, contributions)) {
        state.overflow = true;
        return;
    }
    sum += detail::nearest_integer(static_cast<double>(value) * detail::power_of_two(state.scale_log2));
}

/// The state of the sum of two accumulators. @pre both have the same scale
constexpr accumulator_state joined(accumulator_state const& a, accumulator_state const& b)
{
    expects(a.scale_log2 == b.scale_log2, "exact sums of different scales cannot be added");
    return {.scale_log2 = a.scale_log2,
            .max_abs = std::max(a.max_abs, b.max_abs),
            .overflow = a.overflow || b.overflow,
            .not_finite = a.not_finite || b.not_finite};
}

/// The largest k with max_abs * 2^k < 2^(bound - 8): eight bits of room for the next step to grow into.
/// Returns old when max_abs is zero. @pre max_abs is finite and not negative
constexpr int next_scale(float max_abs, int contributions, int old)
{
    expects(detail::is_finite(max_abs) && max_abs >= 0, "the next scale needs a finite largest gradient");
    if (max_abs == 0) {
        return old;
    }
    // max_abs = m * 2^e with 1 <= m < 2, so max_abs * 2^k < 2^b  <=>  k <= b - e - 1
    auto const bits = std::bit_cast<std::uint64_t>(static_cast<double>(max_abs));  // exact, never subnormal
    int const exponent = static_cast<int>(bits >> 52) - 1023;
    int const k = contribution_bound_log2(contributions) - 8 - exponent - 1;
    return detail::clamped(k, least_scale_log2, largest_scale_log2);
}

/// The value of a sum in float: through double, so exactly rounded once while |sum| < 2^53.
constexpr float value_of(std::int64_t sum, int scale_log2) { return static_cast<float>(static_cast<double>(sum) * detail::power_of_two(-scale_log2)); }

}  // namespace rheo::inline v0
