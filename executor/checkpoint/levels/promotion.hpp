#pragma once
// SPDX-License-Identifier: Apache-2.0

// How a launch takes up a checkpoint that was not published: the newest one that is whole on node-local storage, its parts and their copies together, is
// copied to the run folder and gets its name there. So everything behind it (resuming on any ranks, forks, commands) knows checkpoints of one kind.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "executor/mpi/messenger.hpp"
#include "rheo/topology/tagged_index.hpp"

namespace rheo::inline v0 {

struct promotion {
    std::optional<step_id> step{};     ///< that is published now
    std::vector<std::string> notes{};  ///< from where it was taken, and why others were not
    std::string error{};               ///< there is one, but it cannot be copied; this rank's reason
};

/// All members call it. @param run_folder gets the checkpoint  @param local this rank's node-local folder of the run  @param newer_than the newest published step: older ones
/// are left. Cost: each byte of the checkpoint is read twice and written once, all nodes at a time. @throws mpi::peer_lost
promotion promote_newest(mpi::messenger& messages, std::filesystem::path const& run_folder, std::filesystem::path const& local,
                         std::optional<step_id> newer_than);

}  // namespace rheo::inline v0
