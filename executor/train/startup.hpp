#pragma once
// SPDX-License-Identifier: Apache-2.0

// How the ranks of a job begin together: they make sure that all of them can, have the same numerics fingerprint
// and see one run folder that no other launch is at work in, and agree on the state to begin with. Nothing is started, and
// nothing in the run folder but its lock is touched, before the questions that can end in a refusal are answered.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "executor/checkpoint/checkpoint.hpp"
#include "executor/checkpoint/fingerprint_line.hpp"
#include "executor/checkpoint/levels/local_folder.hpp"
#include "executor/config/config.hpp"
#include "executor/mpi/messenger.hpp"
#include "executor/records/earlier_run.hpp"
#include "executor/records/energy_account.hpp"
#include "executor/records/run_lock.hpp"
#include "executor/train/parts/agreed_transport.hpp"
#include "executor/train/run.hpp"
#include "rheo/recover/action.hpp"
#include "rheo/tensor/collection.hpp"
#include "rheo/units/exit_code.hpp"

namespace rheo::inline v0 {

/// Why a job does not begin: what an exit_error carries, as a value that travels between ranks. False when the job begins.
struct startup_error {
    exit_code code = exit_code::done;
    std::string message;

    explicit operator bool() const { return code != exit_code::done; }
};

/// What the first member decides for all at the start.
struct launch_info {
    launch_id launch{};
    std::chrono::steady_clock::time_point launched{};  ///< by this host's steady clock
    generation_id last{0};
};

/// What all ranks know when they have begun.
struct startup {
    launch_info launch{};
    run_lock lock{};                   ///< keeps other launches out of the folder
    std::string folder{};              ///< of this run: the configured one, or that of a fork
    std::optional<checkpoint> from{};  ///< the state to begin with; none: that of the seed
    std::vector<std::string> notes{};  ///< for people, the same on all ranks
    energy_so_far drawn{};             ///< by the run that is resumed
    steps_so_far so_far{};             ///< of its steps
    std::optional<ended_run> ended{};  ///< the run had committed all its steps, and nothing is left to do
    std::string device{};              ///< in: this rank's device, for people
    std::string clock_permission{};    ///< in: by whose permission on this rank; empty: its clock is left alone
    nccl_offer nccl{};                 ///< in: what this rank has
    transport_answer moves{};          ///< what moves data between devices
    run_identity run{};                ///< names the node-local folders, where the config has them
};

/// One try at beginning, by all members of the messenger's generation.
/// @param fingerprint the algorithms of products become those of the checkpoint, else those of the first member
/// @param planned digest of the first plan and of its programs, which all must have
/// @param mine why this rank cannot begin, if it cannot; out: the refusal, on the rank that should say it
/// @returns the refusal, the same exit code on all ranks. @throws mpi::peer_lost
startup_error start_together(mpi::messenger& messages, run_config const& config, std::vector<fingerprint_line>& fingerprint, state_digest planned,
                             resume_mode mode, collection const& state, startup_error& mine, startup& begun);

}  // namespace rheo::inline v0
