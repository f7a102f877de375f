#pragma once
// SPDX-License-Identifier: Apache-2.0

// What a launch does with node-local folders (checkpoint.local) when the ranks begin together: it takes up a checkpoint that is newer there than in
// the run folder, and makes sure that every node has a folder of its own.

#include <cstdint>
#include <string>
#include <vector>

#include "executor/checkpoint/levels/local_folder.hpp"
#include "executor/config/config.hpp"
#include "executor/mpi/messenger.hpp"
#include "executor/train/startup.hpp"
#include "rheo/tensor/collection.hpp"

namespace rheo::inline v0 {

/// All members call it before one of them looks for a checkpoint to resume from. @param notes of the first member  @returns why the newest one cannot be used: this
/// rank's reason. @throws mpi::peer_lost
startup_error take_up_local(mpi::messenger& messages, run_config const& config, std::vector<std::string>& notes);

/// The same before survivors go back to a checkpoint. @returns notes for people, the same on all. @throws mpi::peer_lost
std::vector<std::string> take_up_local(mpi::messenger& messages, run_config const& config, run_identity run);

/// All members call it when the run folder has begun. @param folder of the run  @param resumes it has steps before this launch  @param run out: what names its
/// local folders  @returns why this rank has none. @throws mpi::peer_lost
startup_error begin_local(mpi::messenger& messages, run_config const& config, std::string const& folder, bool resumes, launch_id launch,
                          collection const& state, run_identity& run);

}  // namespace rheo::inline v0
