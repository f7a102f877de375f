#pragma once
// SPDX-License-Identifier: Apache-2.0

// What the worker does about clocks: after each computation the clock of the next one is requested, so that it has changed while
// its input is waited for; and the device accounts for what was computed. Where there is no device nothing happens.

#include <chrono>
#include <cstddef>
#include <span>
#include <thread>

#include "executor/clocks/clock_sweep.hpp"
#include "executor/clocks/rank_device.hpp"
#include "executor/mpi/messenger.hpp"
#include "rheo/schedule/core/instruction.hpp"

namespace rheo::inline v0 {

class instruction_clocks {
public:
    instruction_clocks() = default;

    /// A row begins. @param clocks of its computations, in their order; none: all at the highest clock
    /// @param slowness of an emulated device  @param stages of one copy of the model
    instruction_clocks(rank_device* device, std::span<megahertz const> clocks, double slowness, int stages)
        : device_{device}, clocks_{clocks}, slowness_{slowness}, stages_{stages}
    {
        request_next();
    }

    /// An instruction has ended that ran that long. Where its device is not done yet `progress` is called until it is; then it returns.
    template <class Progress>
    power::computation ended(instruction i, seconds ran, Progress&& progress)
    {
        if (device_ == nullptr || !is_compute(i.kind)) {
            return {};
        }
        auto const begins_to_wait = std::chrono::steady_clock::now();
        auto const account = device_->computed(i.kind, stage_id{i.stage % stages_}, ran, slowness_);
        request_next();
        for (seconds rest = account.time - ran; rest > seconds{}; rest = account.time - ran - since(begins_to_wait)) {
            std::this_thread::sleep_for(std::chrono::duration<double>{std::min(rest, longest_sleep).count});
            progress();
        }
        auto& sum = sums_[{i.stage % stages_, i.kind}];
        ++sum.count;
        sum.time += account.time;
        sum.energy += account.energy;
        if (account.expected > seconds{}) {
            took_ += account.time;
            expected_ += account.expected;
        }
        return account;
    }

    /// How many times as long as by the profile its computations took so far; 0: not known.
    double slowness() const { return expected_ > seconds{} ? took_ / expected_ : 0.0; }

    /// All its computations so far.
    computed_sums const& sums() const { return sums_; }

private:
    static constexpr seconds longest_sleep = microseconds(500);

    static seconds since(std::chrono::steady_clock::time_point then)
    {
        return {std::chrono::duration<double>(std::chrono::steady_clock::now() - then).count()};
    }

    void request_next()
    {
        if (device_ == nullptr || !device_->sets_clocks()) {
            return;
        }
        if (clocks_.empty()) {
            device_->request({});
        } else if (next_ < clocks_.size()) {
            if (auto const clock = clocks_[next_++]; clock.count > 0.0) {
                device_->request(clock);
            }
        }
    }

    rank_device* device_ = nullptr;
    std::span<megahertz const> clocks_;
    double slowness_ = 1.0;
    int stages_ = 1;
    std::size_t next_ = 0;
    seconds took_{};
    seconds expected_{};
    computed_sums sums_;
};

}  // namespace rheo::inline v0
