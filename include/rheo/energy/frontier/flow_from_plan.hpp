#pragma once
// SPDX-License-Identifier: Apache-2.0

// The proof of a plan that came without one. The times say between which bounds the flow on each arc has to lie: at least
// what a tick more would save, at most what a tick less would cost, nothing where time is left. A flow within the bounds
// exists exactly when the plan is of least cost at its time, and one maximal flow finds it (Hoffman's circulation theorem).

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "rheo/energy/frontier/activity_network.hpp"

namespace rheo::inline v0 {

namespace detail {

/// A maximal flow by layers (Dinic 1970), for networks in which most paths are short.
template <class OnlyWhenCalled = void>
class layered_flow {
public:
    constexpr explicit layered_flow(std::size_t nodes) : out_(nodes), level_(nodes), next_(nodes) {}

    constexpr std::size_t add(int from, int to, std::int64_t room)
    {
        out_[static_cast<std::size_t>(from)].push_back(edges_.size());
        edges_.push_back({to, room});
        out_[static_cast<std::size_t>(to)].push_back(edges_.size());
        edges_.push_back({from, 0});
        return edges_.size() - 2;
    }

    /// What flows through the edge that `add` returned.
    constexpr std::int64_t flow(std::size_t added) const { return edges_[added + 1].room; }

    constexpr std::int64_t maximal(int source, int sink)
    {
        std::int64_t sum = 0;
        while (reaches(source, sink)) {
            next_.assign(next_.size(), 0);
            for (auto amount = augment(source, sink); amount > 0; amount = augment(source, sink)) {
                sum += amount;
            }
        }
        return sum;
    }

private:
    struct edge {
        int to;
        std::int64_t room;
    };

    constexpr bool reaches(int source, int sink)
    {
        level_.assign(level_.size(), -1);
        level_[static_cast<std::size_t>(source)] = 0;
        queue_.assign(1, source);
        for (std::size_t taken = 0; taken < queue_.size() && level_[static_cast<std::size_t>(sink)] < 0; ++taken) {
            auto const here = static_cast<std::size_t>(queue_[taken]);
            for (auto const e : out_[here]) {
                auto& level = level_[static_cast<std::size_t>(edges_[e].to)];
                if (edges_[e].room > 0 && level < 0) {
                    level = level_[here] + 1;
                    queue_.push_back(edges_[e].to);
                }
            }
        }
        return level_[static_cast<std::size_t>(sink)] >= 0;
    }

    constexpr std::int64_t augment(int source, int sink)
    {
        path_.clear();
        for (auto here = source; here != sink;) {
            auto const& out = out_[static_cast<std::size_t>(here)];
            auto& place = next_[static_cast<std::size_t>(here)];
            while (place < out.size() &&
                   !(edges_[out[place]].room > 0 && level_[static_cast<std::size_t>(edges_[out[place]].to)] == level_[static_cast<std::size_t>(here)] + 1)) {
                ++place;
            }
            if (place < out.size()) {
                path_.push_back(out[place]);
                here = edges_[out[place]].to;
            } else if (path_.empty()) {
                return 0;
            } else {
                here = edges_[path_.back() ^ 1U].to;
                path_.pop_back();
                ++next_[static_cast<std::size_t>(here)];
            }
        }
        auto amount = std::numeric_limits<std::int64_t>::max();
        for (auto const e : path_) {
            amount = std::min(amount, edges_[e].room);
        }
        for (auto const e : path_) {
            edges_[e].room -= amount;
            edges_[e ^ 1U].room += amount;
        }
        return amount;
    }

    std::vector<edge> edges_;  ///< each followed by its reverse
    std::vector<std::vector<std::size_t>> out_;
    std::vector<int> level_;
    std::vector<std::size_t> next_;
    std::vector<int> queue_;
    std::vector<std::size_t> path_;
};

/// Bounds of the dual flow on an arc that is given so many ticks.
struct flow_range {
    std::int64_t least;
    std::int64_t most;
};

template <class OnlyWhenCalled = void>
constexpr flow_range flow_range_of(activity_network const& p, event_arc const& arc, ticks there)
{
    constexpr std::int64_t unlimited = std::int64_t{1} << 60U;
    auto const* curve = curve_of(p, arc);
    if (curve == nullptr) {
        return {0, there > least_time(p, arc) ? 0 : unlimited};
    }
    std::size_t k = 0;  // the piece on which a tick more would be spent
    while (k < curve->slopes.size() && curve->times[k + 1] <= there) {
        ++k;
    }
    auto const more = k < curve->slopes.size() ? curve->slopes[k].count : 0;
    auto const on_a_corner = curve->times[k] == there;
    auto const less = there > curve->times.back() ? 0 : on_a_corner ? (k == 0 ? unlimited : curve->slopes[k - 1].count) : more;
    return {more, less};
}

}  // namespace detail

/// The flow that proves a plan, in nanojoules per tick on each arc; empty when the plan is not of least cost at its time,
/// or when no flow of at most that value proves it. Such a value is a slope: where it is what the devices draw while they
/// wait, a slower plan takes no less energy. @pre `events` keep the times of the network. Cost: one maximal flow.
template <class OnlyWhenCalled = void>
constexpr std::vector<std::int64_t> flow_for(activity_network const& p, std::vector<std::int32_t> const& events, nanojoules most = {std::int64_t{1} << 60U})
{
    auto const& arcs = p.network.arcs;
    auto const source = p.network.events;
    auto const sink = source + 1;
    detail::layered_flow flow{events.size() + 2};
    std::vector<std::int64_t> supply(events.size(), 0);
    std::vector<std::int64_t> result;
    std::vector<std::size_t> edges;
    for (auto const& arc : arcs) {
        auto const range = detail::flow_range_of(p, arc, ticks{events[static_cast<std::size_t>(arc.to)] - events[static_cast<std::size_t>(arc.from)]});
        result.push_back(range.least);
        supply[static_cast<std::size_t>(arc.to)] += range.least;
        supply[static_cast<std::size_t>(arc.from)] -= range.least;
        edges.push_back(flow.add(arc.from, arc.to, range.most - range.least));
    }
    (void)flow.add(p.network.events - 1, 0, most.count);
    std::int64_t wanted = 0;
    for (std::size_t v = 0; v < supply.size(); ++v) {
        if (supply[v] > 0) {
            (void)flow.add(source, static_cast<int>(v), supply[v]);
            wanted += supply[v];
        } else if (supply[v] < 0) {
            (void)flow.add(static_cast<int>(v), sink, -supply[v]);
        }
    }
    if (flow.maximal(source, sink) < wanted) {
        return {};
    }
    for (std::size_t a = 0; a < arcs.size(); ++a) {
        result[a] += flow.flow(edges[a]);
    }
    return result;
}

#ifdef RHEO_COMPILED  // in rheo::compiled
extern template std::vector<std::int64_t> flow_for<>(activity_network const&, std::vector<std::int32_t> const&, nanojoules);
#endif

}  // namespace rheo::inline v0
