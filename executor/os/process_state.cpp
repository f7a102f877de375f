// SPDX-License-Identifier: Apache-2.0
#include "executor/os/process_state.hpp"

#include <charconv>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace rheo::inline v0 {

namespace fs = std::filesystem;

namespace {

/// Whether a process was started with this entry in its environment.
bool has_entry(pid_t pid, std::string const& entry) { return ('\0' + process_file(pid, "environ")).find('\0' + entry + '\0') != std::string::npos; }

}  // namespace

std::string process_file(std::int64_t pid, char const* name)
{
    std::ifstream file("/proc/" + std::to_string(pid) + '/' + name, std::ios::binary);
    std::ostringstream text;  // an iterator over the file would throw when the process ends meanwhile
    text << file.rdbuf();
    return text.str();
}

process_state state_of(std::int64_t pid)
{
    auto const text = process_file(pid, "stat");
    auto const name_ends = text.rfind(')');  // the name may hold anything
    process_state state;
    if (name_ends == text.npos) {
        return state;
    }
    std::istringstream fields(text.substr(name_ends + 1));
    std::string skipped;
    fields >> state.letter >> state.parent;
    for (int field = 5; field < 22; ++field) {
        fields >> skipped;
    }
    fields >> state.started;
    return state;
}

bool kill_exactly(std::int64_t pid, std::uint64_t started)
{
    auto const process = static_cast<pid_t>(pid);
    auto const handle = static_cast<int>(::syscall(SYS_pidfd_open, process, 0));  // holds on to the process before it is looked at
    bool const same = state_of(pid).started == started;
    if (same && (handle < 0 || ::syscall(SYS_pidfd_send_signal, handle, SIGKILL, nullptr, 0) != 0)) {
        ::kill(process, SIGKILL);
    }
    if (handle >= 0) {
        ::close(handle);
    }
    return same;
}

std::vector<pid_t> kill_stopped_siblings()
{
    std::vector<pid_t> killed;
    char const* const job = std::getenv("PMIX_NAMESPACE");
    if (job == nullptr) {
        return killed;
    }
    auto const entry = std::string{"PMIX_NAMESPACE="} + job;
    std::vector<std::pair<pid_t, std::uint64_t>> stopped;
    std::error_code error;
    for (fs::directory_iterator process("/proc", error); !error && process != fs::directory_iterator(); process.increment(error)) {
        auto const name = process->path().filename().string();
        pid_t pid = 0;
        auto const [end, bad] = std::from_chars(name.data(), name.data() + name.size(), pid);
        if (bad != std::errc{} || end != name.data() + name.size()) {
            continue;
        }
        if (auto const state = state_of(pid); state.letter == 'T' && state.parent == ::getppid() && has_entry(pid, entry)) {
            stopped.emplace_back(pid, state.started);
        }
    }
    if (!stopped.empty()) {  // one that just got SIGCONT with all others, this process included, is not meant
        std::this_thread::sleep_for(std::chrono::milliseconds{200});
    }
    for (auto const& [pid, started] : stopped) {
        if (state_of(pid).letter == 'T' && kill_exactly(pid, started)) {
            killed.push_back(pid);
        }
    }
    return killed;
}

}  // namespace rheo::inline v0
