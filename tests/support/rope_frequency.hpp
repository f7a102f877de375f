#pragma once
// SPDX-License-Identifier: Apache-2.0

// What a pair of columns turns by per position as Hugging Face's rules for longer contexts are written, by the length of the pair's wave: a reference for
// the library's scaled_turns, which counts turns within the original context.

#include <cmath>

#include "rheo/model/rope_scaling.hpp"

namespace reference {

/// @param plain radians per position without scaling
inline double rope_frequency(double plain, rheo::rope_scaling const& s)
{
    double const factor = s.factor_per_mille / 1000.0;
    if (s.kind == rheo::rope_scaling_kind::none) {
        return plain;
    }
    if (s.kind == rheo::rope_scaling_kind::linear) {
        return plain / factor;
    }
    double const low = s.low_freq_factor_per_mille / 1000.0;
    double const high = s.high_freq_factor_per_mille / 1000.0;
    double const wave = 2 * std::acos(-1.0) / plain;
    if (wave < s.original_context / high) {
        return plain;
    }
    if (wave > s.original_context / low) {
        return plain / factor;
    }
    double const smooth = (s.original_context / wave - low) / (high - low);
    return (1 - smooth) * plain / factor + smooth * plain;
}

}  // namespace reference
