#pragma once
// SPDX-License-Identifier: Apache-2.0

// Old checkpoints go where newer ones take their place.

#include <filesystem>
#include <string>
#include <vector>

#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

struct pruning {
    std::vector<std::filesystem::path> removed{};  ///< or would be
    std::vector<std::string> kept{};               ///< a sentence for each folder that is neither one of the newest nor removed
    bytes size{};                                  ///< of what was removed
};

/// Keeps the newest `keep` checkpoints that can be opened and removes older ones. Those that cannot be opened, were set aside or are unfinished stay, unless
/// `leftovers` is asked for and the newest one is newer. The newest one is verified first; if it has bad bytes nothing is removed.
/// @param dry_run says what would be done  @pre keep > 0; no job writes in the folder  @throws exit_error
pruning prune_checkpoints(std::filesystem::path const& run_folder, int keep, bool leftovers, bool dry_run, int threads = 1);

}  // namespace rheo::inline v0
