#pragma once
// SPDX-License-Identifier: Apache-2.0

// A pipeline that exists: cuts and the ranks that run each stage.

#include <vector>

#include "rheo/topology/index.hpp"

namespace rheo::inline v0 {

struct pipeline_instance {
    std::vector<layer_id> cuts;
    std::vector<std::vector<rank_id>> stages;  ///< stage -> its ranks; one each until there is tensor parallelism

    friend constexpr bool operator==(pipeline_instance const&, pipeline_instance const&) = default;
};

}  // namespace rheo::inline v0
