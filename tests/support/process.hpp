#pragma once
// SPDX-License-Identifier: Apache-2.0

// A process of a test's own, to be hung, stopped and killed.

#include <chrono>
#include <functional>
#include <optional>
#include <thread>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/// A process that does `work`, then ends with 0. Nothing of it outlives the test.
class process {
public:
    explicit process(std::function<void()> const& work) : pid{::fork()}
    {
        if (pid == 0) {
            work();
            ::_exit(0);
        }
    }
    ~process()
    {
        if (!status_) {
            ::kill(pid, SIGKILL);
            ::waitpid(pid, nullptr, 0);
        }
    }
    process(process const&) = delete;
    process& operator=(process const&) = delete;

    /// Waits at most that long. @return 0, or the signal that ended it; none: it still runs
    std::optional<int> ended_within(double s)
    {
        for (auto const begun = std::chrono::steady_clock::now(); !status_;) {
            int status = 0;
            if (::waitpid(pid, &status, WNOHANG) == pid) {
                status_ = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
            } else if (std::chrono::steady_clock::now() - begun > std::chrono::duration<double>{s}) {
                break;
            }
            std::this_thread::sleep_for(std::chrono::milliseconds{10});
        }
        return status_;
    }

    pid_t const pid;

private:
    std::optional<int> status_;
};
