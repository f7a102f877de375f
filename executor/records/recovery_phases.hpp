#pragma once
// SPDX-License-Identifier: Apache-2.0

// The phases of a recovery in their order: one list for its JSON, its table and its sum.

#include <string_view>

#include "executor/records/records.hpp"

namespace rheo::inline v0 {

using duration_of_phase = seconds recovery_record::*;

struct recovery_phase {
    std::string_view name;
    duration_of_phase duration;
};

inline constexpr recovery_phase recovery_phases[] = {
    {"detect", &recovery_record::detect}, {"revoke", &recovery_record::revoke},
    {"decide", &recovery_record::decide}, {"shrink", &recovery_record::shrink},
    {"link", &recovery_record::link},     {"exchange", &recovery_record::exchange},
    {"plan", &recovery_record::plan},     {"copy", &recovery_record::copy},
    {"merge", &recovery_record::merge},   {"first_instruction", &recovery_record::first_instruction},
};

/// From the loss to the first instruction of the new generation.
inline seconds total(recovery_record const& record)
{
    seconds sum;
    for (auto const& phase : recovery_phases) {
        sum += record.*phase.duration;
    }
    return sum;
}

}  // namespace rheo::inline v0
