#pragma once
// SPDX-License-Identifier: Apache-2.0

// One launch at a time in a run folder: two would take each other's records and checkpoints away. Anyone who begins the folder
// locks its file `lock` alone and then shares it with the ranks of its job, each of which holds it until it ends. So it is held
// as long as any rank of the job lives, whichever of them dies and however they were launched, and the system takes it
// back with the last one: a job that was killed leaves no lock behind, only the file. These locks (of open
// files, fcntl) hold between hosts on NFS, GPFS, and Lustre mounted with -o flock; with -o localflock only within a host. Where there
// are none at all the run says so and continues.

#include <optional>
#include <string>
#include <utility>

#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

struct lock_answer {
    bool granted = false;
    std::string message{};  ///< refused: which process uses the folder; granted: empty, or why others cannot be kept out
};

class run_lock {
public:
    run_lock() = default;
    ~run_lock() { release(); }
    run_lock(run_lock&& other) noexcept : descriptor_{std::exchange(other.descriptor_, -1)} {}
    run_lock& operator=(run_lock&& other) noexcept
    {
        std::swap(descriptor_, other.descriptor_);
        return *this;
    }

    /// For the rank that begins the folder, before it touches anything else there. Waits so long for a job that is
    /// just ending. When granted, other ranks may join and no other launch can take it. @pre the folder is there. @throws exit_error
    lock_answer take(std::string const& folder, seconds patience);

    /// For the other ranks of the job, once one of them has taken it. @throws exit_error
    lock_answer join(std::string const& folder);

    void release() noexcept;

    /// Whether a job runs in the folder; none if the file system has no locks.
    static std::optional<bool> is_held(std::string const& folder);

private:
    int descriptor_ = -1;
};

}  // namespace rheo::inline v0
