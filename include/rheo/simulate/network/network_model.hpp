#pragma once
// SPDX-License-Identifier: Apache-2.0

// How long messages take, as a choice of four: whether they share links, and whether time is a double or a whole
// number of nanoseconds. The network (message_network.hpp) is one piece of code over any of them.

#include "rheo/simulate/network/integer_link.hpp"
#include "rheo/topology/link.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

/// A message on one link of its route: it holds the link for a while, and is at the next place later.
template <class Time>
struct link_passage {
    Time holds;     ///< the link, from the moment it begins
    Time per_hop;   ///< from there until it can begin on the next link
    Time last_hop;  ///< from there until it has arrived, on the last link
};

/// Links are shared; messages are passed on as they come (cut-through): a route that is free takes the sum of its latencies and
/// bytes / rate once. Levels are nested: a message takes the outermost level in which its ends differ.
struct contended_network {
    using link = modelled_link;
    using time = seconds;
    using rate = bytes_per_second;
    static constexpr bool shares_links = true;
    static constexpr bool has_own_links = false;  ///< the links of a level belong to the whole member, all its ranks share them

    static constexpr link_passage<time> passage(link l, bytes size) { return {size / l.bandwidth, l.latency, l.latency + size / l.bandwidth}; }
    static constexpr time way(link l, int hops, bytes size) { return l.latency * static_cast<double>(hops) + size / l.bandwidth; }
    static constexpr time sum(time a, time b) { return a + b; }
    /// To add what came: two operands are read, one is written. As ASTRA-sim reckons it.
    static constexpr time addition(bytes size, rate memory) { return 3.0 * (size / memory); }
    static constexpr bool fits(time t) { return t.count <= std::numeric_limits<double>::max(); }
};

/// The same without other messages on the way.
struct free_network : contended_network {
    static constexpr bool shares_links = false;
};

/// Whole nanoseconds, stored and forwarded hop by hop, each hop rounded down. Levels are dimensions: each rank has links of its own
/// in each of them, and a message takes the first in which its ends differ. As the congestion-aware analytical network of ASTRA-sim.
struct integer_contended_network {
    using link = integer_link;
    using time = whole_nanoseconds;
    using rate = bytes_per_nanosecond;
    static constexpr bool shares_links = true;
    static constexpr bool has_own_links = true;

    static double stream(bytes size, rate r) { return static_cast<double>(size.count) / r.count; }
    static link_passage<time> passage(link l, bytes size)
    {
        auto const hop = whole(l.latency_ns + stream(size, l.rate));
        return {whole(stream(size, l.rate)), hop, hop};
    }
    static time way(link l, int hops, bytes size) { return whole(hops * l.latency_ns + stream(size, l.rate)); }
    static constexpr time sum(time a, time b) { return saturating_sum(a, b); }
    static time addition(bytes size, rate memory)
    {
        auto const once = whole(stream(size, memory));
        return saturating_sum(once, saturating_sum(once, once));
    }
    static constexpr bool fits(time t) { return t < endless_nanoseconds; }
};

/// The same without other messages on the way, rounded once for the whole way. As its congestion-unaware one.
struct integer_free_network : integer_contended_network {
    static constexpr bool shares_links = false;
};

}  // namespace rheo::inline v0
