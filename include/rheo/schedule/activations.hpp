#pragma once
// SPDX-License-Identifier: Apache-2.0

// How many microbatches' activations a rank holds at most: from F to B, or to W when the backward is
// split. It follows from the order of the row alone, whatever the times. A stage that runs no backward
// of a microbatch holds nothing of it.

#include <algorithm>
#include <cstddef>
#include <vector>

#include "rheo/schedule/interpret.hpp"
#include "rheo/schedule/program.hpp"

namespace rheo::inline v0 {

/// The most (stage, microbatch) activations held at once, per position.
constexpr std::vector<int> peak_activations_by_rank(program const& p)
{
    auto kept = detail::facts_of(p, 0);
    auto const ends = [](instruction i) {
        return i.kind == instruction_kind::backward || i.kind == instruction_kind::weight_gradient;
    };
    for (auto const& row : p.rows) {
        for (auto const& i : row) {
            if (ends(i)) {
                kept.of(i.stage, i.item) = detail::weight_done;
            }
        }
    }
    std::vector<int> peaks;
    for (auto const& row : p.rows) {
        int held = 0;
        int peak = 0;
        for (auto const& i : row) {
            if (i.kind == instruction_kind::forward && kept.holds(i.stage, i.item, detail::weight_done)) {
                peak = std::max(peak, ++held);
            } else if (ends(i)) {
                --held;
            }
        }
        peaks.push_back(peak);
    }
    return peaks;
}

/// The largest of them.
constexpr int peak_activations(program const& p)
{
    int peak = 0;
    for (auto const held : peak_activations_by_rank(p)) {
        peak = std::max(peak, held);
    }
    return peak;
}

}  // namespace rheo::inline v0
