#pragma once
// SPDX-License-Identifier: Apache-2.0

// Small networks with random convex costs, every plan of them by plain enumeration, and a small hand-made profile.

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <vector>

#include "../schedule/programs.hpp"
#include "rheo/energy/frontier/frontier.hpp"
#include "rheo/energy/profile/profile.hpp"

namespace frontier_tests {

using namespace rheo;
using test::random_program;

inline int below(std::mt19937& draw, int n) { return std::uniform_int_distribution{0, n - 1}(draw); }

/// A curve of at most `pieces` pieces of 1 or 2 ticks with falling slopes.
inline cost_curve random_curve(std::mt19937& draw, int pieces)
{
    cost_curve curve{{ticks{below(draw, 3)}}, {}, nanojoules{100}};
    int slope = 4 + below(draw, 12);
    for (int k = below(draw, pieces + 1); k > 0 && slope > 0; --k) {
        curve.times.push_back(curve.times.back() + ticks{1 + below(draw, 2)});
        curve.slopes.push_back(nanojoules{slope});
        slope -= 1 + below(draw, 4);
    }
    return curve;
}

/// An activity network with a curve for each operation, and transfers that take up to two ticks.
inline activity_network random_network(std::mt19937& draw, program const& p, int pieces)
{
    stage_costs fixed(p.placement.size());
    for (auto& c : fixed) {
        c.send_activation = {static_cast<double>(below(draw, 3))};
        c.send_gradient = {static_cast<double>(below(draw, 3))};
    }
    auto made = make_event_network<shared_memory>(array_view{&p, 1}, {{fixed}, {}});
    activity_network result{std::move(made.network), {}, {}, seconds{1.0}};
    for (std::size_t k = 0; k < result.network.operations.size(); ++k) {
        result.curves.push_back(random_curve(draw, pieces));
        result.curve_of.push_back(static_cast<int>(k));
    }
    return result;
}

/// How long the network takes when the operations take this long.
inline int length_of(activity_network const& p, std::vector<int> const& durations)
{
    std::vector<int> times(static_cast<std::size_t>(p.network.events));
    for (auto const& arc : p.network.arcs) {
        auto const length = arc.operation < 0 ? least_time(p, arc).count : durations[static_cast<std::size_t>(arc.operation)];
        auto& end = times[static_cast<std::size_t>(arc.to)];
        end = std::max(end, times[static_cast<std::size_t>(arc.from)] + length);
    }
    return times.back();
}

/// Time -> the least cost of all plans that take exactly that long.
inline std::map<int, std::int64_t> every_plan(activity_network const& p)
{
    std::map<int, std::int64_t> best;
    std::vector<int> durations;
    auto const curve = [&](std::size_t k) -> cost_curve const& { return p.curves[static_cast<std::size_t>(p.curve_of[k])]; };
    for (std::size_t k = 0; k < p.curve_of.size(); ++k) {
        durations.push_back(curve(k).times.front().count);
    }
    for (bool more = true; more;) {
        std::int64_t cost = 0;
        for (std::size_t k = 0; k < durations.size(); ++k) {
            cost += cost_at(curve(k), ticks{durations[k]}).count;
        }
        auto const [found, fresh] = best.emplace(length_of(p, durations), cost);
        found->second = std::min(found->second, cost);
        more = false;
        for (std::size_t k = 0; k < durations.size() && !more; ++k) {
            more = durations[k] < curve(k).times.back().count;
            durations[k] = more ? durations[k] + 1 : curve(k).times.front().count;
        }
    }
    return best;
}

/// The project of a program with every operation on a curve of its own, small enough for every_plan.
inline activity_network small_network(std::mt19937& draw)
{
    for (;;) {
        auto const p = random_program(draw, 1 + below(draw, 3), 1 + below(draw, 3), 1 + below(draw, 3));
        auto result = random_network(draw, p, 2);
        std::size_t plans = 1;
        for (auto const& curve : result.curves) {
            plans *= static_cast<std::size_t>((curve.times.back() - curve.times.front()).count + 1);
            plans = std::min(plans, std::size_t{1} << 40U);
        }
        if (plans <= 40'000) {
            return result;
        }
    }
}

/// Two stages at three clocks: forward 2, 3, 5 ticks, backward twice as long, of a millisecond.
constexpr profile small_profile()
{
    profile result;
    for (int stage = 0; stage < 2; ++stage) {
        for (auto const kind : {instruction_kind::forward, instruction_kind::backward}) {
            double const f = kind == instruction_kind::forward ? 1.0 : 2.0;
            result.rows.push_back({rank_id{-1}, stage_id{stage}, kind, {1400.0}, milliseconds(2.0 * f), {1.0 * f}});
            result.rows.push_back({rank_id{-1}, stage_id{stage}, kind, {1200.0}, milliseconds(3.0 * f), {0.75 * f}});
            result.rows.push_back({rank_id{-1}, stage_id{stage}, kind, {900.0}, milliseconds(5.0 * f), {0.625 * f}});
        }
    }
    return result;
}

}  // namespace frontier_tests
