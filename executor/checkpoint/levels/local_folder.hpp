#pragma once
// SPDX-License-Identifier: Apache-2.0

// The node-local folder of a run: `<checkpoint.local>/<identity>/step-N.G/` with the parts of the ranks of this node and copies of parts of others, each
// as `model-<rank>.safetensors`, `state-<rank>.safetensors`, `about-<rank>.json` and, last, `part-<rank>.json`. Nothing there is renamed: a checkpoint is whole when the parts
// on all nodes together are. The run's identity is a number in its run folder, so what another run left under the same path is never taken for this one's.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "executor/checkpoint/levels/growing_part.hpp"
#include "rheo/topology/tagged_index.hpp"

namespace rheo::inline v0 {

/// Of one run, from its first step on: forks and runs that begin again have others.
struct run_identity {
    std::uint64_t value = 0;  ///< 0: none

    friend bool operator==(run_identity, run_identity) = default;
};

/// That of a run folder; none where there is no such file, or another content. @throws exit_error: it cannot be read
run_identity identity_of(std::filesystem::path const& run_folder);
/// Gives a run folder a new one. @throws exit_error
run_identity give_identity(std::filesystem::path const& run_folder);

/// Of a node. @param pattern checkpoint.local
std::filesystem::path local_folder(std::string const& pattern, int node, run_identity run);
/// `<local>/step-N.G`.
std::filesystem::path local_step_folder(std::filesystem::path const& local, step_id step, generation_id generation);

/// A part that ended with its manifest.
struct local_part {
    step_id step;
    generation_id generation;
    rank_id origin;

    friend auto operator<=>(local_part const&, local_part const&) = default;
};

/// All that lie in a folder, ascending; their bytes are not looked at. Empty where there is none.
std::vector<local_part> local_parts(std::filesystem::path const& local);

/// A part as it lies there. @throws exit_error
growing_part::file_sizes sizes_in(std::filesystem::path const& step_folder, rank_id origin);
part_texts texts_in(std::filesystem::path const& step_folder, rank_id origin);

/// Removes what is older than a step, of all generations. What cannot be removed stays, harmless.
void drop_local_before(std::filesystem::path const& local, step_id step);

/// Why a folder cannot be a node's own: a network file system, or no room for so many bytes; else empty. @pre it is there
std::string no_local_folder(std::filesystem::path const& local, std::int64_t needed);

}  // namespace rheo::inline v0
