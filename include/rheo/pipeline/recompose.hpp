#pragma once
// SPDX-License-Identifier: Apache-2.0

// New pipelines from the survivors of a loss, with the fewest bytes moved.

#include <span>
#include <string>
#include <vector>

#include "rheo/pipeline/instance.hpp"
#include "rheo/pipeline/template_set.hpp"
#include "rheo/reshard/tensor_bytes.hpp"
#include "rheo/topology/holdings.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

struct recomposition_request {
    int failures;      ///< f: at least f + 1 pipelines are kept whenever they fit
    int microbatches;  ///< of a step, over all pipelines

    friend constexpr bool operator==(recomposition_request, recomposition_request) = default;
};

struct recomposition {
    std::vector<pipeline_instance> pipelines;  ///< ascending by size; empty when it cannot be planned
    std::vector<int> shares;                   ///< microbatches per pipeline
    std::vector<rank_id> spares;               ///< ranks without a place, ascending
    bool degraded = false;                     ///< fewer than f + 1 pipelines fit
    bytes moved;                               ///< what the ranks with a place miss
    seconds time;                              ///< estimate of an iteration
    std::string cannot;                        ///< why it cannot be planned; empty when it can

    friend constexpr bool operator==(recomposition const&, recomposition const&) = default;
    constexpr explicit operator bool() const { return cannot.empty(); }
};

/// Sizes as instantiate chooses them, but ties in time and spares go to the fewest moved bytes; then the exact cheapest
/// assignment of survivors to (pipeline, stage) places, ties to the lowest ranks in the order of the places.
/// A rank that holds nothing may be among the survivors: so the first plan of a job is made, too, and a spare enters.
/// @pre `survivors` have distinct ranks; failures >= 0, microbatches >= 1
constexpr recomposition recompose(std::span<rank_holdings const> survivors, template_set_value const& ready,
                               std::span<tensor_bytes const> tensors, recomposition_request request);

}  // namespace rheo::inline v0
