#pragma once
// SPDX-License-Identifier: Apache-2.0

// How many pipelines of which size N' ranks make.

#include <string>
#include <vector>

#include "rheo/pipeline/template_set.hpp"

namespace rheo::inline v0 {

struct instantiation_request {
    int ranks;
    int failures;      ///< f: at least f + 1 pipelines are made whenever they fit
    int microbatches;  ///< of a step, over all pipelines

    friend constexpr bool operator==(instantiation_request, instantiation_request) = default;
};

struct instantiation {
    std::vector<int> sizes;    ///< of the pipelines, ascending; empty when it cannot be planned
    std::vector<int> shares;   ///< microbatches per pipeline
    int spares = 0;            ///< ranks left over
    bool degraded = false;     ///< fewer than f + 1 pipelines fit, so fewer than f losses are survivable for sure
    seconds time;              ///< estimate of an iteration
    std::string cannot;        ///< why it cannot be planned; empty when it can

    friend constexpr bool operator==(instantiation const&, instantiation const&) = default;
    constexpr explicit operator bool() const { return cannot.empty(); }
};

/// Chooses the sizes for so many ranks: at least f + 1 pipelines when they fit (else as many as fit), then the least
/// iteration time, then the fewest spares, then the lexicographically smallest ascending sizes.
/// @pre ranks >= 0, failures >= 0, microbatches >= 1
constexpr instantiation instantiate(template_set_value const& ready, instantiation_request request);

}  // namespace rheo::inline v0
