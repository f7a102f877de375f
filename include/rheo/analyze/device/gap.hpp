#pragma once
// SPDX-License-Identifier: Apache-2.0

// Why nothing ran between two events. The rules are those of Holistic Trace Analysis (Meta), with its threshold of 30 as microseconds, which
// it calls nanoseconds: who launched too late makes a host wait; a short gap is what a device needs between two kernels; the rest waits for
// something else, an event of another stream for example.

#include <cstdint>

#include "rheo/analyze/device/rank_trace.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

enum class gap_cause : std::uint8_t { host_wait, kernel_wait, other };

/// A gap from here on is no mere change of kernels.
inline constexpr whole_nanoseconds kernel_wait_limit{30'000};

/// Why nothing ran from `idle_since` until the event began. An event without a known launch was not late for the host.
constexpr gap_cause cause_of_gap(rank_trace const& trace, device_event const& event, whole_nanoseconds idle_since)
{
    if (event.launch != no_launch && trace.launches[event.launch].begin > idle_since) {
        return gap_cause::host_wait;
    }
    return event.begin - idle_since < kernel_wait_limit ? gap_cause::kernel_wait : gap_cause::other;
}

}  // namespace rheo::inline v0
