#pragma once
// SPDX-License-Identifier: Apache-2.0

// The answer of an exact search for an order (schedule/search/exact_search.hpp).

#include "rheo/schedule/core/program.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

/// The best order found and what is known of it.
struct exact_answer {
    rheo::program program;
    seconds makespan;
    seconds lower_bound;  ///< of every order; equal to the makespan when the search came to its end
    bool is_optimal;
    long nodes;  ///< branches looked at
};

}  // namespace rheo::inline v0
