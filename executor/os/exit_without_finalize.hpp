#pragma once
// SPDX-License-Identifier: Apache-2.0

// The end of a rank that must not continue while others do: in an error of its own, or left behind. A sentence, then SIGKILL: nothing that stands in
// a buffer reaches a file, no destructor talks to a peer, and for the others it is lost like any other.

#include <cstdio>
#include <string>

#include <signal.h>
#include <unistd.h>

namespace rheo::inline v0 {

[[noreturn]] inline void exit_without_finalize(std::string const& message)
{
    auto const line = "rheo: " + message + "\n";
    [[maybe_unused]] auto const written = ::write(STDERR_FILENO, line.data(), line.size());  // one write: lines of several ranks do not mix
    for (;;) {
        ::kill(::getpid(), SIGKILL);
    }
}

/// The same where the launcher ends all ranks with the first one that ends badly, and takes its exit code for the job's.
[[noreturn]] inline void exit_without_finalize(std::string const& message, int exit_code)
{
    auto const line = "rheo: " + message + "\n";
    [[maybe_unused]] auto const written = ::write(STDERR_FILENO, line.data(), line.size());
    ::_exit(exit_code);
}

}  // namespace rheo::inline v0
