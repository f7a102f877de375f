#pragma once
// SPDX-License-Identifier: Apache-2.0

// What pipelines are rebuilt, and what that costs: the answer of every way to continue after a loss or a gain.

#include <vector>

#include "rheo/pipeline/instance.hpp"
#include "rheo/pipeline/recovery_price.hpp"
#include "rheo/topology/tagged_index.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

struct recomposition_request {
    int failures;         ///< f: at least f + 1 pipelines are kept whenever they fit
    int microbatches;     ///< of a step, over all pipelines
    loss_model losses{};  ///< what a longer step costs against copies

    friend constexpr bool operator==(recomposition_request, recomposition_request) = default;
};

struct recomposition {
    std::vector<pipeline_instance> pipelines{};  ///< ascending by size
    std::vector<int> shares{};                   ///< microbatches per pipeline
    std::vector<rank_id> spares{};               ///< ranks without a place, ascending
    bool degraded = false;                       ///< fewer than f + 1 pipelines fit
    bytes moved{};                               ///< what the ranks with a place miss, held by anyone or not
    seconds time{};                              ///< estimate of an iteration
    bool rebuilt = false;                        ///< all pipelines were rebuilt, not only those that were hit

    friend constexpr bool operator==(recomposition const&, recomposition const&) = default;
};

}  // namespace rheo::inline v0
