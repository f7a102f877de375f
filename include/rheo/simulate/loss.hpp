#pragma once
// SPDX-License-Identifier: Apache-2.0

// The loss of a rank on modelled time.

#include "rheo/topology/tagged_index.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

struct modelled_loss {
    rank_id rank;
    seconds at;  ///< since launch

    friend constexpr bool operator==(modelled_loss, modelled_loss) = default;
};

}  // namespace rheo::inline v0
