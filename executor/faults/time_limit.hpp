#pragma once
// SPDX-License-Identifier: Apache-2.0

// A limit on waiting for other ranks where no watchdog can turn a hang into a loss: in MPI_Init, which nothing inside MPI ends when a rank
// dies in it; before the first agreement, when no rank knows the others yet; and in the last one. A thread that makes
// no MPI call looks at the clock. When time is up it kills the ranks of this host that are stopped, and then the process ends with an exit code and an
// error. Before MPI_Init returns the launcher then ends the whole job with that code. Time in which the thread itself did not run (a suspended job) does not count.

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

struct limited_wait {
    seconds limit{};  ///< 0: none
    int exit_code = 0;
    bool losses_end_it = true;  ///< a lost rank is left out and the wait ends: after a stopped one is killed, the limit is a little longer
    std::string message{};      ///< what was waited for, and what to do
};

class time_limit {
public:
    explicit time_limit(limited_wait wait);
    ~time_limit();  ///< the wait is over
    time_limit(time_limit const&) = delete;
    time_limit& operator=(time_limit const&) = delete;

private:
    void run();

    limited_wait wait_;
    std::mutex mutex_;
    std::condition_variable ended_;
    bool ends_ = false;
    std::thread thread_;
};

/// How long the ranks may take to find each other (run.watchdog.start_s), as the limit of one wait at the start; exit code 5.
limited_wait limited_start(seconds start, bool losses_end_it, std::string const& waits_for);

}  // namespace rheo::inline v0
