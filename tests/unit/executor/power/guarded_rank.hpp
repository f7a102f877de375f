#pragma once
// SPDX-License-Identifier: Apache-2.0

// What tests of real processes with guardians share: waiting for something to come true, seeing whose guardians there are, and that none stays behind.

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include <sys/prctl.h>
#include <sys/wait.h>

inline void pause(double s) { std::this_thread::sleep_for(std::chrono::duration<double>{s}); }

template <class Condition>
bool comes_true(Condition const& condition)
{
    for (int k = 0; k < 4000 && !condition(); ++k) {
        pause(0.005);
    }
    return condition();
}

/// Processes whose parent has ended become this one's, so that it sees whether any stays behind.
struct heir {
    heir() { ::prctl(PR_SET_CHILD_SUBREAPER, 1); }
    ~heir() { ::prctl(PR_SET_CHILD_SUBREAPER, 0); }

    /// Waits for all that is left. @return false when something does not end
    static bool nobody_is_left()
    {
        return comes_true([] {
            while (::waitpid(-1, nullptr, WNOHANG) > 0) {
            }
            return ::waitpid(-1, nullptr, WNOHANG) < 0 && errno == ECHILD;
        });
    }
};

/// The guardians that a process has.
inline std::vector<pid_t> guardians_of(pid_t rank)
{
    std::vector<pid_t> found;
    auto const own = std::to_string(rank);
    std::ifstream children("/proc/" + own + "/task/" + own + "/children");
    auto const look = [&](std::string const& file) {
        std::ifstream list(file);
        for (pid_t pid = 0; list >> pid;) {
            std::ifstream name("/proc/" + std::to_string(pid) + "/comm");
            std::string text;
            std::ifstream state("/proc/" + std::to_string(pid) + "/stat");
            std::string const whole{std::istreambuf_iterator<char>{state}, {}};
            bool const dead = whole.find(") Z ") != std::string::npos;
            if (name >> text && text == "rheo-guardian" && !dead) {
                found.push_back(pid);
            }
        }
    };
    std::error_code error;
    for (auto const& task : std::filesystem::directory_iterator{"/proc/" + own + "/task", error}) {
        look((task.path() / "children").string());  // the thread that started it is its parent there
    }
    return found;
}
