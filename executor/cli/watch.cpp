// SPDX-License-Identifier: Apache-2.0
// `rheo watch`: a job on one screen until it ends, or as lines where standard output is no terminal. It reads the files of the run folder alone.

#include "executor/cli/commands.hpp"

#include <algorithm>
#include <cctype>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <fmt/format.h>

#include "executor/os/terminal.hpp"
#include "executor/records/progress.hpp"
#include "executor/report/watch/full_screen.hpp"
#include "executor/report/watch/live_run.hpp"
#include "executor/report/watch/watch_screen.hpp"
#include "rheo/units/exit_error.hpp"

namespace rheo::cli {

namespace {

using steady = std::chrono::steady_clock;

double unix_time() { return std::chrono::duration<double>{std::chrono::system_clock::now().time_since_epoch()}.count(); }

/// As the C library chooses the locale, without setting it.
bool shows_unicode()
{
    for (auto const* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
        if (auto const* const value = std::getenv(name); value != nullptr && *value != '\0') {
            std::string word{value};
            std::transform(word.begin(), word.end(), word.begin(), [](unsigned char c) { return std::tolower(c); });
            return word.find("utf-8") != word.npos || word.find("utf8") != word.npos;
        }
    }
    return false;
}

volatile std::sig_atomic_t end_signal = 0;
volatile std::sig_atomic_t pause_signal = 0;

/// Signals that end or pause the command, or say that the terminal has another size. They come while it waits, and at no other time. What the caller
/// ignores, as nohup does, stays ignored.
class waiting_signals {
public:
    waiting_signals()
    {
        end_signal = 0;
        pause_signal = 0;
        sigset_t held;
        sigemptyset(&held);
        struct sigaction action = {};
        sigemptyset(&action.sa_mask);
        for (int const number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH}) {
            struct sigaction before = {};
            if (::sigaction(number, nullptr, &before) == 0 && before.sa_handler == SIG_IGN) {
                continue;
            }
            action.sa_handler = number == SIGTSTP ? [](int) { pause_signal = 1; } : number == SIGWINCH ? [](int) {} : [](int signal) { end_signal = signal; };
            ::sigaction(number, &action, nullptr);
            sigaddset(&held, number);
        }
        ::pthread_sigmask(SIG_BLOCK, &held, &before_);
    }
    ~waiting_signals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    waiting_signals(waiting_signals const&) = delete;
    waiting_signals& operator=(waiting_signals const&) = delete;

    /// At most so long. @returns the signal that ends the command, 0: none
    int wait(double time_s) const
    {
        timespec time{static_cast<std::time_t>(time_s), 0};
        time.tv_nsec = static_cast<long>((time_s - static_cast<double>(time.tv_sec)) * 1e9);
        ::ppoll(nullptr, 0, &time, &before_);
        return end_signal;
    }

private:
    sigset_t before_{};
};

/// The exit code that says how the run ended; none as long as that is not known.
std::optional<int> code_of(live_run const& run)
{
    return run.phase == run_phase::ended     ? std::optional{run.end->exit_code}
           : run.phase == run_phase::stopped ? std::optional{number_of(exit_code::not_ended)}
                                             : std::nullopt;
}

void print_lines(std::vector<std::string> const& lines)
{
    for (auto const& line : lines) {
        fmt::print("{}\n", line);
    }
    std::fflush(stdout);
}

/// Ends the command when there was nothing new for too long.
class patience {
public:
    explicit patience(double limit_s) : limit_{limit_s} {}

    /// @returns whether it is over
    bool ends(bool any_news)
    {
        auto const now = steady::now();
        last_ = any_news ? now : last_;
        return limit_ > 0 && std::chrono::duration<double>(now - last_).count() > limit_;
    }

    int give_up(std::string const& folder) const
    {
        fmt::print(stderr, "rheo: run folder '{}': no new record for {} s, and no end: look whether the job runs, or wait longer with --timeout\n", folder,
                   limit_);
        return number_of(exit_code::not_ended);
    }

private:
    double limit_;
    steady::time_point last_ = steady::now();
};

int on_screen(watch_options const& options, run_follower& follower)
{
    waiting_signals const signals;
    patience left{options.timeout_s};
    bool in_time = true;
    int signal = 0;
    auto const shape = [] {
        auto const size = size_of_terminal();
        return screen_shape{.columns = size.columns, .rows = size.rows, .unicode = shows_unicode()};
    };
    {
        full_screen screen{STDOUT_FILENO};
        for (;;) {
            in_time = !left.ends(follower.poll());
            bool const is_there = screen.show(watch_screen(follower.now(), shape(), unix_time()));
            if (!is_there || !in_time || follower.now().is_over()) {
                break;
            }
            signal = signals.wait(options.interval_s);
            if (signal != 0) {
                break;
            }
            if (pause_signal != 0) {
                pause_signal = 0;
                screen.leave();
                ::raise(SIGSTOP);
                screen.enter();
            }
        }
    }
    print_lines(watch_screen(follower.now(), shape(), unix_time()));  // what stays in the terminal
    return signal != 0 ? 128 + signal : !in_time ? left.give_up(options.folder) : code_of(follower.now()).value_or(number_of(exit_code::not_ended));
}

/// Lines of progress at most so often, as a job prints them into a file.
constexpr auto pause_between_lines = std::chrono::seconds{5};

/// What comes new, line by line.
class line_writer {
public:
    explicit line_writer(live_run const& run) : events_{run.events.size()}, readings_{run.readings}, steps_{run.steps}, newest_{run.newest} {}

    void write(live_run const& run)
    {
        if (run.readings != readings_) {  // the file was replaced: what it had before is known
            readings_ = run.readings;
            events_ =
                static_cast<std::size_t>(std::count_if(run.events.begin(), run.events.end(), [&](live_event const& e) { return e.unix_time <= newest_; }));
        }
        for (; events_ < run.events.size(); ++events_) {
            auto const text = event_text(run.events[events_]);
            fmt::print("{}\n", shown_text(text, text.size()));
        }
        newest_ = run.newest;
        auto const now = steady::now();
        if (run.last && run.steps != steps_ && (now - shown_ >= pause_between_lines || run.is_over())) {
            fmt::print("{}\n", progress_line(*run.last, run.pace.left(std::max(std::int64_t{0}, run.of_steps - run.steps))));
            shown_ = now;
            steps_ = run.steps;
        }
        std::fflush(stdout);
    }

private:
    std::size_t events_;
    int readings_;
    std::int64_t steps_;
    double newest_;
    steady::time_point shown_{};
};

constexpr screen_shape shape_of_lines{.columns = 100, .rows = 40, .unicode = false};

int in_lines(watch_options const& options, run_follower& follower)
{
    waiting_signals const signals;
    patience left{options.timeout_s};
    bool any = follower.poll();
    auto shape = shape_of_lines;
    shape.unicode = shows_unicode();
    print_lines(watch_screen(follower.now(), shape, unix_time()));
    line_writer writer{follower.now()};
    bool const was_over = follower.now().is_over();
    while (!follower.now().is_over()) {
        if (left.ends(any)) {
            return left.give_up(options.folder);
        }
        if (int const signal = signals.wait(options.interval_s); signal != 0) {
            return 128 + signal;
        }
        if (pause_signal != 0) {
            pause_signal = 0;
            ::raise(SIGSTOP);
        }
        any = follower.poll();
        writer.write(follower.now());
    }
    if (!was_over) {
        fmt::print("{}\n", phase_text(follower.now()));
    }
    return code_of(follower.now()).value_or(number_of(exit_code::not_ended));
}

}  // namespace

int watch(watch_options const& options)
{
    std::error_code error;
    if (std::filesystem::exists(options.folder, error) && !std::filesystem::is_directory(options.folder, error)) {
        throw exit_error{exit_code::usage,
                         fmt::format("'{}' is not the folder of a run: expected a folder, or a name that a run will make one with", options.folder)};
    }
    run_follower follower{options.folder};
    bool const is_terminal = ::isatty(STDOUT_FILENO) == 1;
    if (options.once) {
        follower.poll();
        auto shape = shape_of_lines;
        shape.columns = is_terminal ? size_of_terminal().columns : shape.columns;
        shape.unicode = shows_unicode();
        print_lines(watch_screen(follower.now(), shape, unix_time()));
        return code_of(follower.now()).value_or(number_of(exit_code::done));
    }
    auto const* const kind = std::getenv("TERM");
    bool const has_screen = is_terminal && kind != nullptr && std::string_view{kind} != "dumb" && !options.lines;
    return has_screen ? on_screen(options, follower) : in_lines(options, follower);
}

}  // namespace rheo::cli
