#pragma once
// SPDX-License-Identifier: Apache-2.0

// A rank's part of a checkpoint in files: written, copied while it grows, removed. On a request to stop these functions throw.

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "executor/checkpoint/checkpoint_writer.hpp"
#include "executor/checkpoint/levels/growing_part.hpp"
#include "executor/config/checkpoint_point.hpp"

namespace rheo::inline v0 {

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

}  // namespace rheo::inline v0
