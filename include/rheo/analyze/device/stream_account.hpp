#pragma once
// SPDX-License-Identifier: Apache-2.0

// The gaps of each stream: what runs on other streams meanwhile does not fill them. A stream runs one after the other as a rule; where
// events of one stream overlap, a gap begins when the last of them has ended.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "rheo/analyze/device/gap.hpp"
#include "rheo/analyze/device/rank_trace.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

struct stream_account {
    std::int64_t events = 0;
    whole_nanoseconds busy{};
    whole_nanoseconds host_wait{};
    whole_nanoseconds kernel_wait{};
    whole_nanoseconds other_wait{};

    friend constexpr bool operator==(stream_account const&, stream_account const&) = default;
};

/// All gaps of a stream.
constexpr whole_nanoseconds gaps(stream_account const& account) { return account.host_wait + account.kernel_wait + account.other_wait; }

/// An account for each stream of the trace. @pre the trace is in order. Cost: linear.
template <class OnlyWhenCalled = void>
std::vector<stream_account> stream_accounts(rank_trace const& trace)
{
    std::vector<stream_account> accounts(trace.streams.size());
    std::vector<whole_nanoseconds> until(trace.streams.size());
    for (auto const& event : trace.events) {
        auto& account = accounts[event.stream];
        auto& idle_since = until[event.stream];
        if (account.events++ == 0) {
            idle_since = event.begin;
        }
        if (event.begin > idle_since) {
            switch (cause_of_gap(trace, event, idle_since)) {
            case gap_cause::host_wait: account.host_wait += event.begin - idle_since; break;
            case gap_cause::kernel_wait: account.kernel_wait += event.begin - idle_since; break;
            case gap_cause::other: account.other_wait += event.begin - idle_since; break;
            }
        }
        account.busy += std::max(whole_nanoseconds{}, event.end - std::max(idle_since, event.begin));
        idle_since = std::max(idle_since, event.end);
    }
    return accounts;
}

}  // namespace rheo::inline v0
