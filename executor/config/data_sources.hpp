#pragma once
// SPDX-License-Identifier: Apache-2.0

// The keys of [data]: where tokens come from, how much from where, and in which order.

#include <span>
#include <string>
#include <vector>

#include "executor/config/config.hpp"
#include "rheo/units/result.hpp"

namespace rheo::inline v0 {

/// Sequences after which the mixture of sources repeats; each source has at least one of them.
inline constexpr int sequences_of_mix = 4096;

/// Sources from "WEIGHT: PATH" entries, or what is wrong with them.
result<std::vector<weighted_path>> data_sources(std::span<std::string const> entries);

/// What is wrong with the keys, as a sentence that begins with one of them; empty when nothing is.
std::string error_of_data(data_config const& data);

}  // namespace rheo::inline v0
