#pragma once
// SPDX-License-Identifier: Apache-2.0

// Lists for people where there are many of a kind: thousands of pipelines are a few kinds of them.

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "rheo/plan/memory_parts.hpp"
#include "rheo/plan/plan.hpp"
#include "rheo/planner/forecast.hpp"

namespace rheo::inline v0 {

/// Longer lists are written by their runs.
inline constexpr std::size_t most_listed = 8;

/// "2 + 3", of many numbers "4 x 2 + 12 x 3".
std::string format_sum(std::vector<int> const& numbers);

/// "1, 2, 3", of many numbers "1 to 12, 20".
std::string format_numbers(std::vector<int> const& ascending);

/// The pipelines of a plan by kind: those of one have the same stages, shares, microbatches and needed memory, and differ by the numbers of their ranks
/// alone. Of few pipelines each is a kind of its own. @param memory of all ranks that have a place, ascending; none: not looked at
std::vector<std::vector<std::size_t>> kinds_of_pipelines(plan const& p, std::span<rank_memory const> memory = {});

/// What a rank holds. @pre memory ascends by rank and has the rank
memory_parts const& memory_of(std::span<rank_memory const> memory, rank_id rank);

}  // namespace rheo::inline v0
