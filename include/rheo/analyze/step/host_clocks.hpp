#pragma once
// SPDX-License-Identifier: Apache-2.0

// Clocks of several hosts. Ranks record times by the clock of their host, which is set at launch and drifts. A vote ends everywhere at once, so its ends
// show how far a host's clock is from the others'. Ranks of one host share a clock, so differences between their ends are not corrected.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "rheo/analyze/distribution.hpp"
#include "rheo/topology/tagged_index.hpp"
#include "rheo/trace/event.hpp"
#include "rheo/units/array_view.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

/// Rank -> the number of its host; ranks beyond the end are on host 0.
using hosts_of_ranks = std::vector<int>;

namespace detail {

inline int host_of(array_view<int const> hosts, rank_id rank) { return at(rank) < hosts.size() ? hosts[at(rank)] : 0; }

}  // namespace detail

/// Host -> how much later its clock is than the median of the hosts': over the votes that ranks of two hosts or more took part in, the median of how much
/// later the last of the host's ranks ended. Cost: linear in the events, log of the votes.
template <class OnlyWhenCalled = void>
std::vector<seconds> host_clocks(array_view<trace_event const> events, array_view<int const> hosts)
{
    int count = 1;
    for (auto const host : hosts) {
        count = std::max(count, host + 1);
    }
    auto const all = static_cast<std::size_t>(count);
    std::vector<seconds> clocks(all);
    if (count == 1) {
        return clocks;
    }
    struct last_end {
        bool known = false;
        seconds end{};
    };
    std::map<std::tuple<generation_id, step_id, attempt_id>, std::vector<last_end>> votes;  // by host
    for (auto const& e : events) {
        if (e.activity == activity::decide) {
            auto& ends = votes[{e.generation, e.step, e.attempt}];
            ends.resize(all);
            auto& mine = ends[static_cast<std::size_t>(detail::host_of(hosts, e.rank))];
            mine = {true, mine.known ? std::max(mine.end, e.end) : e.end};
        }
    }
    std::vector<std::vector<seconds>> later(all);
    for (auto const& [vote, ends] : votes) {
        std::vector<seconds> known;
        for (auto const& one : ends) {
            if (one.known) {
                known.push_back(one.end);
            }
        }
        if (known.size() < 2) {
            continue;
        }
        auto const middle = lower_median(known);
        for (std::size_t h = 0; h < all; ++h) {
            if (ends[h].known) {
                later[h].push_back(ends[h].end - middle);
            }
        }
    }
    for (std::size_t h = 0; h < all; ++h) {
        clocks[h] = later[h].empty() ? seconds{} : lower_median(later[h]);
    }
    return clocks;
}

/// Puts the times of all ranks on one clock. @param clocks of host_clocks
template <class OnlyWhenCalled = void>
void align_clocks(std::vector<trace_event>& events, array_view<int const> hosts, array_view<seconds const> clocks)
{
    for (auto& e : events) {
        auto const later = clocks[static_cast<std::size_t>(detail::host_of(hosts, e.rank))];
        e.start -= later;
        e.end -= later;
    }
}

}  // namespace rheo::inline v0
