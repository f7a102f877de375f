#pragma once
// SPDX-License-Identifier: Apache-2.0

// How rotary positions are stretched for sequences longer than those that a model was trained with first, under Hugging Face's names. `linear`: all
// positions are divided by the factor (Chen et al.: "Extending context window of large language models via positional interpolation", 2023). `llama3`:
// pairs that turn at least high_freq_factor times within the original context stay as they are, those that turn at most low_freq_factor times are
// divided, and those between go from one to the other with the number of turns (Llama 3.1). Factors are whole thousandths: the same everywhere.

#include <compare>
#include <cstdint>
#include <string_view>

namespace rheo::inline v0 {

enum class rope_scaling_kind : std::uint8_t { none, linear, llama3 };

struct rope_scaling {
    rope_scaling_kind kind = rope_scaling_kind::none;
    int factor_per_mille = 0;            ///< at least 1000
    int low_freq_factor_per_mille = 0;   ///< llama3
    int high_freq_factor_per_mille = 0;  ///< llama3: above the low one
    int original_context = 0;            ///< llama3: tokens

    friend constexpr auto operator<=>(rope_scaling const&, rope_scaling const&) = default;
};

/// What is wrong with it, behind "its scaling "; empty: nothing.
constexpr std::string_view error_of(rope_scaling const& s)
{
    if (s.kind == rope_scaling_kind::none) {
        return s == rope_scaling{} ? "" : "has factors but no kind";
    }
    if (s.factor_per_mille < 1000) {
        return "must have a factor of at least 1";
    }
    if (s.kind == rope_scaling_kind::linear) {
        return s == rope_scaling{.kind = s.kind, .factor_per_mille = s.factor_per_mille} ? "" : "is linear, which has a factor alone";
    }
    if (s.low_freq_factor_per_mille < 1 || s.high_freq_factor_per_mille <= s.low_freq_factor_per_mille) {
        return "must have a low_freq_factor above 0 and a high_freq_factor above that";
    }
    return s.original_context < 1 ? "must have an original context of at least 1 token" : "";
}

/// What a pair turns by per position, of what it turns by without scaling. @pre error_of is empty  @param turns per position
constexpr double scaled_turns(rope_scaling const& s, double turns)
{
    if (s.kind == rope_scaling_kind::none) {
        return turns;
    }
    double const divided = turns / (s.factor_per_mille / 1000.0);
    if (s.kind == rope_scaling_kind::linear) {
        return divided;
    }
    double const low = s.low_freq_factor_per_mille / 1000.0;
    double const high = s.high_freq_factor_per_mille / 1000.0;
    double const within = turns * s.original_context;
    if (within <= low) {
        return divided;
    }
    if (within >= high) {
        return turns;
    }
    double const share = (within - low) / (high - low);
    return (1 - share) * divided + share * turns;
}

}  // namespace rheo::inline v0
