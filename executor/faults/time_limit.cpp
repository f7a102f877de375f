// SPDX-License-Identifier: Apache-2.0
#include "executor/faults/time_limit.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <utility>

#include <unistd.h>

#include <fmt/format.h>

#include "executor/mpi/segment_folder.hpp"
#include "executor/os/background_thread.hpp"
#include "executor/os/process_state.hpp"
#include "rheo/units/exit_code.hpp"

namespace rheo::inline v0 {

namespace {

/// One write: lines of several ranks do not mix. The rank is the launcher's: MPI may not know it yet.
void say(std::string const& message)
{
    char const* const rank = std::getenv("PMIX_RANK");
    auto const line = fmt::format("rheo: {}{}\n", rank != nullptr ? fmt::format("rank {}: ", rank) : "", message);
    [[maybe_unused]] auto const written = ::write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace

time_limit::time_limit(limited_wait wait) : wait_{std::move(wait)}
{
    if (wait_.limit.count > 0) {
        thread_ = background_thread([this] { run(); });
    }
}

time_limit::~time_limit()
{
    if (thread_.joinable()) {
        {
            std::lock_guard const lock{mutex_};
            ends_ = true;
        }
        ended_.notify_one();
        thread_.join();
    }
}

void time_limit::run()
{
    using clock = std::chrono::steady_clock;
    std::chrono::duration<double> const tick{std::clamp(wait_.limit.count / 10, 0.005, 0.25)};
    std::unique_lock lock{mutex_};
    double waited = 0;
    // Another rank of the host may have killed the one that is stopped just before; the wait ends a little later then.
    double const grace = wait_.losses_end_it ? std::clamp(wait_.limit.count / 4, 0.1, 10.0) : 0.0;
    bool looked = false;
    for (auto before = clock::now(); !ended_.wait_for(lock, tick, [this] { return ends_; });) {
        auto const now = clock::now();
        waited += std::min<std::chrono::duration<double>>(now - before, 2 * tick).count();
        before = now;
        if (waited < wait_.limit.count) {
            continue;
        }
        if (!std::exchange(looked, true)) {
            for (auto const pid : kill_stopped_siblings()) {
                say(fmt::format("process {} of the same job on this host is stopped, the others wait for it: it is killed", pid));
            }
        }
        if (waited < wait_.limit.count + grace) {
            continue;
        }
        if (!wait_.message.empty()) {
            say(wait_.message);
        }
        mpi::leave_segment_folder();
        ::_exit(wait_.exit_code);
    }
}

limited_wait limited_start(seconds start, bool losses_end_it, std::string const& waits_for)
{
    return {.limit = start,
            .exit_code = number_of(exit_code::environment),
            .losses_end_it = losses_end_it,
            .message = fmt::format("has waited {:.1f} s for {}: another rank was lost, is stopped or never began. The job ends (exit code 5); start it again. "
                                   "run.watchdog.start_s is this limit",
                                   start.count, waits_for)};
}

}  // namespace rheo::inline v0
