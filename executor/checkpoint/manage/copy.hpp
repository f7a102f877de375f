#pragma once
// SPDX-License-Identifier: Apache-2.0

// A checkpoint in another run folder, whole or not at all.

#include <filesystem>

#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

struct copied_checkpoint {
    std::filesystem::path folder;
    bytes size;
};

/// Copies a checkpoint to `<run folder>/step-N`, which it makes with the folders above. What was copied is read back from disk and verified before it has its
/// name. @throws exit_error: there is such a checkpoint already, the copy or its source has bad bytes, or a file cannot be written; nothing is left then
copied_checkpoint copy_checkpoint(std::filesystem::path const& from, std::filesystem::path const& run_folder, int threads = 1);

}  // namespace rheo::inline v0
