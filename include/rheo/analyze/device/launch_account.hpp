#pragma once
// SPDX-License-Identifier: Apache-2.0

// What launches say about kernels: those that took less time to run than to launch, so that no host could keep the device busy with them, and
// how long work waited from the end of its launch to its begin.

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "rheo/analyze/device/rank_trace.hpp"
#include "rheo/analyze/distribution.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

struct launch_account {
    std::int64_t kernels = 0;        ///< that compute and whose launch is known
    std::int64_t short_kernels = 0;  ///< of those, shorter than their launch
    distribution delay;              ///< of all work whose launch is known; 0 where it began before the call had returned

    friend constexpr bool operator==(launch_account const&, launch_account const&) = default;
};

/// @pre the trace is in order. Cost: linear.
template <class OnlyWhenCalled = void>
launch_account launches_of(rank_trace const& trace)
{
    launch_account account;
    std::vector<whole_nanoseconds> delays;
    delays.reserve(trace.launches.size());
    for (auto const& event : trace.events) {
        if (event.launch == no_launch) {
            continue;
        }
        auto const& launch = trace.launches[event.launch];
        delays.push_back(std::max(whole_nanoseconds{}, event.begin - launch.end));
        if (event.work == device_work::compute) {
            ++account.kernels;
            account.short_kernels += event.end - event.begin < launch.end - launch.begin ? 1 : 0;
        }
    }
    account.delay = distribution_of(std::move(delays));
    return account;
}

}  // namespace rheo::inline v0
