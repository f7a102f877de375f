#pragma once
// SPDX-License-Identifier: Apache-2.0

// A network of operations with a flow through it: when each event happens, the flow on each arc, and how much more or less it may carry at these
// times, a piece of its cost curve at a time. What may change is kept as residual arcs, by event.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "rheo/energy/frontier/activity_network.hpp"
#include "rheo/units/expects.hpp"

namespace rheo::inline v0::detail {

template <class OnlyWhenCalled = void>
class residual_network {
public:
    static constexpr std::int64_t unlimited = std::numeric_limits<std::int64_t>::max() / 4;
    static constexpr std::int32_t never = std::numeric_limits<std::int32_t>::max();

    /// A residual arc: open while it has room; its reduced length is potential[to] - potential[here] + length >= 0.
    struct residual {
        int to;
        int partner;
        int arc;
        std::int32_t length;
        std::int64_t room;
    };

    /// No flow, and every operation at its slowest. @pre each operation has a curve; the slowest time fits into 2^31 ticks
    constexpr explicit residual_network(activity_network const& p)
    {
        for (auto const& curve : p.curves) {
            first_.push_back(static_cast<int>(times_.size()));
            for (std::size_t k = 0; k < curve.times.size(); ++k) {
                times_.push_back(curve.times[k].count);
                slopes_.push_back(k < curve.slopes.size() ? curve.slopes[k].count : 0);
            }
        }
        std::vector<std::int64_t> cost_of_slowest;
        for (auto const& curve : p.curves) {
            cost_of_slowest.push_back(cost_at(curve, curve.times.back()).count);
        }
        for (auto const& arc : p.network.arcs) {
            auto const* curve = curve_of(p, arc);
            if (curve == nullptr) {
                arcs_.push_back({static_cast<int>(times_.size()), static_cast<int>(times_.size()), 0, 0, 0});
                times_.push_back(least_time(p, arc).count);
                slopes_.push_back(0);
            } else {
                auto const which = static_cast<std::size_t>(p.curve_of[static_cast<std::size_t>(arc.operation)]);
                auto const pieces = static_cast<int>(curve->slopes.size());
                arcs_.push_back({first_[which], first_[which] + pieces, 0, 0, 0});
                cost_ += cost_of_slowest[which];
            }
        }
        begin_at_the_slowest(p.network);
        lay_out(p.network);
    }

    /// What the plan costs with every operation at its slowest.
    constexpr std::int64_t cost_of_slowest() const { return cost_; }
    /// When each event happens.
    constexpr std::vector<std::int32_t> const& potentials() const { return potentials_; }
    /// An event happens so much earlier.
    constexpr void advance(std::size_t event, std::int32_t by) { potentials_[event] -= by; }
    /// Event -> its first residual arc.
    constexpr std::vector<int> const& begins() const { return begins_; }
    constexpr residual const& operator[](int place) const { return residuals_[static_cast<std::size_t>(place)]; }
    constexpr std::int32_t reduced_length(std::size_t here, residual const& r) const
    {
        return potentials_[static_cast<std::size_t>(r.to)] - potentials_[here] + r.length;
    }

    /// Adds flow along a residual arc.
    constexpr void push(int place, std::int64_t amount)
    {
        auto& arc = arcs_[static_cast<std::size_t>(residuals_[static_cast<std::size_t>(place)].arc)];
        arc.flow += arc.forward == place ? amount : -amount;
        refresh(arc);
    }

    /// The flow on each arc, in nanojoules per tick.
    constexpr std::vector<std::int64_t> flows() const
    {
        std::vector<std::int64_t> result;
        for (auto const& arc : arcs_) {
            result.push_back(arc.flow);
        }
        return result;
    }

private:
    struct arc_state {
        int first;     ///< its fastest breakpoint
        int piece;     ///< the breakpoint at which more flow would go: slopes[piece] <= flow < slopes[piece - 1]
        int forward;   ///< place of the residual arc in the direction of the arc
        int backward;  ///< and against it
        std::int64_t flow;
    };

    constexpr void begin_at_the_slowest(event_network const& network)
    {
        std::vector<std::int64_t> earliest(static_cast<std::size_t>(network.events), 0);
        for (std::size_t a = 0; a < arcs_.size(); ++a) {
            auto const& arc = network.arcs[a];
            expects(arc.from < arc.to && (a == 0 || network.arcs[a - 1].to <= arc.to), "the arcs of a network come in the order of their ends");
            auto const end = earliest[static_cast<std::size_t>(arc.from)] + times_[static_cast<std::size_t>(arcs_[a].piece)];
            earliest[static_cast<std::size_t>(arc.to)] = std::max(earliest[static_cast<std::size_t>(arc.to)], end);
        }
        for (auto const time : earliest) {
            expects(time < never, "the slowest plan takes more ticks than can be counted: choose a coarser unit");
            potentials_.push_back(static_cast<std::int32_t>(time));
        }
    }

    constexpr void lay_out(event_network const& network)
    {
        auto const n = static_cast<std::size_t>(network.events);
        begins_.assign(n + 1, 0);
        for (auto const& arc : network.arcs) {
            ++begins_[static_cast<std::size_t>(arc.from) + 1];
            ++begins_[static_cast<std::size_t>(arc.to) + 1];
        }
        for (std::size_t v = 0; v < n; ++v) {
            begins_[v + 1] += begins_[v];
        }
        std::vector<int> free(begins_.begin(), begins_.end() - 1);
        residuals_.resize(2 * arcs_.size());
        for (std::size_t a = 0; a < arcs_.size(); ++a) {
            auto const from = network.arcs[a].from;
            auto const to = network.arcs[a].to;
            auto const forward = free[static_cast<std::size_t>(from)]++;
            auto const backward = free[static_cast<std::size_t>(to)]++;
            arcs_[a].forward = forward;
            arcs_[a].backward = backward;
            residuals_[static_cast<std::size_t>(forward)] = {to, backward, static_cast<int>(a), 0, 0};
            residuals_[static_cast<std::size_t>(backward)] = {from, forward, static_cast<int>(a), 0, 0};
            refresh(arcs_[a]);
        }
    }

    /// Where the flow on an arc stands among its slopes, and what that leaves of room on either side.
    constexpr void refresh(arc_state& arc)
    {
        auto const slope = [&](int piece) { return slopes_[static_cast<std::size_t>(piece)]; };
        while (arc.piece > arc.first && arc.flow >= slope(arc.piece - 1)) {
            --arc.piece;
        }
        while (arc.flow < slope(arc.piece)) {
            ++arc.piece;
        }
        auto& forward = residuals_[static_cast<std::size_t>(arc.forward)];
        forward.length = -times_[static_cast<std::size_t>(arc.piece)];
        forward.room = arc.piece == arc.first ? unlimited : slope(arc.piece - 1) - arc.flow;
        auto& backward = residuals_[static_cast<std::size_t>(arc.backward)];
        auto const piece = arc.flow == slope(arc.piece) && arc.flow > 0 ? arc.piece + 1 : arc.piece;
        backward.length = times_[static_cast<std::size_t>(piece)];
        backward.room = arc.flow - slope(piece);
    }

    std::vector<int> first_;  ///< curve -> its first breakpoint in the two tables
    std::vector<std::int32_t> times_;
    std::vector<std::int64_t> slopes_;  ///< from each breakpoint to the next; 0 after the last of a curve
    std::vector<arc_state> arcs_;
    std::vector<residual> residuals_;  ///< by event
    std::vector<int> begins_;          ///< event -> its first residual arc
    std::vector<std::int32_t> potentials_;
    std::int64_t cost_ = 0;
};

}  // namespace rheo::inline v0::detail
