// SPDX-License-Identifier: Apache-2.0
// A plan has a flow that proves it exactly when no plan of its time costs less.
#include "rheo/energy/frontier/flow_from_plan.hpp"

#include "problems.hpp"
#include "rheo/energy/frontier/certificate.hpp"
#include "support/catch.hpp"

using namespace frontier_tests;

namespace {

/// Any plan of that length: operations take what they draw, as far as the length allows, and begin as soon as they can.
std::vector<std::int32_t> some_plan(std::mt19937& draw, activity_network const& p, ticks time)
{
    std::vector<std::int32_t> events;
    std::vector<int> durations;
    for (std::size_t k = 0; k < p.curve_of.size(); ++k) {
        auto const& curve = p.curves[static_cast<std::size_t>(p.curve_of[k])];
        durations.push_back(curve.times.front().count + below(draw, (curve.times.back() - curve.times.front()).count + 1));
    }
    for (std::size_t k = 0; length_of(p, durations) > time.count; ++k) {
        durations[k] = p.curves[static_cast<std::size_t>(p.curve_of[k])].times.front().count;
    }
    events.assign(static_cast<std::size_t>(p.network.events), 0);
    for (auto const& arc : p.network.arcs) {
        auto const length = arc.operation < 0 ? least_time(p, arc).count : durations[static_cast<std::size_t>(arc.operation)];
        auto& end = events[static_cast<std::size_t>(arc.to)];
        end = std::max(end, events[static_cast<std::size_t>(arc.from)] + length);
    }
    events.back() = time.count;
    return events;
}

}  // namespace

TEST_CASE("flow_from_plan: least cost exactly when a flow exists")
{
    std::mt19937 draw{21};
    int best = 0;
    int worse = 0;
    for (int round = 0; round < 200; ++round) {
        auto const f = make_frontier(random_network(draw, random_program(draw, 1 + below(draw, 3), 1 + below(draw, 3), 1 + below(draw, 3)), 2), watts{0.0},
                                     frontier_begin::slowest);
        for (auto time = f.vertices.back().time; time <= f.vertices.front().time; time += ticks{1}) {
            auto const events = some_plan(draw, f.activities, time);
            auto const flows = flow_for(f.activities, events);
            auto const claim = verify(f.activities, {events, flows.empty() ? std::vector<std::int64_t>(f.activities.network.arcs.size(), 0) : flows});
            bool const least = claim.cost == cost_at(f, time);
            REQUIRE(flows.empty() == !least);
            REQUIRE(static_cast<bool>(claim) == least);
            best += least ? 1 : 0;
            worse += least ? 0 : 1;
        }
    }
    CHECK(best > 100);
    CHECK(worse > 100);
}

TEST_CASE("flow_from_plan: waiting power bounds the flow at the optimum")
{
    std::mt19937 draw{22};
    for (int round = 0; round < 60; ++round) {
        auto const waiting = watts{1e-9 * below(draw, 20)};  // nanojoules per tick of a second
        auto const f = make_frontier(random_network(draw, random_program(draw, 3, 3, 4), 3), waiting);
        auto const per_tick = detail::waiting_per_tick(f.activities, waiting);
        CHECK_FALSE(flow_for(f.activities, plan_at(f, f.vertices.front().time).events, per_tick).empty());
        if (f.vertices.size() > 1) {
            auto const earlier = f.vertices.front().time - ticks{1};
            CHECK(flow_for(f.activities, plan_at(f, earlier).events, per_tick).empty());
        }
    }
}
