#pragma once
// SPDX-License-Identifier: Apache-2.0

// What the writing thread does when all parts are on disk (part_files.hpp), as plain functions: parts to a checkpoint, old checkpoints away.

#include <filesystem>
#include <functional>
#include <string>

#include "executor/checkpoint/checkpoint_writer.hpp"

namespace rheo::inline v0 {

/// `<run>/.step-N.<generation>`.
std::filesystem::path unfinished_folder(std::filesystem::path const& run_folder, step_id step, generation_id generation);

/// Removes all parts: no rank writes them any more, and they became no checkpoint.
void remove_unfinished(std::filesystem::path const& run_folder, step_id step, generation_id generation);

/// Takes its name away, then its files. What is left of it when that is interrupted goes with the next publication. @param hidden called between the two
/// @throws exit_error: it has its name still
void remove_checkpoint(std::filesystem::path const& run_folder, step_id step, std::function<void()> const& hidden = {});

/// Makes the parts a checkpoint and removes older ones, and what earlier generations left unfinished. @throws exit_error, exit_error: nothing was published then
/// @returns what could not be done after publishing (removing an older one); else empty
std::string publish_parts(std::filesystem::path const& run_folder, checkpoint_publication const& publication, std::function<void(checkpoint_point)> const& at);

}  // namespace rheo::inline v0
