#pragma once
// SPDX-License-Identifier: Apache-2.0

// One job under mpirun, with a deadline, from outside: started, killed at, waited for, and looked for when it
// is over. Every process of a job carries its mark in the environment, by which it is found however it
// was started; one that is dead and not yet reaped has no environment any more, so it does not count.

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include <sys/types.h>

namespace campaign {

using clock = std::chrono::steady_clock;

struct command {
    std::filesystem::path mpirun;
    std::filesystem::path program;
    int ranks = 1;
    std::vector<std::string> arguments;
    std::filesystem::path output;  ///< standard output and error of all
};

struct ending {
    int exit_code = -1;         ///< of mpirun; 128 + signal when it was killed
    bool in_time = true;        ///< false: everything was killed at the deadline
    int excluded_from_job = 0;  ///< processes that were still there a moment after a good end; they are gone now
    std::string stacks{};       ///< where the processes stood at the deadline, when a debugger is there
    std::chrono::duration<double> duration{};
};

class job {
public:
    explicit job(command const& what);
    ~job();  ///< nothing of it stays, whatever happened
    job(job const&) = delete;
    job& operator=(job const&) = delete;

    /// True until mpirun has ended.
    bool running();

    /// Waits for the end. @param deadline from the start on
    ending finish(std::chrono::seconds deadline);

private:
    std::vector<pid_t> processes() const;
    void kill_all() const;

    std::string mark_;
    pid_t leader_ = -1;
    bool reaped_ = false;
    int status_ = 0;
    clock::time_point started_;
};

}  // namespace campaign
