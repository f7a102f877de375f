#pragma once
// SPDX-License-Identifier: Apache-2.0

// Seconds since the launch message, by the steady clock: no host's time of day counts, since one that is ahead would end a
// limited job at once. Zero is the same moment on all ranks of a host; on another host it is later by the way of the message.

#include <chrono>

#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

class launch_clock {
public:
    /// @param launched when the launch message was sent, by this host's steady clock
    explicit launch_clock(std::chrono::steady_clock::time_point launched = {}) : launched_{launched} {}

    seconds now() const { return {std::chrono::duration<double>(std::chrono::steady_clock::now() - launched_).count()}; }
    seconds since(seconds start) const { return now() - start; }

private:
    std::chrono::steady_clock::time_point launched_;
};

}  // namespace rheo::inline v0
