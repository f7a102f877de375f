// SPDX-License-Identifier: Apache-2.0
// rheo-guardian: restores clocks when its rank has gone without having done it. Started by the rank, whose process id is
// its one argument, with a socket to the rank as standard input. It replies `armed` when it is in charge of the request,
// and ends when it is dismissed or when the rank has ended; nothing else ends it but SIGKILL.
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <string>
#include <string_view>

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "executor/power/descriptor.hpp"
#include "executor/power/guardian/restoration.hpp"
#include "executor/power/permission/device_claim.hpp"

namespace {

using namespace rheo::power;

void say(std::string const& message)
{
    auto const line = "rheo-guardian: " + message + "\n";
    [[maybe_unused]] auto const written = ::write(STDERR_FILENO, line.data(), line.size());
}

void reply(std::string const& line)
{
    auto const text = line + "\n";
    [[maybe_unused]] auto const sent = ::send(STDIN_FILENO, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

struct charge {
    std::string claim;  ///< empty: of nothing
    restoration how;
};

enum class verdict { goes_on, dismissed, at_once };

/// What the rank has sent so far, line by line.
class orders {
public:
    /// Takes what has arrived. @return false when there will be no more
    bool listen()
    {
        for (std::array<char, 4096> part{};;) {
            auto const count = ::recv(STDIN_FILENO, part.data(), part.size(), MSG_DONTWAIT);
            if (count > 0) {
                text_.append(part.data(), static_cast<std::size_t>(count));
            } else if (count == 0 || (errno != EINTR && errno != EAGAIN)) {
                return false;
            } else if (errno == EAGAIN) {
                return true;
            }
        }
    }

    verdict follow(charge& now)
    {
        for (std::size_t end = 0; (end = text_.find('\n')) != std::string::npos; text_.erase(0, end + 1)) {
            std::string_view const line{text_.data(), end};
            if (line == "leave") {
                return verdict::dismissed;
            }
            if (line == "now") {
                return verdict::at_once;
            }
            if (line.starts_with("claim\t")) {
                next_.claim = line.substr(6);
                lines_.clear();
            } else if (line != "end") {
                lines_.append(line).push_back('\n');
            } else if (auto how = restoration_of(lines_); how && !next_.claim.empty()) {
                next_.how = std::move(*how);
                now = next_;
                reply("armed");
            } else {
                reply("the request cannot be read");
            }
        }
        return verdict::goes_on;
    }

private:
    std::string text_;
    std::string lines_;
    charge next_;
};

int restore(charge const& task)
{
    if (task.claim.empty()) {
        return 0;
    }
    auto const result = restore_if_last(task.claim, task.how);
    if (!result) {
        say("the clock cannot be restored: " + result.error().message);
        return 1;
    }
    return 0;
}

/// Waits until the rank's process has ended: only then are its locks gone. Without a handle of it (a kernel before 5.3) its
/// number is looked at.
void await_end(int handle, pid_t rank)
{
    auto const begun = std::chrono::steady_clock::now();
    for (bool lives = true; lives && std::chrono::steady_clock::now() - begun < std::chrono::seconds{10};) {
        pollfd entry{handle, POLLIN, 0};
        lives = handle >= 0 ? ::poll(&entry, 1, 100) <= 0 : ::getppid() == rank && ::usleep(10'000) == 0;
    }
}

int guard(pid_t rank)
{
    descriptor const handle{static_cast<int>(::syscall(SYS_pidfd_open, rank, 0))};
    bool const gone = ::getppid() != rank;  // it ended before it was looked at, and its number may be another's by now
    charge now;
    orders said;
    for (bool more = true;;) {
        std::array<pollfd, 2> entries{{{STDIN_FILENO, POLLIN, 0}, {handle.get(), POLLIN, 0}}};
        if (!gone) {
            ::poll(entries.data(), handle ? 2 : 1, handle ? -1 : 200);
        }
        bool const ended = gone || (entries[1].revents & POLLIN) != 0 || (!handle && ::getppid() != rank);
        more = said.listen();
        switch (said.follow(now)) {
        case verdict::dismissed: return 0;
        case verdict::at_once: return restore(now);
        case verdict::goes_on: break;
        }
        if (ended || !more) {
            if (!gone && !ended) {
                await_end(handle.get(), rank);
            }
            return restore(now);
        }
    }
}

}  // namespace

int main(int count, char** words)
{
    pid_t rank = 0;
    std::string_view const word = count == 2 ? words[1] : "";
    struct stat input{};
    bool const good = std::from_chars(word.data(), word.data() + word.size(), rank).ptr == word.data() + word.size() && rank > 0 &&
                      ::fstat(STDIN_FILENO, &input) == 0 && S_ISSOCK(input.st_mode);
    if (!good) {
        say("is started by ranks of rheo, to put clocks back when they have gone");
        return 2;
    }
    sigset_t all;
    sigfillset(&all);
    ::sigprocmask(SIG_SETMASK, &all, nullptr);
    ::syscall(SYS_close_range, 3u, ~0u, 0u);  // what it inherited would keep others waiting for its end
    return guard(rank);
}
