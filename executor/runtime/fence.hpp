#pragma once
// SPDX-License-Identifier: Apache-2.0

// The fence of law 4: before a membership does anything it links, atomically, the file named after the
// generation that it ends. Only one membership can; the others find that they were left behind. The run
// folder is the one thing that all ranks must share.

#include <cstdint>
#include <filesystem>
#include <vector>

#include "rheo/recover/action.hpp"
#include "rheo/topology/index.hpp"

namespace rheo::inline v0 {

/// The run folder is not usable; exit code 5.
struct folder_error : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// The last generation that any launch began in the folder; 0 when there was none (the first one is 1).
generation_id last_generation(std::filesystem::path const& folder);

/// Links `after-<ended>` with launch and members. True when it is there with this content, by whoever of this
/// membership; false when another membership was first. The lowest member removes what ranks that died in earlier generations
/// had not linked. @throws folder_error
bool link_generation_file(std::filesystem::path const& folder, link_generation const& what, rank_id me);

}  // namespace rheo::inline v0
