#pragma once
// SPDX-License-Identifier: Apache-2.0

// Optimizer shards, as in ZeRO-1 (Rajbhandari et al., SC'20, section 5.1): not all holders of a cell keep its moments, but some of them, so that a rank
// keeps a part of those of its layers. Unlike there, f + 1 ranks keep each cell's, on different nodes where possible, so that f losses lose no state.
// What stages read stays on all holders: the parameters, or where these are of another type than the optimizer's (dtype_policy::stores_apart) a copy of them;
// then the optimizer's own go with the moments.

namespace rheo::inline v0 {

struct optimizer_shards {
    int copies = 0;     ///< ranks that keep the moments of a cell; 0: all of its holders
    int node_size = 1;  ///< rank / node_size is a rank's node

    constexpr bool are_used() const { return copies > 0; }
    friend constexpr bool operator==(optimizer_shards, optimizer_shards) = default;
};

}  // namespace rheo::inline v0
