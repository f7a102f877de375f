// SPDX-License-Identifier: Apache-2.0
#include "launch.hpp"

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string_view>
#include <thread>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace campaign {

namespace {

constexpr auto mark_name = "RHEO_CAMPAIGN_JOB=";

std::string read_all(std::filesystem::path const& path)
{
    std::ifstream file{path, std::ios::binary};
    return {std::istreambuf_iterator<char>{file}, {}};
}

/// What a debugger says about the threads of a process.
std::string stack_of(pid_t process)
{
    auto const line = "timeout 20 gdb -p " + std::to_string(process) + " -batch -ex 'thread apply all backtrace 30' 2>&1";
    std::string text = "---- process " + std::to_string(process) + '\n';
    if (auto* const pipe = ::popen(line.c_str(), "r")) {
        char part[4096];
        for (std::size_t count = 0; (count = std::fread(part, 1, sizeof part, pipe)) > 0;) {
            text.append(part, count);
        }
        ::pclose(pipe);
    }
    return text;
}

}  // namespace

job::job(command const& what) : started_{clock::now()}
{
    static std::atomic<int> next{0};
    mark_ = mark_name + std::to_string(::getpid()) + "-" + std::to_string(next++);

    std::vector<std::string> words{what.mpirun, "--with-ft", "ulfm", "--mca", "pml", "ob1", "--oversubscribe", "--bind-to", "none"};
    if (::geteuid() == 0) {
        words.emplace_back("--allow-run-as-root");
    }
    words.insert(words.end(), {"-n", std::to_string(what.ranks), what.program});
    words.insert(words.end(), what.arguments.begin(), what.arguments.end());
    std::vector<char*> argv;
    for (auto& word : words) {
        argv.push_back(word.data());
    }
    argv.push_back(nullptr);
    // Two jobs run at once, and the launcher that ends first removes what it shares with the other.
    auto const files_of_launcher = what.output.parent_path() / "tmp";
    std::filesystem::create_directories(files_of_launcher);
    auto temporary = "TMPDIR=" + files_of_launcher.string();
    std::vector<char*> environment;
    for (auto** entry = environ; *entry != nullptr; ++entry) {
        if (!std::string_view{*entry}.starts_with("TMPDIR=")) {
            environment.push_back(*entry);
        }
    }
    environment.push_back(temporary.data());
    environment.push_back(mark_.data());
    environment.push_back(nullptr);

    auto const output = ::open(what.output.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    auto const nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    leader_ = ::fork();
    if (leader_ == 0) {
        ::setpgid(0, 0);
        ::prctl(PR_SET_PDEATHSIG, SIGTERM);  // a campaign that is ended takes its jobs along
        ::dup2(nothing, STDIN_FILENO);
        ::dup2(output, STDOUT_FILENO);
        ::dup2(output, STDERR_FILENO);
        ::execve(argv.front(), argv.data(), environment.data());
        ::_exit(127);
    }
    ::close(output);
    ::close(nothing);
    if (leader_ < 0) {
        throw std::runtime_error{"mpirun cannot be started"};
    }
}

job::~job()
{
    kill_all();
    if (!reaped_) {
        ::waitpid(leader_, &status_, 0);
    }
}

bool job::running()
{
    reaped_ = reaped_ || ::waitpid(leader_, &status_, WNOHANG) == leader_;
    return !reaped_;
}

std::vector<pid_t> job::processes() const
{
    std::vector<pid_t> found;
    std::error_code error;
    for (auto const& entry : std::filesystem::directory_iterator{"/proc", error}) {
        auto const name = entry.path().filename().string();
        if (name.find_first_not_of("0123456789") == name.npos && ('\0' + read_all(entry.path() / "environ")).find('\0' + mark_ + '\0') != std::string::npos) {
            found.push_back(static_cast<pid_t>(std::stol(name)));
        }
    }
    return found;
}

void job::kill_all() const
{
    for (int tries = 0; tries < 20; ++tries) {  // what is being forked in this moment is found the next time
        auto const found = processes();
        if (found.empty()) {
            return;
        }
        for (auto const process : found) {
            ::kill(process, SIGKILL);
        }
        std::this_thread::sleep_for(std::chrono::milliseconds{50});
    }
}

ending job::finish(std::chrono::seconds deadline)
{
    using namespace std::chrono_literals;
    ending end;
    while (running() && clock::now() - started_ < deadline) {
        std::this_thread::sleep_for(5ms);
    }
    end.duration = clock::now() - started_;
    if (running()) {
        end.in_time = false;
        for (auto const process : processes()) {
            if (process != leader_) {
                end.stacks += stack_of(process);
            }
        }
        kill_all();
        return end;
    }
    end.exit_code = WIFEXITED(status_) ? WEXITSTATUS(status_) : 128 + WTERMSIG(status_);
    for (int tries = 0; tries < 40; ++tries) {
        end.excluded_from_job = static_cast<int>(processes().size());
        if (end.excluded_from_job == 0) {
            return end;
        }
        std::this_thread::sleep_for(50ms);
    }
    kill_all();
    return end;
}

}  // namespace campaign
