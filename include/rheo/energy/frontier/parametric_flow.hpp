#pragma once
// SPDX-License-Identifier: Apache-2.0

// The whole curve of least cost against time of a network of operations, from the slowest point to the fastest, by
// one parametric flow. It is the method of Fulkerson (Management Science 1961) and Kelley (Operations Research
// 1961), whose single step is the minimum cut with lower bounds of Phillips and Dessouky (1977) that Perseus takes:
//
// * the dual of "least cost at time T" is a flow whose value is the slope of the curve at T. An arc of tension
//   (time between its events) t carries at least what one tick more would save and at most what one tick less would cost;
// * that flow is maximal where the critical arcs are saturated. The cut then says who gets faster (arcs forward over
//   it, full) and who may get slower (backward, at their lower bound), and both bounds move with the times so that
//   the same flow stays feasible: it is kept from step to step and only ever augmented;
// * how far a cut reaches is a shortest path over the residual arcs (Dijkstra from all that the source still
//   reaches), so steps end at breakpoints instead of ticks, and every event learns its own share of the step.
//
// Whole numbers and a fixed order of arcs: the same plan on every machine. Each step ends in a vertex of the curve.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "rheo/energy/frontier/activity_network.hpp"
#include "rheo/units/expects.hpp"

namespace rheo::inline v0 {

template <class OnlyWhenCalled = void>
class parametric_flow {
public:
    /// @pre each operation has a curve; the slowest time fits into 2^31 ticks
    constexpr explicit parametric_flow(activity_network const& p)
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

    constexpr ticks time() const { return {potentials_.back()}; }
    constexpr nanojoules cost() const { return {cost_}; }
    /// What one tick less costs here, once `saturate` has been called.
    constexpr nanojoules slope() const { return {value_}; }
    /// When each event happens. The times of operations follow: as long as there is, up to the slowest.
    constexpr std::vector<std::int32_t> const& events() const { return potentials_; }
    /// The flow on each arc, in nanojoules per tick.
    constexpr std::vector<std::int64_t> flows() const
    {
        std::vector<std::int64_t> result;
        for (auto const& arc : arcs_) {
            result.push_back(arc.flow);
        }
        return result;
    }

    /// Makes the flow maximal at this time. False when no cost buys a tick less: this is the fastest time.
    constexpr bool saturate()
    {
        while (layers()) {
            std::copy(begins_.begin(), begins_.end() - 1, next_.begin());
            for (auto amount = augment(); amount > 0; amount = augment()) {
                if (amount >= unlimited) {
                    return false;
                }
                value_ += amount;
            }
        }
        return true;
    }

    /// Goes to the next vertex. @pre saturate() returned true
    constexpr void advance()
    {
        auto const step = distances();
        for (std::size_t v = 0; v < potentials_.size(); ++v) {
            potentials_[v] -= reached_[v] == stamp_ ? 0 : std::min(step, distance_[v]);
        }
        cost_ += value_ * step;
    }

private:
    static constexpr std::int64_t unlimited = std::numeric_limits<std::int64_t>::max() / 4;
    static constexpr std::int32_t never = std::numeric_limits<std::int32_t>::max();

    struct arc_state {
        int first;  ///< its fastest breakpoint
        int piece;  ///< the breakpoint at which more flow would go: slopes[piece] <= flow < slopes[piece - 1]
        int forward;   ///< place of the residual arc in the direction of the arc
        int backward;  ///< and against it
        std::int64_t flow;
    };

    /// A residual arc: open while it has room; its reduced length is potential[to] - potential[here] + length >= 0.
    struct residual {
        int to;
        int partner;
        int arc;
        std::int32_t length;
        std::int64_t room;
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
        next_.resize(n, 0);
        level_.resize(n, 0);
        reached_.resize(n, 0);
        distance_.resize(n, 0);
        queue_.resize(n, 0);
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

    constexpr std::int32_t reduced_length(std::size_t here, residual const& r) const
    {
        return potentials_[static_cast<std::size_t>(r.to)] - potentials_[here] + r.length;
    }

    /// Breadth first from the source over open arcs of no length. False when the sink is out of reach; the events
    /// reached then carry the stamp.
    constexpr bool layers()
    {
        ++stamp_;
        std::size_t taken = 0;
        reached_count_ = 1;
        queue_[0] = 0;
        reached_[0] = stamp_;
        level_[0] = 0;
        auto const sink = potentials_.size() - 1;
        while (taken < reached_count_) {
            auto const here = static_cast<std::size_t>(queue_[taken++]);
            for (auto p = begins_[here]; p < begins_[here + 1]; ++p) {
                auto const& r = residuals_[static_cast<std::size_t>(p)];
                auto const to = static_cast<std::size_t>(r.to);
                if (r.room > 0 && reached_[to] != stamp_ && reduced_length(here, r) == 0) {
                    reached_[to] = stamp_;
                    level_[to] = level_[here] + 1;
                    if (to == sink) {
                        return true;
                    }
                    queue_[reached_count_++] = r.to;
                }
            }
        }
        return false;
    }

    /// One augmenting path along the layers, depth first with the places to resume from (Dinic 1970); 0: there is none.
    constexpr std::int64_t augment()
    {
        path_.clear();
        std::size_t here = 0;
        auto const sink = potentials_.size() - 1;
        while (here != sink) {
            auto& p = next_[here];
            bool moved = false;
            for (; p < begins_[here + 1]; ++p) {
                auto const& r = residuals_[static_cast<std::size_t>(p)];
                auto const to = static_cast<std::size_t>(r.to);
                if (r.room > 0 && reached_[to] == stamp_ && level_[to] == level_[here] + 1 && reduced_length(here, r) == 0) {
                    path_.push_back(p);
                    here = to;
                    moved = true;
                    break;
                }
            }
            if (!moved) {
                if (path_.empty()) {
                    return 0;
                }
                auto const back = residuals_[static_cast<std::size_t>(path_.back())].partner;
                here = static_cast<std::size_t>(residuals_[static_cast<std::size_t>(back)].to);
                path_.pop_back();
                ++next_[here];
            }
        }
        auto amount = unlimited;
        for (auto const p : path_) {
            amount = std::min(amount, residuals_[static_cast<std::size_t>(p)].room);
        }
        if (amount >= unlimited) {
            return amount;
        }
        for (auto const p : path_) {
            auto& arc = arcs_[static_cast<std::size_t>(residuals_[static_cast<std::size_t>(p)].arc)];
            arc.flow += arc.forward == p ? amount : -amount;
            refresh(arc);
        }
        return amount;
    }

    /// Dijkstra from the events that carry the stamp, until the sink is reached: its distance. Others that are not
    /// settled by then count as at least that far.
    constexpr std::int32_t distances()
    {
        auto const sink = potentials_.size() - 1;
        for (auto& d : distance_) {
            d = never;
        }
        heap_.clear();
        auto const look = [&](std::size_t here, std::int32_t far) {
            for (auto p = begins_[here]; p < begins_[here + 1]; ++p) {
                auto const& r = residuals_[static_cast<std::size_t>(p)];
                auto const to = static_cast<std::size_t>(r.to);
                if (r.room <= 0 || reached_[to] == stamp_) {
                    continue;
                }
                auto const length = far + reduced_length(here, r);
                if (length < distance_[to] && length <= distance_[sink]) {
                    distance_[to] = length;
                    heap_.push_back({length, r.to});
                    std::push_heap(heap_.begin(), heap_.end(), later);
                }
            }
        };
        for (std::size_t k = 0; k < reached_count_; ++k) {
            look(static_cast<std::size_t>(queue_[k]), 0);
        }
        while (!heap_.empty()) {
            auto const [far, event] = heap_.front();
            std::pop_heap(heap_.begin(), heap_.end(), later);
            heap_.pop_back();
            if (far != distance_[static_cast<std::size_t>(event)]) {
                continue;
            }
            if (static_cast<std::size_t>(event) == sink) {
                return far;
            }
            look(static_cast<std::size_t>(event), far);
        }
        throw precondition_error{"a network has a path from its beginning to its end"};
    }

    static constexpr bool later(std::pair<std::int32_t, int> const& a, std::pair<std::int32_t, int> const& b) { return b < a; }

    std::vector<int> first_;  ///< curve -> its first breakpoint in the two tables
    std::vector<std::int32_t> times_;
    std::vector<std::int64_t> slopes_;  ///< from each breakpoint to the next; 0 after the last of a curve
    std::vector<arc_state> arcs_;
    std::vector<residual> residuals_;  ///< by event
    std::vector<int> begins_;          ///< event -> its first residual arc
    std::vector<std::int32_t> potentials_;
    std::int64_t cost_ = 0;
    std::int64_t value_ = 0;

    std::vector<int> next_;
    std::vector<int> level_;
    std::vector<int> reached_;
    std::vector<std::int32_t> distance_;
    std::vector<int> queue_;
    std::size_t reached_count_ = 0;
    int stamp_ = 0;
    std::vector<int> path_;
    std::vector<std::pair<std::int32_t, int>> heap_;
};

}  // namespace rheo::inline v0
