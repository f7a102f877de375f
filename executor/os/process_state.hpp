#pragma once
// SPDX-License-Identifier: Apache-2.0

// Processes of this host as /proc shows them, and the end of one that must not come back.

#include <cstdint>
#include <string>
#include <vector>

#include <sys/types.h>

namespace rheo::inline v0 {

struct process_state {
    char letter = 'X';  ///< as in /proc: T stopped, t stopped by a debugger, Z and X dead
    pid_t parent = 0;
    std::uint64_t started = 0;  ///< in the kernel's ticks: with the pid it names one process for ever
};

/// What a file of /proc/<pid> holds: "stat", "cmdline", "environ". Empty when the process has ended, also while it is read.
std::string process_file(std::int64_t pid, char const* name);

/// @returns letter X when there is no such process
process_state state_of(std::int64_t pid);

/// Kills this process and no later one that got the same number. @returns whether it was still there
bool kill_exactly(std::int64_t pid, std::uint64_t started);

/// Kills the ranks of this launch on this host that are stopped: processes of the same parent with the same name of a job in their
/// environment (PMIX_NAMESPACE). Where the launcher gives none, no process is killed. A debugger's processes are left alone.
/// @returns who was killed
std::vector<pid_t> kill_stopped_siblings();

}  // namespace rheo::inline v0
