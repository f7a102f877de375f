// SPDX-License-Identifier: Apache-2.0
// `rheo watch` as people use it: in a terminal of its own, which is afterwards as it was; into a file, as lines.
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include "executor/report/watch/watch_screen.hpp"
#include "report_of.hpp"
#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

namespace {

/// `rheo` in a terminal, and what it wrote there. Nothing of it outlives the test.
class in_terminal {
public:
    in_terminal(std::string const& folder, std::string const& arguments, unsigned short columns, unsigned short rows)
    {
        winsize const size{.ws_row = rows, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
        auto const program = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "rheo";
        auto const command =
            "cd '" + folder + "' && exec env -u PMIX_RANK -u LC_ALL LANG=C.UTF-8 TERM=xterm timeout --foreground 60 '" + program.string() + "' " + arguments;
        pid_ = ::forkpty(&terminal_, nullptr, nullptr, &size);
        if (pid_ == 0) {
            ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
            ::_exit(127);
        }
        REQUIRE(pid_ > 0);
        ::tcgetattr(terminal_, &before_);
    }
    ~in_terminal()
    {
        if (pid_ > 0) {
            ::kill(pid_, SIGKILL);
            ::waitpid(pid_, nullptr, 0);
        }
        ::close(terminal_);
    }
    in_terminal(in_terminal const&) = delete;
    in_terminal& operator=(in_terminal const&) = delete;

    /// Reads until the output has this, at most so often as it has something within 30 s.
    bool shows(std::string const& text)
    {
        while (out.find(text, seen_) == out.npos) {
            pollfd ready{terminal_, POLLIN, 0};
            char block[4096];
            auto const count = ::poll(&ready, 1, 30'000) > 0 ? ::read(terminal_, block, sizeof block) : -1;
            if (count <= 0) {
                return false;
            }
            out.append(block, static_cast<std::size_t>(count));
        }
        seen_ = out.find(text, seen_) + text.size();
        return true;
    }
    void type(std::string const& keys) const { REQUIRE(::write(terminal_, keys.data(), keys.size()) == static_cast<ssize_t>(keys.size())); }
    void resize(unsigned short columns, unsigned short rows) const
    {
        winsize const size{.ws_row = rows, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
        REQUIRE(::ioctl(terminal_, TIOCSWINSZ, &size) == 0);
    }

    /// Its exit code, when it has written all.
    int exit_code()
    {
        shows("\x1b[nothing has this");
        int status = 0;
        REQUIRE(::waitpid(std::exchange(pid_, -1), &status, 0) > 0);
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    }
    bool is_as_before() const
    {
        termios now{};
        ::tcgetattr(terminal_, &now);
        return now.c_lflag == before_.c_lflag && now.c_iflag == before_.c_iflag && now.c_oflag == before_.c_oflag && now.c_cflag == before_.c_cflag;
    }

    std::string out;

private:
    int terminal_ = -1;
    pid_t pid_ = -1;
    std::size_t seen_ = 0;
    termios before_{};
};

/// The screen of a run called "later" that has no records.
std::string waiting_in(std::size_t columns)
{
    std::string const words = "waiting for its records";
    return "later" + std::string(columns - 5 - words.size(), ' ') + words;
}

}  // namespace

TEST_CASE("watch: Ctrl-C leaves the terminal as it was")
{
    temporary_folder const folder;
    in_terminal watch{folder.path.string(), "watch later --interval 0.05", 60, 20};
    REQUIRE(watch.shows(waiting_in(60) + "\x1b[K\x1b[J"));
    watch.resize(40, 10);
    REQUIRE(watch.shows(waiting_in(40) + "\x1b[K\x1b[J"));
    watch.type("\x03");
    CHECK(watch.exit_code() == 130);
    CHECK(watch.is_as_before());
    CHECK(watch.out.starts_with("\x1b[?1049h\x1b[?25l"));
    auto const left = watch.out.rfind("\x1b[?25h\x1b[?1049l");
    REQUIRE(left != std::string::npos);
    CHECK(watch.out.find('\x1b', left + 14) == std::string::npos);  // then plain lines
    CHECK(watch.out.substr(left).find(waiting_in(40) + "\r\n") != std::string::npos);
}

TEST_CASE("watch: a run that has ended is shown, with its exit code")
{
    folder_with_run const folder{"run"};
    in_terminal watch{folder.path.string(), "watch run", 80, 24};
    CHECK(watch.exit_code() == 0);
    auto const shown = watch.out.substr(watch.out.rfind("\x1b[?1049l"));
    CHECK(has(shown, "ended: all 4 steps are committed (exit code 0)"));
    CHECK(has(shown, "step 4/4  100 %"));
    for (auto const* arguments : {"watch run", "watch run --once", "watch run --lines --timeout 5s"}) {
        auto const lines = folder.rheo(arguments);
        CAPTURE(arguments);
        CHECK(lines.exit_code == 0);
        CHECK(lines.err.empty());
        CHECK(has(lines.out, "ended: all 4 steps are committed (exit code 0)"));
        CHECK(has(lines.out, "\nranks       1: 1 pipeline of 1 rank"));
        CHECK_FALSE(has(lines.out, "\x1b"));
    }
}

TEST_CASE("watch: a run that never starts ends the patience asked for")
{
    temporary_folder const folder;
    auto const result = run_rheo(folder, "watch never --interval 0.01 --timeout 0.1");
    CHECK(result.exit_code == 1);
    CHECK(has(result.out, "waiting for its records"));
    CHECK(result.err == "rheo: run folder 'never': no new record for 0.1 s, and no end: look whether the job runs, or wait longer with --timeout\n");
    CHECK_FALSE(std::filesystem::exists(folder.path / "never"));
    CHECK(run_rheo(folder, "watch never --once").exit_code == 0);
    folder.write("file", "");
    auto const file = run_rheo(folder, "watch file --once");
    CHECK(file.exit_code == 2);
    CHECK(file.err == "rheo: 'file' is not the folder of a run: expected a folder, or a name that a run will make one with\n");
}

TEST_CASE("watch: a run that ended with an error returns that")
{
    folder_with_run const folder{"run"};
    std::ofstream{folder.path / "run/metrics.jsonl", std::ios::app} << R"({"kind":"start","generation":9,"step":4,"ranks":1,"from_checkpoint":true})"
                                                                       "\n"
                                                                       R"({"kind":"end","exit_code":7,"message":"not finite","steps":4})"
                                                                       "\n";
    auto const result = folder.rheo("watch run");
    CHECK(result.exit_code == 7);
    CHECK(has(result.out, "ended: not finite (exit code 7)"));
}
