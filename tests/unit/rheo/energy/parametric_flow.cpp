// SPDX-License-Identifier: Apache-2.0
// The curve against all plans by enumeration, and each of its slopes against a minimum cut that is recomputed, by
// Boost.Graph where it is there, else by plain augmenting paths.
#include "rheo/energy/frontier/parametric_flow.hpp"

#include <limits>
#include <queue>

#include "problems.hpp"
#include "rheo/schedule/families/one_f_one_b.hpp"
#include "support/catch.hpp"

#if __has_include(<boost/graph/push_relabel_max_flow.hpp>)
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/push_relabel_max_flow.hpp>
#define RHEO_TESTS_HAVE_BOOST 1
#else
#define RHEO_TESTS_HAVE_BOOST 0
#endif

using namespace frontier_tests;

namespace {

constexpr std::int64_t endless = std::int64_t{1} << 40U;

struct capacity {
    int from;
    int to;
    std::int64_t most;
};

#if RHEO_TESTS_HAVE_BOOST
std::int64_t maximum_flow(int nodes, std::vector<capacity> const& arcs, int source, int sink)
{
    using traits = boost::adjacency_list_traits<boost::vecS, boost::vecS, boost::directedS>;
    using graph = boost::adjacency_list<
        boost::vecS, boost::vecS, boost::directedS, boost::no_property,
        boost::property<boost::edge_capacity_t, std::int64_t,
                        boost::property<boost::edge_residual_capacity_t, std::int64_t, boost::property<boost::edge_reverse_t, traits::edge_descriptor>>>>;
    graph g(static_cast<std::size_t>(nodes));
    auto capacities = get(boost::edge_capacity, g);
    auto reverse = get(boost::edge_reverse, g);
    for (auto const& arc : arcs) {
        auto const there = add_edge(static_cast<std::size_t>(arc.from), static_cast<std::size_t>(arc.to), g).first;
        auto const back = add_edge(static_cast<std::size_t>(arc.to), static_cast<std::size_t>(arc.from), g).first;
        capacities[there] = arc.most;
        capacities[back] = 0;
        reverse[there] = back;
        reverse[back] = there;
    }
    return push_relabel_max_flow(g, static_cast<std::size_t>(source), static_cast<std::size_t>(sink));
}
#else
std::int64_t maximum_flow(int nodes, std::vector<capacity> const& arcs, int source, int sink)
{
    auto const n = static_cast<std::size_t>(nodes);
    std::vector<std::vector<std::int64_t>> room(n, std::vector<std::int64_t>(n));
    for (auto const& arc : arcs) {
        room[static_cast<std::size_t>(arc.from)][static_cast<std::size_t>(arc.to)] += arc.most;
    }
    std::int64_t total = 0;
    for (;;) {
        std::vector<int> before(n, -1);
        std::queue<std::size_t> queue;
        queue.push(static_cast<std::size_t>(source));
        before[static_cast<std::size_t>(source)] = source;
        while (!queue.empty()) {
            auto const here = queue.front();
            queue.pop();
            for (std::size_t to = 0; to < n; ++to) {
                if (room[here][to] > 0 && before[to] < 0) {
                    before[to] = static_cast<int>(here);
                    queue.push(to);
                }
            }
        }
        if (before[static_cast<std::size_t>(sink)] < 0) {
            return total;
        }
        auto amount = endless;
        for (int v = sink; v != source; v = before[static_cast<std::size_t>(v)]) {
            amount = std::min(amount, room[static_cast<std::size_t>(before[static_cast<std::size_t>(v)])][static_cast<std::size_t>(v)]);
        }
        for (int v = sink; v != source; v = before[static_cast<std::size_t>(v)]) {
            room[static_cast<std::size_t>(before[static_cast<std::size_t>(v)])][static_cast<std::size_t>(v)] -= amount;
            room[static_cast<std::size_t>(v)][static_cast<std::size_t>(before[static_cast<std::size_t>(v)])] += amount;
        }
        total += amount;
    }
}
#endif

/// What one tick less costs at these event times: the least over all cuts of what the arcs forward over it cost, less
/// what those backward save. Sums over one side's events take the place of the lower bounds.
std::int64_t least_cut(activity_network const& p, std::vector<std::int32_t> const& events)
{
    int const source = 0;
    int const sink = p.network.events - 1;
    std::vector<capacity> arcs;
    std::vector<std::int64_t> weight(events.size());  // of an event on the source's side
    for (auto const& arc : p.network.arcs) {
        auto const there = events[static_cast<std::size_t>(arc.to)] - events[static_cast<std::size_t>(arc.from)];
        auto const least = least_time(p, arc).count;
        auto const* curve = curve_of(p, arc);
        auto const cost = [&](int time) { return curve == nullptr ? 0 : cost_at(*curve, ticks{time}).count; };
        auto const saved = cost(there) - cost(there + 1);
        auto const more = there == least ? endless : cost(there - 1) - cost(there);
        arcs.push_back({arc.from, arc.to, more - saved});
        weight[static_cast<std::size_t>(arc.from)] += saved;
        weight[static_cast<std::size_t>(arc.to)] -= saved;
    }
    std::int64_t constant = weight[static_cast<std::size_t>(source)];
    for (int v = 0; v < p.network.events; ++v) {
        auto const w = weight[static_cast<std::size_t>(v)];
        if (v == source || v == sink) {
            continue;
        }
        if (w > 0) {
            arcs.push_back({v, sink, w});
        } else if (w < 0) {
            arcs.push_back({source, v, -w});
            constant += w;
        }
    }
    return constant + maximum_flow(p.network.events, arcs, source, sink);
}

/// Time -> cost of the whole curve, tick by tick.
std::map<int, std::int64_t> curve_of_all(activity_network const& p)
{
    std::map<int, std::int64_t> result;
    parametric_flow flow{p};
    result[flow.time().count] = flow.cost().count;
    while (flow.saturate()) {
        auto const time = flow.time().count;
        auto const cost = flow.cost().count;
        auto const slope = flow.slope().count;
        flow.advance();
        for (int t = time - 1; t >= flow.time().count; --t) {
            result[t] = cost + slope * (time - t);
        }
    }
    return result;
}

constexpr activity_network two_in_a_row()
{
    activity_network p{make_event_network(one_f_one_b::program({.ranks = 1, .microbatches = 1})), {}, {0, 1}, seconds{1.0}};
    p.curves.push_back({{ticks{1}, ticks{2}, ticks{4}}, {nanojoules{9}, nanojoules{2}}, nanojoules{20}});
    p.curves.push_back({{ticks{2}, ticks{5}}, {nanojoules{3}}, nanojoules{30}});
    return p;
}

// Two operations after each other: the cheaper tick is bought first, so the slopes are 2, 3, 9; then nothing is left.
static_assert([] {
    auto const p = two_in_a_row();
    parametric_flow flow{p};
    std::int64_t const slopes[] = {2, 3, 9};
    int const times[] = {9, 7, 4, 3};
    int k = 0;
    for (; flow.time().count == times[k] && flow.saturate(); ++k) {
        if (flow.slope().count != slopes[k]) {
            return false;
        }
        flow.advance();
    }
    return k == 3 && flow.time().count == 3 && flow.cost().count == 50;
}());

}  // namespace

TEST_CASE("parametric_flow: curve is the least cost at every tick")
{
    std::mt19937 draw{8};
    int points = 0;
    for (int round = 0; round < 300; ++round) {
        auto const p = small_network(draw);
        auto const plans = every_plan(p);
        auto const curve = curve_of_all(p);
        CAPTURE(round);
        REQUIRE(curve.begin()->first == plans.begin()->first);
        for (auto const& [time, cost] : curve) {
            std::int64_t least = std::numeric_limits<std::int64_t>::max();
            for (auto const& [length, plan_cost] : plans) {
                least = length <= time ? std::min(least, plan_cost) : least;
            }
            REQUIRE(cost == least);
            ++points;
        }
    }
    CHECK(points > 1000);
}

TEST_CASE("parametric_flow: slopes are minimum cuts")
{
    std::mt19937 draw{9};
    int cuts = 0;
    for (int round = 0; round < 60; ++round) {
        auto const p = random_network(draw, random_program(draw, 1 + below(draw, 4), 1 + below(draw, 5), 1 + below(draw, 6)), 3);
        parametric_flow flow{p};
        while (flow.saturate()) {
            REQUIRE(flow.slope().count == least_cut(p, flow.events()));
            flow.advance();
            ++cuts;
        }
        CHECK(least_cut(p, flow.events()) >= endless);
    }
    CHECK(cuts > 300);
}

TEST_CASE("parametric_flow: slopes rise; results are deterministic")
{
    std::mt19937 draw{10};
    for (int round = 0; round < 40; ++round) {
        auto const p = random_network(draw, random_program(draw, 3, 4, 5), 3);
        parametric_flow one{p};
        parametric_flow other{p};
        for (std::int64_t before = -1; one.saturate();) {
            REQUIRE(other.saturate());
            REQUIRE(one.slope().count > before);
            before = one.slope().count;
            one.advance();
            other.advance();
            REQUIRE(one.events() == other.events());
            REQUIRE(one.flows() == other.flows());
        }
    }
}

TEST_CASE("parametric_flow: too many ticks are rejected")
{
    auto p = two_in_a_row();
    p.curves[0].times = {ticks{1}, ticks{2}, ticks{2'000'000'000}};
    p.curves[1].times = {ticks{1}, ticks{2'000'000'000}};
    CHECK_THROWS_WITH(parametric_flow{p}, "the slowest plan takes more ticks than can be counted: choose a coarser unit");
}
