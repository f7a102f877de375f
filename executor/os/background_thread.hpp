#pragma once
// SPDX-License-Identifier: Apache-2.0

// A thread that takes no signals: they are for the threads that expect them.

#include <csignal>
#include <thread>
#include <utility>

namespace rheo::inline v0 {

/// Starts `run` on a thread of its own, on which all signals are blocked.
template <class Run>
std::thread background_thread(Run run)
{
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    std::thread started{std::move(run)};
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return started;
}

}  // namespace rheo::inline v0
