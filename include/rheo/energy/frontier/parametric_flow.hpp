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
#include <utility>
#include <vector>

#include "rheo/energy/frontier/activity_network.hpp"
#include "rheo/energy/frontier/residual_network.hpp"
#include "rheo/units/expects.hpp"

namespace rheo::inline v0 {

template <class OnlyWhenCalled = void>
class parametric_flow {
public:
    /// @pre each operation has a curve; the slowest time fits into 2^31 ticks
    constexpr explicit parametric_flow(activity_network const& p) : network_{p}, cost_{network_.cost_of_slowest()}
    {
        auto const n = network_.potentials().size();
        next_.resize(n, 0);
        level_.resize(n, 0);
        reached_.resize(n, 0);
        distance_.resize(n, 0);
        queue_.resize(n, 0);
    }

    constexpr ticks time() const { return {network_.potentials().back()}; }
    constexpr nanojoules cost() const { return {cost_}; }
    /// What one tick less costs here, once `saturate` has been called.
    constexpr nanojoules slope() const { return {value_}; }
    /// When each event happens. The times of operations follow: as long as there is, up to the slowest.
    constexpr std::vector<std::int32_t> const& events() const { return network_.potentials(); }
    /// The flow on each arc, in nanojoules per tick.
    constexpr std::vector<std::int64_t> flows() const { return network_.flows(); }

    /// Makes the flow maximal at this time. False when no cost buys a tick less: this is the fastest time.
    constexpr bool saturate()
    {
        while (layers()) {
            std::copy(network_.begins().begin(), network_.begins().end() - 1, next_.begin());
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
        for (std::size_t v = 0; v < network_.potentials().size(); ++v) {
            network_.advance(v, reached_[v] == stamp_ ? 0 : std::min(step, distance_[v]));
        }
        cost_ += value_ * step;
    }

private:
    static constexpr std::int64_t unlimited = detail::residual_network<>::unlimited;
    static constexpr std::int32_t never = detail::residual_network<>::never;

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
        auto const sink = network_.potentials().size() - 1;
        while (taken < reached_count_) {
            auto const here = static_cast<std::size_t>(queue_[taken++]);
            for (auto p = network_.begins()[here]; p < network_.begins()[here + 1]; ++p) {
                auto const& r = network_[p];
                auto const to = static_cast<std::size_t>(r.to);
                if (r.room > 0 && reached_[to] != stamp_ && network_.reduced_length(here, r) == 0) {
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
        auto const sink = network_.potentials().size() - 1;
        while (here != sink) {
            auto& p = next_[here];
            bool moved = false;
            for (; p < network_.begins()[here + 1]; ++p) {
                auto const& r = network_[p];
                auto const to = static_cast<std::size_t>(r.to);
                if (r.room > 0 && reached_[to] == stamp_ && level_[to] == level_[here] + 1 && network_.reduced_length(here, r) == 0) {
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
                auto const back = network_[path_.back()].partner;
                here = static_cast<std::size_t>(network_[back].to);
                path_.pop_back();
                ++next_[here];
            }
        }
        auto amount = unlimited;
        for (auto const p : path_) {
            amount = std::min(amount, network_[p].room);
        }
        if (amount >= unlimited) {
            return amount;
        }
        for (auto const p : path_) {
            network_.push(p, amount);
        }
        return amount;
    }

    /// Dijkstra from the events that carry the stamp, until the sink is reached: its distance. Others that are not
    /// settled by then count as at least that far.
    constexpr std::int32_t distances()
    {
        auto const sink = network_.potentials().size() - 1;
        for (auto& d : distance_) {
            d = never;
        }
        heap_.clear();
        auto const look = [&](std::size_t here, std::int32_t far) {
            for (auto p = network_.begins()[here]; p < network_.begins()[here + 1]; ++p) {
                auto const& r = network_[p];
                auto const to = static_cast<std::size_t>(r.to);
                if (r.room <= 0 || reached_[to] == stamp_) {
                    continue;
                }
                auto const length = far + network_.reduced_length(here, r);
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

    detail::residual_network<> network_;
    std::int64_t cost_;
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
