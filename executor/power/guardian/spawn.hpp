#pragma once
// SPDX-License-Identifier: Apache-2.0

// Starts a program by posix_spawn. Boost.Process and reproc start programs by fork, which copies the page tables of a rank that holds the memory
// of a stage, and which MPI libraries over RDMA warn of; posix_spawn shares the memory until the exec. Nor do they set signals or start a session.

#include <span>
#include <string>

#include <sys/types.h>

namespace rheo::inline v0::power {

/// What the new process leads, so that signals for the group of the caller do not reach it.
enum class leads { group, session };

struct spawn_options {
    int input = -1;   ///< its standard input; -1: /dev/null
    int errors = -1;  ///< its standard error; -1: the caller's
    leads kind = leads::group;
    bool blocks_signals = false;  ///< all of them from its first instruction on; else none
};

struct spawned {
    pid_t process = -1;
    int error = 0;  ///< an errno; 0: it runs
};

/// Its standard output is /dev/null, its signals have their default actions. @param words begin with its name
spawned spawn(std::string const& program, std::span<std::string const> words, spawn_options const& how);

}  // namespace rheo::inline v0::power
