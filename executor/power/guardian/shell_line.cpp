// SPDX-License-Identifier: Apache-2.0
#include "executor/power/guardian/shell_line.hpp"

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "executor/power/descriptor.hpp"
#include "executor/power/guardian/spawn.hpp"

namespace rheo::inline v0::power {

device_result<done> run_shell_line(std::string const& line, seconds patience)
{
    using clock = std::chrono::steady_clock;
    int ends[2] = {-1, -1};
    if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) {
        return device_error{device_error_code::failed, "'" + line + "' cannot be run: " + std::strerror(errno)};
    }
    descriptor const reading{ends[0]};
    descriptor writing{ends[1]};
    std::array<std::string, 3> const words{"sh", "-c", line};
    auto const [pid, error] = spawn("/bin/sh", words, {.input = -1, .errors = writing.get(), .kind = leads::group, .blocks_signals = false});
    if (error != 0) {
        return device_error{device_error_code::failed, "'" + line + "' cannot be run: " + std::strerror(error)};
    }
    writing.reset();
    std::string said;
    auto const listen = [&] {
        std::array<char, 512> part{};
        for (ssize_t count = 0; (count = ::read(reading.get(), part.data(), part.size())) > 0;) {
            said.append(part.data(), said.size() < 500 ? static_cast<std::size_t>(count) : 0);
        }
    };
    auto const begun = clock::now();
    int status = 0;
    bool late = false;
    while (::waitpid(pid, &status, WNOHANG) == 0) {
        if (!late && std::chrono::duration<double>(clock::now() - begun).count() > patience.count) {
            late = true;
            ::kill(-pid, SIGKILL);
        }
        pollfd entry{reading.get(), POLLIN, 0};
        ::poll(&entry, 1, 2);
        listen();
        if ((entry.revents & POLLHUP) != 0) {
            ::usleep(1000);  // all output has been read; it only has to end
        }
    }
    listen();
    if (late) {
        return device_error{device_error_code::failed, "'" + line + "' did not end in time and was killed"};
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
        return done{};
    }
    while (!said.empty() && (said.back() == '\n' || said.back() == ' ')) {
        said.pop_back();
    }
    auto const how = WIFEXITED(status) ? "ended with " + std::to_string(WEXITSTATUS(status)) : "was ended by signal " + std::to_string(WTERMSIG(status));
    return device_error{WIFEXITED(status) && WEXITSTATUS(status) == 127 ? device_error_code::not_found : device_error_code::failed,
                        "'" + line + "' " + how + (said.empty() ? "" : ": " + said.substr(0, said.find('\n')))};
}

}  // namespace rheo::inline v0::power
