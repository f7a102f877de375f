// SPDX-License-Identifier: Apache-2.0
#include "executor/power/devices/energy_sampler.hpp"

#include <utility>

#include "executor/os/background_thread.hpp"

namespace rheo::inline v0::power {

energy_sampler::energy_sampler(any_power_device device, seconds pause) : device_{std::move(device)}, pause_{pause.count}
{
    if (auto const first = device_.energy()) {
        meter_.observe(since_epoch(std::chrono::steady_clock::now()), *first);
    }
    thread_ = background_thread([this] { run(); });
}

energy_sampler::~energy_sampler()
{
    {
        std::lock_guard const lock{mutex_};
        ends_ = true;
    }
    wake_.notify_one();
    thread_.join();
}

void energy_sampler::run()
{
    std::unique_lock lock{mutex_};
    while (!wake_.wait_for(lock, pause_, [&] { return ends_; })) {
        lock.unlock();
        auto const energy = device_.energy();
        auto const now = std::chrono::steady_clock::now();
        lock.lock();
        if (energy) {
            meter_.observe(since_epoch(now), *energy);
        }
    }
}

joules energy_sampler::at(moment when)
{
    std::lock_guard const lock{mutex_};
    return meter_.begun() ? meter_.at(since_epoch(when)) : joules{};
}

}  // namespace rheo::inline v0::power
