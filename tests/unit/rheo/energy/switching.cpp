// SPDX-License-Identifier: Apache-2.0
// Plans with changes of clocks that take time: the deadline holds with them, each clock is kept for long enough, and no
// plan takes more energy than the highest clocks do.
#include "rheo/energy/clocks/switching.hpp"

#include <limits>

#include "problems.hpp"
#include "rheo/schedule/families/one_f_one_b.hpp"
#include "support/catch.hpp"

using namespace frontier_tests;

namespace {

struct prepared {
    made_network made;
    frontier curve;
};

prepared prepare(int ranks, int microbatches)
{
    auto measured = small_profile();
    for (int stage = 2; stage < ranks; ++stage) {
        for (std::size_t k = 0; k < 6; ++k) {
            auto row = measured.rows[k];
            row.stage = stage_id{stage};
            row.time = row.time * (1.0 + 0.1 * stage);
            measured.rows.push_back(row);
        }
    }
    auto made = *make_activity_network(make_event_network(one_f_one_b::program({.ranks = ranks, .microbatches = microbatches})), measured, {watts{50.0}});
    auto f = make_frontier(made.activities, watts{50.0 * ranks});
    return {std::move(made), std::move(f)};
}

/// The end of an iteration that follows one like it, rewritten: a change takes the latency, before its operation.
double end_of(event_network const& network, clocked_plan const& plan, seconds latency)
{
    std::vector<double> times(static_cast<std::size_t>(network.events));
    for (auto const& arc : network.arcs) {
        double length = static_cast<double>(arc.nanoseconds) * 1e-9;
        if (arc.operation >= 0) {
            auto const k = static_cast<std::size_t>(arc.operation);
            auto before = k;
            for (std::size_t j = 0; j < network.operations.size(); ++j) {
                bool const same = network.operations[j].row == network.operations[k].row;
                before = same && (k == 0 || network.operations[k - 1].row != network.operations[k].row ? true : j < k) ? j : before;
            }
            length = plan.options[k].time.count + (plan.options[before].clock != plan.options[k].clock ? latency.count : 0.0);
        }
        auto& end = times[static_cast<std::size_t>(arc.to)];
        end = std::max(end, times[static_cast<std::size_t>(arc.from)] + length);
    }
    return times.back();
}

}  // namespace

TEST_CASE("switching: slow switches keep the deadline")
{
    for (int ranks : {2, 3, 4}) {
        auto const p = prepare(ranks, 6);
        for (double late : {1.0, 1.1, 1.3}) {
            auto const deadline = fastest_time(p.curve) * late;
            nanojoules before = round_to_clocks(p.curve, p.made.options, watts{50.0}, deadline)->cost;
            nanojoules highest{0};
            for (auto const which : p.made.activities.curve_of) {
                auto const& option = p.made.options[static_cast<std::size_t>(which)].front();
                highest += in_whole_nanojoules(option.energy - watts{50.0} * option.time);
            }
            for (double latency : {0.0001, 0.001, 0.01}) {
                auto const real = round_to_clocks(p.curve, p.made.options, watts{50.0}, deadline, {.latency = {latency}});
                REQUIRE(real);
                REQUIRE(real->time.count <= deadline.count + 1e-9);
                REQUIRE(end_of(p.made.activities.network, *real, {latency}) == Approx(real->time.count).margin(1e-6));
                REQUIRE(real->cost >= before - nanojoules{1});
                REQUIRE(real->cost <= highest);
            }
        }
    }
}

TEST_CASE("switching: longer deadlines never need more energy")
{
    for (int ranks : {2, 3}) {
        auto const p = prepare(ranks, 6);
        auto const real = make_real_frontier(p.curve, p.made.options, watts{50.0}, slowest_time(p.curve));
        switching_rule const rule{.latency = milliseconds(0.4), .dwell = milliseconds(8.0)};
        nanojoules last{std::numeric_limits<std::int64_t>::max()};
        joules last_alone{1e300};
        for (int step = 0; step <= 25; ++step) {
            auto const deadline = fastest_time(p.curve) * (1.0 + 0.017 * step);
            auto const plan = round_to_clocks(real, deadline, rule);
            auto const alone = *round_to_clocks(real, deadline, rule, waiting_until::own_end);
            REQUIRE(plan);
            REQUIRE(plan->cost <= last);
            REQUIRE(total_energy(p.curve, alone.cost, alone.time) <= last_alone);
            REQUIRE(end_of(p.made.activities.network, *plan, rule.latency) <= deadline.count + 1e-9);
            last = plan->cost;
            last_alone = total_energy(p.curve, alone.cost, alone.time);
        }
    }
}

TEST_CASE("switching: clocks are kept for the dwell time")
{
    auto const p = prepare(3, 8);
    auto const deadline = fastest_time(p.curve) * 1.2;
    auto const free = round_to_clocks(p.curve, p.made.options, watts{50.0}, deadline, {.latency = microseconds(1.0)});
    auto const held = round_to_clocks(p.curve, p.made.options, watts{50.0}, deadline, {.latency = microseconds(1.0), .dwell = milliseconds(30.0)});
    REQUIRE(held);
    auto const& network = p.made.activities.network;
    CHECK(switches(network, *held) <= switches(network, *free));
    for (std::size_t k = 1; k + 1 < network.operations.size(); ++k) {  // runs inside a row
        double held_for = 0.0;
        std::size_t j = k;
        bool const begins = network.operations[k - 1].row == network.operations[k].row && held->options[k - 1].clock != held->options[k].clock;
        while (begins && j < network.operations.size() && network.operations[j].row == network.operations[k].row &&
               held->options[j].clock == held->options[k].clock) {
            held_for += held->options[j++].time.count;
        }
        if (begins && j < network.operations.size() && network.operations[j].row == network.operations[k].row) {
            CHECK(held_for >= 0.030 - 1e-9);
        }
    }
}

TEST_CASE("switching: no rule changes nothing; long dwell: one clock")
{
    auto const p = prepare(2, 4);
    auto const deadline = fastest_time(p.curve) * 1.3;
    CHECK(*round_to_clocks(p.curve, p.made.options, watts{50.0}, deadline, {}) == *round_to_clocks(p.curve, p.made.options, watts{50.0}, deadline));
    auto const one = round_to_clocks(p.curve, p.made.options, watts{50.0}, deadline, {.latency = {0.0}, .dwell = {10.0}});
    REQUIRE(one);
    CHECK(switches(p.made.activities.network, *one) == 0);
    CHECK_FALSE(round_to_clocks(p.curve, p.made.options, watts{50.0}, fastest_time(p.curve) * 0.9, {.latency = milliseconds(1.0)}));
}
