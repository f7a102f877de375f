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

/// The most of `amount(stage)`, and of `between(stage)` from an input gradient to its weight gradient, that a rank holds at once, per position.
template <class Amount, class Of, class Between>
constexpr std::vector<Amount> peaks_by_rank(program const& p, Of const& amount, Between const& between)
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
            } else if (i.kind == instruction_kind::input_gradient && kept.holds(i.stage, i.item, weight_done)) {
                held += between(i.stage);
                peak = std::max(peak, held);
            } else if (ends(i)) {
                held -= i.kind == instruction_kind::weight_gradient ? amount(i.stage) + between(i.stage) : amount(i.stage);
            }
        }
        peaks.push_back(peak);
    }
    return peaks;
}

/// The same with nothing kept besides.
template <class Amount, class Of>
constexpr std::vector<Amount> peaks_by_rank(program const& p, Of const& amount)
{
    return peaks_by_rank<Amount>(p, amount, [](int) { return Amount{}; });
}

}  // namespace detail

/// The most (stage, item) activations held at once, per position.
constexpr std::vector<int> peak_activations_by_rank(program const& p)
{
    return detail::peaks_by_rank<int>(p, [](int) { return 1; });
}

/// The same in bytes, when a stage keeps so many for an item, and so many gradients besides between the halves of a split backward
/// (none: these count nothing). @pre one entry per stage
constexpr std::vector<bytes> peak_bytes_by_rank(program const& p, std::vector<bytes> const& activations, std::vector<bytes> const& kept_gradients = {})
{
    expects(activations.size() == p.placement.size(), "peak bytes need the activations of every stage");
    expects(kept_gradients.empty() || kept_gradients.size() == p.placement.size(), "peak bytes need the kept gradients of every stage, or of none");
    return detail::peaks_by_rank<bytes>(p, [&](int stage) { return activations[static_cast<std::size_t>(stage)]; },
                                        [&](int stage) { return kept_gradients.empty() ? bytes{} : kept_gradients[static_cast<std::size_t>(stage)]; });
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
