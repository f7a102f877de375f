// SPDX-License-Identifier: Apache-2.0
#include "executor/power/devices/emulated_device.hpp"

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <utility>

#include <unistd.h>

#include "rheo/units/expects.hpp"

namespace rheo::inline v0::power {

struct emulated_device::state {
    emulated_options options;
    std::map<std::pair<int, instruction_kind>, std::vector<clock_option>> rows;  ///< highest clock first
    std::vector<megahertz> clocks;                                               ///< highest first

    mutable std::mutex mutex;  // of all below
    megahertz clock{};
    megahertz next{};  ///< requested; it is there from `from` on
    seconds from{};
    seconds begun{};
    seconds busy{};    ///< spent in computations since then
    joules counted{};  ///< by them
    joules reported{};

    /// Keeps the options of every computation of the profile, highest clock first.
    void take(profile const& measured)
    {
        rows.clear();
        for (auto const& row : measured.rows) {
            auto& options_here = rows[{row.stage.value, row.kind}];
            if (options_here.empty()) {
                options_here = options_of(measured, options.rank, row.stage, row.kind);
                std::sort(options_here.begin(), options_here.end(), [](clock_option a, clock_option b) { return a.clock > b.clock; });
            }
        }
    }

    /// The clock that there was at a time.
    megahertz at(seconds when) const { return when >= from ? next : clock; }
};

emulated_device::emulated_device(profile const& measured, emulated_options options) : state_{std::make_shared<state>()}
{
    auto& s = *state_;
    s.options = std::move(options);
    if (!s.options.now) {
        s.options.now = [] { return seconds{std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count()}; };
    }
    s.take(measured);
    for (auto const& row : measured.rows) {
        if (row.clock > megahertz{} && !row.throttled) {
            s.clocks.push_back(row.clock);
        }
    }
    std::sort(s.clocks.begin(), s.clocks.end(), std::greater<>{});
    s.clocks.erase(std::unique(s.clocks.begin(), s.clocks.end()), s.clocks.end());
    expects(s.clocks.size() >= 2, "a device is emulated from a profile with at least two clocks");
    s.clock = s.next = s.clocks.front();
    s.begun = s.options.now();
}

std::string emulated_device::name() const { return "emulated from a profile of " + std::to_string(state_->clocks.size()) + " clocks"; }

std::string emulated_device::key() const { return "emulated-" + std::to_string(::getpid()) + "-" + std::to_string(state_->options.rank.value); }

device_result<std::vector<megahertz>> emulated_device::clocks() const { return state_->clocks; }

device_result<done> emulated_device::lock(megahertz clock)
{
    auto& s = *state_;
    if (std::find(s.clocks.begin(), s.clocks.end(), clock) == s.clocks.end()) {
        return device_error{device_error_code::failed, std::to_string(clock.count) + " MHz is not a clock of the profile"};
    }
    std::lock_guard const lock{s.mutex};
    auto const now = s.options.now();
    s.clock = s.at(now);
    s.next = clock;
    s.from = now + s.options.switch_latency;
    return done{};
}

device_result<done> emulated_device::restore() { return lock(state_->clocks.front()); }

device_result<megahertz> emulated_device::clock_now() const
{
    std::lock_guard const lock{state_->mutex};
    return state_->at(state_->options.now());
}

device_result<joules> emulated_device::energy() const
{
    auto& s = *state_;
    std::lock_guard const lock{s.mutex};
    auto const idle = s.options.now() - s.begun - s.busy;
    auto const counted = s.counted + s.options.blocking * (idle > seconds{} ? idle : seconds{});
    s.reported = std::max(s.reported, counted);  // the rest of a stretched computation has not passed yet when it is counted
    return s.reported;
}

void emulated_device::computes(profile const& measured)
{
    std::lock_guard const lock{state_->mutex};
    state_->take(measured);
}

computation emulated_device::computed(instruction_kind kind, stage_id stage, seconds took, double slowness)
{
    auto& s = *state_;
    std::lock_guard const lock{s.mutex};
    auto const clock = s.at(s.options.now() - took);
    auto const found = s.rows.find({stage.value, kind});
    if (found == s.rows.end() || found->second.empty()) {
        return {clock, {}, took, {}};
    }
    auto const& options = found->second;
    auto const* chosen = &options.front();  // the lowest that is not below the clock
    for (auto const& one : options) {
        chosen = one.clock >= clock ? &one : chosen;
    }
    double const share = s.options.pace == emulated_pace::profile ? 1.0 : took / options.front().time;
    auto const whole = chosen->time * share;
    auto const energy = chosen->energy * share;
    s.busy += whole;
    s.counted += energy;
    return {clock, energy + s.options.blocking * (slowness - 1.0) * whole, whole * slowness, whole};
}

}  // namespace rheo::inline v0::power
