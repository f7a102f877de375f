#pragma once
// SPDX-License-Identifier: Apache-2.0

// Named moments of the writing of a checkpoint, for tests that end the process there.

#include <cstdint>
#include <string_view>

namespace rheo::inline v0 {

enum class checkpoint_point : std::uint8_t {
    folder,        ///< `.step-N.<generation>` was made
    weights_torn,  ///< half of the weights are written
    weights,       ///< all of them, not synced
    state_torn,
    state,
    part_torn,  ///< half of the part's own small manifest
    part,       ///< the part is on disk
    manifest_torn,
    manifest,   ///< the manifest is on disk, the folder not renamed
    renamed,    ///< the folder has its name, the run folder is not synced
    published,  ///< it is synced, older checkpoints are still there
    removing,   ///< an older one was renamed, its files are still there
    // of the levels before it, with checkpoint.local
    local_torn,    ///< half of the part is in the node-local folder
    local,         ///< the part is on the node's disk
    replica_torn,  ///< half of another node's part has arrived
    replica,       ///< it is on this node's disk
};

inline constexpr std::string_view checkpoint_point_names[] = {"folder",     "weights_torn",  "weights",      "state_torn", "state",     "part_torn",
                                                              "part",       "manifest_torn", "manifest",     "renamed",    "published", "removing",
                                                              "local_torn", "local",         "replica_torn", "replica"};

}  // namespace rheo::inline v0
