#pragma once
// SPDX-License-Identifier: Apache-2.0

// What a pipeline has to do for one microbatch: forward through all stages, then backward from the
// last layer down to `deepest`, the lowest layer in which some use still misses the contribution of
// this microbatch. In an undisturbed step that is layer 0; after a loss it may be higher, because
// what survived is not recomputed. A microbatch that is only evaluated stops at `no_backward`.

#include <limits>

#include "rheo/topology/tagged_index.hpp"

namespace rheo::inline v0 {

inline constexpr layer_id no_backward{std::numeric_limits<std::int32_t>::max()};

struct microbatch_work {
    microbatch_id microbatch;
    layer_id deepest{0};

    friend constexpr bool operator==(microbatch_work, microbatch_work) = default;
};

/// Its fields.
template <class Visit>
constexpr void for_each_field(microbatch_work const& work, Visit&& visit)
{
    visit("microbatch", work.microbatch);
    visit("deepest", work.deepest);
}

}  // namespace rheo::inline v0
