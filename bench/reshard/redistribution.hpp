#pragma once
// SPDX-License-Identifier: Apache-2.0

// A matrix of floats in one layout and in another one at this rank, and the ways that it is measured by: rheo::reshard, plain messages of the same
// sizes between buffers without gaps, and gathering everything at one rank to scatter it again (Tenplex's way).

#include <cstddef>
#include <string>
#include <vector>

#include "comparison.hpp"
#include "rheo/reshard/array_layout.hpp"
#include "rheo/reshard/reshard_plan.hpp"

struct redistribution {
    std::string name;
    rheo::reshard_plan plan;
    std::vector<rheo::held_array> held;  ///< of this rank
    std::vector<rheo::wanted_array> wanted;
};

/// A matrix as a layout has it. The rank r has the parts of number r.
rheo::layout_tensor matrix_of_floats(std::int64_t rows, std::int64_t columns);

/// Collective. @param more other ways, measured in the same turns
void measure(bench_run const& run, redistribution const& moved, std::vector<way> const& more = {});
