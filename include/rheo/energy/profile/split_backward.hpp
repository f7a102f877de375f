#pragma once
// SPDX-License-Identifier: Apache-2.0

// A profile for schedules that split the backward, from one that was measured with whole backwards. How much of a
// backward is the gradient of the input is not in such a profile, so the caller says it.

#include <algorithm>
#include <cstddef>
#include <vector>

#include "rheo/energy/profile/profile.hpp"
#include "rheo/units/expects.hpp"

namespace rheo::inline v0 {

/// Adds halves to every whole backward that has none: at each clock the gradient of the input takes `share` of its time
/// and energy, that of the weights the rest. @pre 0 < share < 1. Cost: rows x places that have halves.
template <class OnlyWhenCalled = void>
constexpr profile with_split_backwards(profile measured, double share)
{
    expects(share > 0.0 && share < 1.0, "the share of the input's gradient in a backward lies between 0 and 1");
    struct place {
        rank_id rank;
        stage_id stage;
        constexpr bool operator==(place const&) const = default;
    };
    std::vector<place> split;
    for (auto const& row : measured.rows) {
        place const here{row.rank, row.stage};
        bool const half = row.kind == instruction_kind::input_gradient || row.kind == instruction_kind::weight_gradient;
        if (half && std::find(split.begin(), split.end(), here) == split.end()) {
            split.push_back(here);
        }
    }
    auto const rows = measured.rows.size();
    for (std::size_t k = 0; k < rows; ++k) {
        auto const whole = measured.rows[k];
        if (whole.kind != instruction_kind::backward || std::find(split.begin(), split.end(), place{whole.rank, whole.stage}) != split.end()) {
            continue;
        }
        for (auto const kind : {instruction_kind::input_gradient, instruction_kind::weight_gradient}) {
            auto const part = kind == instruction_kind::input_gradient ? share : 1.0 - share;
            auto half = whole;
            half.kind = kind;
            half.time = part * whole.time;
            half.energy = part * whole.energy;
            measured.rows.push_back(half);
        }
    }
    return measured;
}

}  // namespace rheo::inline v0
