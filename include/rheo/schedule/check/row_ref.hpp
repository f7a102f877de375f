#pragma once
// SPDX-License-Identifier: Apache-2.0

// One rank among those of all pipelines that run together.

#include <cstddef>

#include "rheo/topology/tagged_index.hpp"

namespace rheo::inline v0 {

/// One rank of the product: pipeline and position in it, and its number among the rows of all pipelines.
struct row_ref {
    pipeline_id pipeline;
    int position;
    std::size_t row;
};

}  // namespace rheo::inline v0
