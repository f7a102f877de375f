#pragma once
// SPDX-License-Identifier: Apache-2.0

// How many microbatches' activations a rank holds at most: from F to B, or to W when the backward is
// split. It follows from the order of the row alone, whatever the times. A stage that runs no backward
// of a microbatch holds nothing of it.

#include <algorithm>
#include <cstddef>
#include <vector>

#include "rheo/schedule/pipeline_facts.hpp"
#include "rheo/schedule/program.hpp"
#include "rheo/units/expects.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

namespace detail {

/// The most of `amount(stage)` that a rank holds at once, per position.
template <class Amount, class Of>
constexpr std::vector<Amount> peaks_by_rank(program const& p, Of const& amount)
{
    auto kept = facts_of(p, 0);
    auto const ends = [](instruction i) {
        return i.kind == instruction_kind::backward || i.kind == instruction_kind::weight_gradient;
    };
    for (auto const& row : p.rows) {
        for (auto const& i : row) {
            if (ends(i)) {
                kept.of(i.stage, i.item) = weight_done;
            }
        }
    }
    std::vector<Amount> peaks;
    for (auto const& row : p.rows) {
        Amount held{};
        Amount peak{};
        for (auto const& i : row) {
            if (i.kind == instruction_kind::forward && kept.holds(i.stage, i.item, weight_done)) {
                held += amount(i.stage);
                peak = std::max(peak, held);
            } else if (ends(i)) {
                held -= amount(i.stage);
            }
        }
        peaks.push_back(peak);
    }
    return peaks;
}

}  // namespace detail

/// The most (stage, item) activations held at once, per position.
constexpr std::vector<int> peak_activations_by_rank(program const& p)
{
    return detail::peaks_by_rank<int>(p, [](int) { return 1; });
}

/// The same in bytes, when a stage keeps so many for an item. @pre one entry per stage
constexpr std::vector<bytes> peak_bytes_by_rank(program const& p, std::vector<bytes> const& activations)
{
    expects(activations.size() == p.placement.size(), "peak bytes need the activations of every stage");
    return detail::peaks_by_rank<bytes>(p, [&](int stage) { return activations[static_cast<std::size_t>(stage)]; });
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
