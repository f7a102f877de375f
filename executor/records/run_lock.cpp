// SPDX-License-Identifier: Apache-2.0
#include "executor/records/run_lock.hpp"

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <string_view>
#include <thread>

#include <fcntl.h>
#include <unistd.h>

#include <fmt/format.h>

#include "executor/records/records.hpp"
#include "rheo/units/exit_error.hpp"

namespace rheo::inline v0 {

namespace {

int opened(std::string const& folder)
{
    auto const name = folder + "/lock";
    int const descriptor = ::open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (descriptor < 0) {
        throw exit_error{exit_code::environment, fmt::format("run folder: '{}' cannot be made: {}", name, std::strerror(errno))};
    }
    return descriptor;
}

/// 0 when it has the lock, else errno.
int locked(int descriptor, short type)
{
    struct flock all = {};
    all.l_type = type;
    all.l_whence = SEEK_SET;
    int code = 0;
    do {
        code = ::fcntl(descriptor, F_OFD_SETLK, &all);  // changes from one type to the other without a moment between
    } while (code != 0 && errno == EINTR);
    return code == 0 ? 0 : errno;
}

bool is_held_by_others(int error) { return error == EAGAIN || error == EACCES; }

std::string about_this_launch()
{
    char host[256] = "";
    ::gethostname(host, sizeof host - 1);
    auto const now = std::time(nullptr);
    std::tm parts{};
    ::gmtime_r(&now, &parts);
    char time[32] = "";
    std::strftime(time, sizeof time, "%Y-%m-%d %H:%M:%S UTC", &parts);
    return fmt::format("begun {} by process {} on host {}\n", time, ::getpid(), host);
}

/// What the launch that holds the lock has written about itself.
std::string about_the_other(int descriptor)
{
    std::array<char, 512> text{};
    auto const length = ::pread(descriptor, text.data(), text.size(), 0);
    std::string_view const all{text.data(), length > 0 ? static_cast<std::size_t>(length) : 0};
    auto const line = all.substr(0, all.find('\n'));
    return line.empty() ? "" : fmt::format(", {}", line);
}

std::string no_locks(std::string const& folder, int error)
{
    return fmt::format("run folder {}: its file system has no locks ({}), so nothing keeps a second launch out of it", folder, std::strerror(error));
}

}  // namespace

lock_answer run_lock::take(std::string const& folder, seconds patience)
{
    release();
    descriptor_ = opened(folder);
    auto const end = std::chrono::steady_clock::now() + std::chrono::duration<double>{patience.count};
    int error = locked(descriptor_, F_WRLCK);
    while (is_held_by_others(error) && std::chrono::steady_clock::now() < end) {
        std::this_thread::sleep_for(std::chrono::milliseconds{50});
        error = locked(descriptor_, F_WRLCK);
    }
    if (is_held_by_others(error)) {
        auto const other = about_the_other(descriptor_);
        release();
        return {false, fmt::format("run folder {0}: another launch is at work in it{1}; {0}/ranks has the processes of its ranks. SIGTERM to one of them ends "
                                   "it after a step, with a checkpoint, and then the same command resumes",
                                   folder, other)};
    }
    if (error != 0) {
        release();
        return {true, no_locks(folder, error)};
    }
    auto const text = about_this_launch();
    if (::ftruncate(descriptor_, 0) != 0 || ::pwrite(descriptor_, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) {
        throw exit_error{exit_code::environment, fmt::format("run folder: '{}/lock' cannot be written: {}", folder, std::strerror(errno))};
    }
    if (int const shared = locked(descriptor_, F_RDLCK); shared != 0) {
        release();
        return {true, no_locks(folder, shared)};
    }
    return {true, {}};
}

lock_answer run_lock::join(std::string const& folder)
{
    release();
    descriptor_ = opened(folder);
    int const error = locked(descriptor_, F_RDLCK);
    if (is_held_by_others(error)) {  // the rank that took it has died, and another launch came first
        auto const other = about_the_other(descriptor_);
        release();
        return {false, fmt::format("run folder {}: another launch has taken it{}", folder, other)};
    }
    if (error != 0) {
        release();  // the rank that began has reported it
    }
    return {true, {}};
}

std::optional<bool> run_lock::is_held(std::string const& folder)
{
    int const descriptor = ::open((folder + "/lock").c_str(), O_RDWR | O_CLOEXEC);
    if (descriptor < 0) {
        return errno == ENOENT ? std::optional{false} : std::nullopt;
    }
    struct flock all = {};
    all.l_type = F_WRLCK;
    int const code = ::fcntl(descriptor, F_OFD_GETLK, &all);
    ::close(descriptor);
    return code == 0 ? std::optional{all.l_type != F_UNLCK} : std::nullopt;
}

void run_lock::release() noexcept
{
    if (descriptor_ >= 0) {
        ::close(std::exchange(descriptor_, -1));
    }
}

}  // namespace rheo::inline v0
