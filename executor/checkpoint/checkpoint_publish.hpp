#pragma once
// SPDX-License-Identifier: Apache-2.0

// What the writing thread does, as plain functions: a part to disk, parts to a checkpoint, old checkpoints away. They know
// no threads; on a request to stop, they throw.

#include <filesystem>
#include <functional>
#include <string>

#include "executor/checkpoint/checkpoint_writer.hpp"
#include "executor/checkpoint/levels/growing_part.hpp"

namespace rheo::inline v0 {

/// `<run>/.step-N.<generation>`.
std::filesystem::path unfinished_folder(std::filesystem::path const& run_folder, step_id step, generation_id generation);

/// The names of a rank's files: its weights, its moments, what it says about both, and about the state.
std::string model_file(rank_id rank);
std::string state_file(rank_id rank);
std::string part_file(rank_id rank);
std::string about_file(rank_id rank);

/// How long the two files of a part will be.
growing_part::file_sizes sizes_of(checkpoint_part const& part);

/// What looks on while a part is written.
struct part_progress {
    std::function<void(checkpoint_point)> at;  ///< the named moments
    std::function<void()> proceed;             ///< called between pieces; may throw
};

/// Writes and syncs files and their part manifest. @param folder is made where its parent is there  @returns bytes written  @throws exit_error
bytes write_part(std::filesystem::path const& folder, checkpoint_part const& part, part_progress const& on);
/// The same for later stages, which read behind it. @param about goes to a file beside it
bytes write_part(growing_part& into, checkpoint_part const& part, std::string const& about, part_progress const& on);

/// Writes to another folder what is there of a part, until all of it is. @returns bytes written  @throws exit_error: also when the part failed
bytes copy_part(growing_part const& from, std::filesystem::path const& folder, part_progress const& on);

/// The small files of a part, its manifest last: what it names is on disk. @param texts without about: only the manifest  @returns bytes written  @throws exit_error
bytes end_part(std::filesystem::path const& folder, rank_id rank, part_texts const& texts, part_progress const& on);

/// Removes the files of a part, and the folder when nothing else is in it.
void remove_part(std::filesystem::path const& folder, rank_id rank);

/// Removes all parts: no rank writes them any more, and they became no checkpoint.
void remove_unfinished(std::filesystem::path const& run_folder, step_id step, generation_id generation);

/// Takes its name away, then its files. What is left of it when that is interrupted goes with the next publication. @param hidden called between the two
/// @throws exit_error: it has its name still
void remove_checkpoint(std::filesystem::path const& run_folder, step_id step, std::function<void()> const& hidden = {});

/// Makes the parts a checkpoint and removes older ones, and what earlier generations left unfinished. @throws exit_error, exit_error: nothing was published then
/// @returns what could not be done after publishing (removing an older one); else empty
std::string publish_parts(std::filesystem::path const& run_folder, checkpoint_publication const& publication, std::function<void(checkpoint_point)> const& at);

}  // namespace rheo::inline v0
