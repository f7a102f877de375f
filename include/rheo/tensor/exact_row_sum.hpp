#pragma once
// SPDX-License-Identifier: Apache-2.0

// Exact sums in half the memory: the law of exact_sum.hpp with int32 sums and a scale 2^k for each row of a tensor, because 30 bits do not
// span a whole one. A contribution is judged against 2^(30 - ceil(log2(contributions))), so no sum can overflow and neither sum nor
// verdict depends on order. It is the int64 law at a scale that is fewer bits lower, and is computed so. A row's state is eight bytes: whether
// a contribution overflowed follows from the largest one, and an infinite largest says that one was not finite.

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>

#include "rheo/tensor/exact_sum.hpp"
#include "rheo/units/expects.hpp"

namespace rheo::inline v0 {

/// What a row knows beside its int32 sums; it belongs to them and moves with them.
struct row_sum_state {
    int scale_log2 = 0;  ///< k: the sums count units of 2^-k
    float max_abs = 0;   ///< the largest |g| of all contributions; infinite when one was not finite

    friend constexpr bool operator==(row_sum_state const&, row_sum_state const&) = default;
};

/// The scales in use.
inline constexpr int least_row_scale_log2 = -168;
inline constexpr int largest_row_scale_log2 = 168;

/// With more contributions per step a scale would leave no bits to a row.
inline constexpr int most_row_contributions = 1 << 20;

/// log2 of the bound on |g * 2^k| of one contribution: 30 - ceil(log2(contributions)). @pre 1 <= contributions <= most_row_contributions
constexpr int row_bound_log2(int contributions)
{
    expects(contributions >= 1 && contributions <= most_row_contributions, "sums in 32 bits take from 1 to 2^20 contributions per step");
    return 30 - static_cast<int>(std::bit_width(static_cast<unsigned>(contributions) - 1U));
}

namespace detail {

/// The bits that sums in 64 have more.
constexpr int row_shift(int contributions) { return contribution_bound_log2(contributions) - row_bound_log2(contributions); }

}  // namespace detail

/// The smallest |g| that overflows: 2^(bound - k), infinite where no float reaches it.
/// @pre row_bound_log2's; least_row_scale_log2 <= scale_log2 <= largest_row_scale_log2
constexpr float row_overflow_threshold(int scale_log2, int contributions)
{
    expects(scale_log2 >= least_row_scale_log2 && scale_log2 <= largest_row_scale_log2, "the scale of a row's sums lies between 2^-168 and 2^168");
    return overflow_threshold(scale_log2 + detail::row_shift(contributions), contributions);
}

/// Adds one contribution to one sum of the row and notes its size; what cannot be added is left out.
/// @pre contributions is the same for all contributions to the row
constexpr void add_contribution(std::int32_t& sum, row_sum_state& state, float value, int contributions)
{
    if (!detail::is_finite(value)) {
        state.max_abs = std::numeric_limits<float>::infinity();
        return;
    }
    float const size = detail::magnitude(value);
    state.max_abs = std::max(state.max_abs, size);
    if (size < row_overflow_threshold(state.scale_log2, contributions)) {
        sum += static_cast<std::int32_t>(detail::nearest_integer(static_cast<double>(value) * detail::power_of_two(state.scale_log2)));
    }
}

/// True when some contribution to the row was not finite.
constexpr bool not_finite(row_sum_state const& state) { return !detail::is_finite(state.max_abs); }

/// True when some contribution was left out because it reached the bound; of a row that is not finite nothing is reported.
constexpr bool overflowed(row_sum_state const& state, int contributions)
{
    return !not_finite(state) && state.max_abs >= row_overflow_threshold(state.scale_log2, contributions);
}

/// The state of the sum of two rows. @pre both have the same scale
constexpr row_sum_state joined(row_sum_state const& a, row_sum_state const& b)
{
    expects(a.scale_log2 == b.scale_log2, "exact sums of different scales cannot be added");
    return {a.scale_log2, std::max(a.max_abs, b.max_abs)};
}

/// The largest k with max_abs * 2^k < 2^(bound - 8): eight bits of room for the next step to grow into.
/// Returns old when max_abs is zero. @pre max_abs is finite and not negative
constexpr int next_row_scale(float max_abs, int contributions, int old)
{
    auto const shift = detail::row_shift(contributions);
    return max_abs == 0 ? old : detail::clamped(next_scale(max_abs, contributions, old) - shift, least_row_scale_log2, largest_row_scale_log2);
}

}  // namespace rheo::inline v0
