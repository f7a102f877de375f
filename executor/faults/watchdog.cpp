// SPDX-License-Identifier: Apache-2.0
#include "executor/faults/watchdog.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include "executor/os/background_thread.hpp"
#include "executor/os/process_state.hpp"

namespace rheo::inline v0 {

/// What a rank shows to the others of its host. A fresh page is all zero: no rank.
struct watchdog::slot {
    std::atomic<std::uint64_t> count;
    std::atomic<std::uint64_t> pid_namespace;
    std::atomic<std::uint64_t> started;  ///< the process, in the kernel's ticks: with the pid it names one process for ever
    std::atomic<std::int64_t> pid;       ///< 0: no process to watch; written last
    std::atomic<double> counted;         ///< joules of its device
    std::atomic<bool> shows;             ///< it has written them
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free && std::atomic<std::int64_t>::is_always_lock_free && std::atomic<double>::is_always_lock_free &&
              std::atomic<bool>::is_always_lock_free);

namespace {

/// One write, so that lines of several ranks do not mix and nothing is left in a buffer of a process that dies.
void say(std::string const& message)
{
    auto const line = "rheo: " + message + "\n";
    [[maybe_unused]] auto const written = ::write(STDERR_FILENO, line.data(), line.size());
}

std::uint64_t own_pid_namespace()
{
    struct stat information{};
    return ::stat("/proc/self/ns/pid", &information) == 0 ? static_cast<std::uint64_t>(information.st_ino) : 0;
}

}  // namespace

watchdog::watchdog(watchdog_config const& config, rank_id self) : config_{config}, self_{self}
{
    thread_ = background_thread([this] { run(); });
}

watchdog::~watchdog()
{
    {
        std::lock_guard const lock{mutex_};
        ends_ = true;
    }
    ended_.notify_one();
    thread_.join();
    leave_host();
}

void watchdog::join_host(std::uint64_t launch, int ranks)
{
    std::lock_guard const lock{mutex_};
    leave_host();
    if (config_.stopped <= seconds{}) {
        return;
    }
    auto const count = static_cast<std::size_t>(ranks);
    name_ = fmt::format("/rheo-{}-{:x}", ::getuid(), launch);
    int const file = ::shm_open(name_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    void* memory = MAP_FAILED;
    if (file >= 0 && ::ftruncate(file, static_cast<off_t>(count * sizeof(slot))) == 0) {
        memory = ::mmap(nullptr, count * sizeof(slot), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    }
    int const error = errno;
    if (file >= 0) {
        ::close(file);
    }
    if (memory == MAP_FAILED) {
        say(fmt::format("rank {}: no shared memory for the watch over stopped ranks ({}); continuing without it", self_.value, std::strerror(error)));
        return;
    }
    slots_ = static_cast<slot*>(memory);
    count_ = count;
    others_.assign(count, {});
    auto& mine = slots_[at(self_)];
    mine.pid_namespace = own_pid_namespace();
    mine.started = state_of(::getpid()).started;
    mine.pid = ::getpid();
}

void watchdog::all_joined()
{
    std::lock_guard const lock{mutex_};
    if (!name_.empty()) {
        ::shm_unlink(name_.c_str());
        name_.clear();
    }
}

void watchdog::leave_host()
{
    if (slots_ != nullptr) {
        slots_[at(self_)].pid = 0;
        ::munmap(slots_, count_ * sizeof(slot));
        slots_ = nullptr;
        count_ = 0;
    }
    if (!name_.empty()) {
        ::shm_unlink(name_.c_str());
        name_.clear();
    }
}

void watchdog::shows(joules counted) noexcept
{
    if (slots_ != nullptr) {
        slots_[at(self_)].counted.store(counted.count, std::memory_order_relaxed);
        slots_[at(self_)].shows.store(true, std::memory_order_release);
    }
}

std::optional<joules> watchdog::shown_by(rank_id rank) const noexcept
{
    if (slots_ == nullptr || at(rank) >= count_ || !slots_[at(rank)].shows.load(std::memory_order_acquire)) {
        return std::nullopt;
    }
    return joules{slots_[at(rank)].counted.load(std::memory_order_relaxed)};
}

void watchdog::run()
{
    using clock = std::chrono::steady_clock;
    // Ten looks in the shortest time that matters, and never so many that they cost something.
    auto const shortest = config_.stopped > seconds{} ? std::min(config_.least, config_.stopped) : config_.least;
    std::chrono::duration<double> const tick{std::clamp(shortest.count / 10, 0.005, 0.25)};
    std::unique_lock lock{mutex_};
    for (auto before = clock::now(); !ended_.wait_for(lock, tick, [this] { return ends_; });) {
        auto const now = clock::now();
        seconds const passed{std::chrono::duration<double>(std::min<std::chrono::duration<double>>(now - before, 2 * tick)).count()};
        before = now;
        look_at_own(passed);
        look_at_others(passed);
    }
}

void watchdog::look_at_own(seconds passed)
{
    auto const signs = signs_.load(std::memory_order_relaxed);
    auto const still = own_.observe(signs, passed);
    auto const blocked = blocked_.observe(signs, passed);
    auto const deadline = deadline_of(config_, own_);
    if (waiting_.load(std::memory_order_relaxed) > 0) {
        own_.forgive();
        auto const code = code_of_end_.load(std::memory_order_relaxed);
        if (config_.factor > 0 && code >= 0 && blocked > deadline) {
            say(fmt::format("rank {}: the other ranks have not ended within {:.1f} s: the rank ends without them; all that it had to write is written",
                            self_.value, blocked.count));
            ::_exit(code);
        }
        if (config_.factor > 0 && blocked > longest_wait_of(deadline)) {
            say(fmt::format("rank {}: an agreement with the other ranks has taken {:.1f} s, which none can take as long as ranks live: the rank ends itself",
                            self_.value, blocked.count));
            ::kill(::getpid(), SIGKILL);
        }
        return;
    }
    if (config_.factor > 0 && still > deadline) {
        say(fmt::format("rank {}: an operation has taken {:.1f} s, its deadline is {:.1f} s: the rank ends itself", self_.value, still.count, deadline.count));
        ::kill(::getpid(), SIGKILL);
    }
}

void watchdog::look_at_others(seconds passed)
{
    if (slots_ == nullptr) {
        return;
    }
    auto& mine = slots_[at(self_)];
    mine.count.fetch_add(1, std::memory_order_relaxed);
    // Each rank looks at those after it, round the circle, up to the first that counts: that one looks further. So a stopped rank
    // is seen by the nearest living one before it, and the looks of all together are as many as the ranks.
    for (std::size_t distance = 1; distance < count_; ++distance) {
        auto const r = (at(self_) + distance) % count_;
        auto& other = slots_[r];
        if (other.pid.load() == 0 || other.pid_namespace != mine.pid_namespace) {
            continue;
        }
        auto& watched = others_[r];
        if (watched.counts.observe(other.count.load(std::memory_order_relaxed), passed) == seconds{}) {
            watched.was_stopped = false;
            return;
        }
        judge(r, watched);
    }
}

/// A rank that does not count may only have no processor: it is killed when it is in the state of a stopped process, and was so
/// half of the time ago already.
void watchdog::judge(std::size_t r, other_rank& watched)
{
    auto& other = slots_[r];
    auto const still = watched.counts.still;
    if (still < config_.stopped * (watched.was_stopped ? 1.0 : 0.5)) {
        return;
    }
    auto const pid = other.pid.load();
    auto const state = state_of(pid);
    if (state.letter == 'X' || state.letter == 'Z' || state.started != other.started) {
        other.pid = 0;  // it is dead already
        return;
    }
    if (state.letter == 'T' && !watched.was_stopped) {
        watched.was_stopped = true;
        return;
    }
    watched.was_stopped = false;
    watched.counts.forgive();
    if (state.letter == 'T' && kill_exactly(pid, other.started)) {  // not t: a debugger holds it
        say(fmt::format("rank {}: rank {} on the same host (process {}) has stood still for {:.1f} s and is killed", self_.value, r, pid, still.count));
    }
}

}  // namespace rheo::inline v0
