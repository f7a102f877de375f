// SPDX-License-Identifier: Apache-2.0
#include "executor/power/clock_setter.hpp"

#include <algorithm>
#include <array>
#include <chrono>

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "executor/os/background_thread.hpp"
#include "rheo/units/expects.hpp"

namespace rheo::inline v0::power {

namespace {

std::int64_t now_in_nanoseconds() { return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

}  // namespace

clock_setter::clock_setter(any_power_device device, setter_config config)
    : config_{std::move(config)}, ladder_{choose_rung(std::move(device), config_.ladder, probing::look)}, wake_fd_{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)}
{
    expects(static_cast<bool>(wake_fd_), "there is a descriptor left for the wake-up of the clock setter");
    thread_ = background_thread([this] { run(); });
}

clock_setter::~clock_setter()
{
    ends_ = true;
    wake();
    thread_.join();
}

void clock_setter::wake() noexcept
{
    std::uint64_t const one = 1;
    [[maybe_unused]] auto const rung = ::write(wake_fd_.get(), &one, sizeof one);
}

void clock_setter::request(megahertz clock) noexcept
{
    if (requested_clock_.load(std::memory_order_relaxed) == clock.count) {
        return;
    }
    requested_at_.store(now_in_nanoseconds(), std::memory_order_relaxed);
    requested_clock_.store(clock.count, std::memory_order_release);
    requests_.fetch_add(1, std::memory_order_release);
    wake();
}

setter_status clock_setter::status() const
{
    std::lock_guard const lock{mutex_};
    return status_;
}

bool clock_setter::settled_within(seconds patience) const
{
    auto const deadline = now_in_nanoseconds() + in_whole_nanoseconds(patience);
    while (!status().ready || handled_.load() < requests_.load()) {
        if (now_in_nanoseconds() > deadline) {
            return false;
        }
        std::this_thread::sleep_for(std::chrono::microseconds{200});
    }
    return true;
}

void clock_setter::report(std::string const& message)
{
    if (config_.say) {
        config_.say(message);
    }
}

void clock_setter::note_rung()
{
    auto const message = ladder_.message();
    {
        std::lock_guard const lock{mutex_};
        if (advises_ || (status_.ready && status_.message == message)) {
            return;
        }
        status_.ready = true;
        status_.rung = ladder_.rung();
        status_.message = message;
    }
    report(message);
}

void clock_setter::advise(std::string const& why)
{
    advises_ = true;
    auto const message = "clocks are advised only: " + why;
    {
        std::lock_guard const lock{mutex_};
        status_.ready = true;
        status_.rung = clock_rung::advise_only;
        status_.message = message;
        status_.holds.reset();
    }
    report(message);
}

bool clock_setter::charge_guardian()
{
    if (back_.empty()) {
        return true;  // nothing is ever left behind
    }
    auto const program = guardian_program(config_.guardian);
    auto started = program ? guardian::start(*program) : device_result<guardian>{program.error()};
    auto const armed = started ? started->arm(claim_->file(), back_) : device_result<done>{started.error()};
    if (!armed) {
        if (started) {
            started->dismiss();
        }
        advise(armed.error().message);
        return false;
    }
    guardian_.emplace(std::move(*started));
    return true;
}

bool clock_setter::begin()
{
    if (ladder_.rung() == clock_rung::advise_only) {
        note_rung();
        return false;
    }
    auto claim = device_claim::join(config_.claims, ladder_.device().key());
    if (!claim) {
        advise(claim.error().message);
        return false;
    }
    claim_.emplace(std::move(*claim));
    auto const back = claim_->begin([&](bool untouched) {
        if (untouched) {  // only then does it disturb no other process
            ladder_ = choose_rung(std::move(ladder_.device()), config_.ladder, probing::touch);
        }
        return ladder_.original();
    });
    if (!back) {
        advise(back.error().message);
        return false;
    }
    back_ = *back;
    if (ladder_.rung() == clock_rung::advise_only) {
        note_rung();
        return false;
    }
    if (!charge_guardian()) {
        return false;
    }
    note_rung();
    return true;
}

void clock_setter::follow_request()
{
    auto const requested = requested_clock_.load(std::memory_order_acquire);
    if (requested <= 0.0 || advises_ || requested == failed_) {
        return;
    }
    auto const since = requested_at_.load(std::memory_order_relaxed);
    std::int64_t took = 0;
    auto const result = claim_->request({requested}, [&](megahertz clock) {
        auto const begun = now_in_nanoseconds();
        auto const set = ladder_.lock(clock);
        took = now_in_nanoseconds() - begun;
        return set;
    });
    note_rung();
    {
        std::lock_guard const lock{mutex_};
        if (result) {
            status_.holds = result->holds;
            if (result->changed) {
                auto const latency = nanoseconds(static_cast<double>(took));
                auto const wait = nanoseconds(static_cast<double>(now_in_nanoseconds() - since));
                status_.switches += 1;
                status_.total += latency;
                status_.longest = std::max(status_.longest, latency);
                status_.longest_wait = result->holds == megahertz{requested} ? std::max(status_.longest_wait, wait) : status_.longest_wait;
            }
        } else {
            status_.failures += 1;
        }
    }
    failed_ = result ? 0.0 : requested;
    if (result) {
        said_.reset();
    } else if (ladder_.rung() != clock_rung::advise_only && said_ != result.error().code) {
        said_ = result.error().code;
        report("the clock is not set: " + result.error().message);
    }
}

void clock_setter::run()
{
    bool sets = begin();
    while (!ends_) {
        auto const seen = requests_.load(std::memory_order_acquire);
        if (sets) {
            follow_request();
        }
        handled_.store(seen);
        std::array<pollfd, 2> entries{{{wake_fd_.get(), POLLIN, 0}, {guardian_ ? guardian_->socket() : -1, POLLIN, 0}}};
        ::poll(entries.data(), guardian_ ? 2 : 1, sets ? static_cast<int>(in_milliseconds(config_.look)) : -1);
        std::uint64_t rings = 0;
        [[maybe_unused]] auto const cleared = ::read(wake_fd_.get(), &rings, sizeof rings);
        if (guardian_ && !guardian_->lives()) {
            guardian_->dismiss();
            guardian_.reset();
            if (charge_guardian()) {
                report("the guardian of the clocks had ended; another one is in charge");
            } else {
                sets = false;
                end();
            }
        }
    }
    end();
}

void clock_setter::end()
{
    if (!claim_) {
        return;
    }
    auto const left = claim_->leave([&] { return perform(back_); });
    claim_.reset();
    {
        std::lock_guard const lock{mutex_};
        status_.holds.reset();
    }
    if (!left) {
        report("the clock cannot be restored: " + left.error().message);
    }
    if (guardian_) {
        if (left) {
            guardian_->dismiss();
        }
        guardian_.reset();  // one that is still in charge tries
    }
}

}  // namespace rheo::inline v0::power
