// SPDX-License-Identifier: Apache-2.0
// Real clocks keep the deadline, cost no less than the proof allows and are what every choice of clocks can reach.
#include "rheo/energy/clocks/round_to_clocks.hpp"

#include "problems.hpp"
#include "rheo/energy/clocks/two_clocks.hpp"
#include "rheo/schedule/families/gpipe.hpp"
#include "rheo/schedule/families/one_f_one_b.hpp"
#include "support/catch.hpp"

using namespace frontier_tests;

namespace {

struct prepared {
    made_network made;
    frontier curve;
    watts blocking;
};

prepared prepare(program const& p, profile const& measured, seconds unit = {0.0})
{
    watts const blocking{50.0};
    auto made = *make_activity_network(make_event_network(p), measured, {blocking, cost_fit::hull, unit});
    auto f = make_frontier(made.activities, blocking * static_cast<double>(p.rows.size()));
    return {std::move(made), std::move(f), blocking};
}

profile random_profile(std::mt19937& draw, int stages)
{
    profile result;
    for (int stage = 0; stage < stages; ++stage) {
        for (auto const kind : {instruction_kind::forward, instruction_kind::backward}) {
            double time = 2.0 + below(draw, 3);
            double energy = 1.0;
            for (double clock : {1400.0, 1200.0, 900.0}) {
                result.rows.push_back({rank_id{-1}, stage_id{stage}, kind, {clock}, milliseconds(time), {energy}});
                time += 1.0 + below(draw, 2);
                energy -= 0.05 + 0.05 * below(draw, 4);
            }
        }
    }
    return result;
}

/// The least cost of all choices of clocks that end in time.
std::int64_t best_choice(prepared const& p, std::int64_t deadline)
{
    auto const operations = p.made.activities.curve_of.size();
    std::vector<std::size_t> choice(operations);
    auto best = std::numeric_limits<std::int64_t>::max();
    for (bool more = true; more;) {
        std::vector<std::int64_t> times(static_cast<std::size_t>(p.made.activities.network.events));
        std::int64_t cost = 0;
        for (auto const& arc : p.made.activities.network.arcs) {
            std::int64_t length = arc.nanoseconds;
            if (arc.operation >= 0) {
                auto const k = static_cast<std::size_t>(arc.operation);
                auto const& option = p.made.options[static_cast<std::size_t>(p.made.activities.curve_of[k])][choice[k]];
                length = in_whole_nanoseconds(option.time);
                cost += in_whole_nanojoules(option.energy - p.blocking * option.time).count;
            }
            auto& end = times[static_cast<std::size_t>(arc.to)];
            end = std::max(end, times[static_cast<std::size_t>(arc.from)] + length);
        }
        best = times.back() <= deadline ? std::min(best, cost) : best;
        more = false;
        for (std::size_t k = 0; k < operations && !more; ++k) {
            more = choice[k] + 1 < p.made.options[static_cast<std::size_t>(p.made.activities.curve_of[k])].size();
            choice[k] = more ? choice[k] + 1 : 0;
        }
    }
    return best;
}

}  // namespace

TEST_CASE("round_to_clocks: keeps the deadline above the relaxation")
{
    std::mt19937 draw{17};
    for (int round = 0; round < 40; ++round) {
        int const ranks = 1 + below(draw, 4);
        auto const p = prepare(one_f_one_b::program({.ranks = ranks, .microbatches = 1 + below(draw, 6)}), random_profile(draw, ranks));
        auto const fastest = fastest_time(p.curve);
        auto const family = make_real_frontier(p.curve, p.made.options, p.blocking, slowest_time(p.curve));
        for (int step = 0; step <= 10; ++step) {
            auto const deadline = fastest + (slowest_time(p.curve) - fastest) * (0.1 * step);
            auto const real = round_to_clocks(family, deadline);
            REQUIRE(real);
            REQUIRE(real->time.count <= deadline.count + 1e-9);
            auto const relaxed = *at(p.curve, deadline);  // at a whole tick: up to one earlier
            REQUIRE(real->cost >= relaxed.cost - relaxed.slope - nanojoules{1000});
            std::int64_t cost = 0;
            joules computing{0.0};
            for (auto const& option : real->options) {
                cost += in_whole_nanojoules(option.energy - p.blocking * option.time).count;
                computing += option.energy;
            }
            REQUIRE(cost == real->cost.count);
            REQUIRE(computing == real->computing);
        }
    }
}

TEST_CASE("round_to_clocks: optimal on small programs")
{
    std::mt19937 draw{18};
    for (int round = 0; round < 12; ++round) {
        auto const p = prepare(round % 2 == 0 ? one_f_one_b::program({.ranks = 2, .microbatches = 2}) : gpipe::program({.ranks = 2, .microbatches = 2}),
                               random_profile(draw, 2));
        auto const fastest = fastest_time(p.curve);
        for (int step = 0; step <= 4; ++step) {
            auto const deadline = fastest + (slowest_time(p.curve) - fastest) * (0.25 * step);
            auto const real = round_to_clocks(p.curve, p.made.options, p.blocking, deadline);
            auto const best = best_choice(p, in_whole_nanoseconds(deadline));
            REQUIRE(real);
            REQUIRE(real->cost.count == best);
        }
    }
}

TEST_CASE("round_to_clocks: the earliest deadline takes fastest clocks")
{
    auto const p = prepare(one_f_one_b::program({.ranks = 2, .microbatches = 2}), small_profile(), milliseconds(0.7));
    REQUIRE(fastest_time(p.curve) > milliseconds(18.0));  // ticks are rounded up
    auto const real = round_to_clocks(p.curve, p.made.options, p.blocking, milliseconds(18.0));
    REQUIRE(real);
    CHECK(in_whole_nanoseconds(real->time) == 18'000'000);
    CHECK(round_to_clocks(p.curve, p.made.options, p.blocking, milliseconds(17.9)).error() ==
          "no plan meets this deadline: with each computation at its fastest clock the iteration takes longer");
}

TEST_CASE("round_to_clocks: a coarse unit only costs time")
{
    auto const program = one_f_one_b::program({.ranks = 2, .microbatches = 8});
    auto const fine = prepare(program, small_profile());
    auto const coarse = prepare(program, small_profile(), milliseconds(0.7));
    auto const deadline = fastest_time(fine.curve);
    REQUIRE(fastest_time(coarse.curve) > deadline);
    auto const wanted = round_to_clocks(fine.curve, fine.made.options, fine.blocking, deadline);
    auto const real = round_to_clocks(coarse.curve, coarse.made.options, coarse.blocking, deadline);
    REQUIRE(real);
    REQUIRE(real->time.count <= deadline.count + 1e-9);
    CHECK(in_joules(real->cost - wanted->cost).count <= 0.02 * wanted->computing.count);
}

TEST_CASE("round_to_clocks: missing rows are named; ranks may differ")
{
    auto const network = make_event_network(one_f_one_b::program({.ranks = 3, .microbatches = 2}));
    CHECK(make_activity_network(network, small_profile(), {watts{50.0}}).error() == "the profile has nothing for 2F0 on rank 2");
    auto measured = small_profile();
    auto slow = measured.rows;
    for (auto& row : slow) {
        row.rank = rank_id{1};
        row.time = row.time * 1.5;
        measured.rows.push_back(row);
    }
    auto const even = make_event_network(one_f_one_b::program({.ranks = 2, .microbatches = 2}));
    auto const same = make_frontier(make_activity_network(even, small_profile(), {watts{50.0}})->activities, watts{100.0});
    auto const own = make_frontier(make_activity_network(even, measured, {watts{50.0}})->activities, watts{100.0});
    CHECK(fastest_time(own) > fastest_time(same));
    CHECK(own.activities.curves.size() == 4);
}

TEST_CASE("round_to_clocks: two clocks per operation meet the bound")
{
    std::mt19937 draw{19};
    for (int round = 0; round < 20; ++round) {
        auto const p = prepare(one_f_one_b::program({.ranks = 3, .microbatches = 4}), random_profile(draw, 3));
        for (int step = 0; step <= 7; ++step) {
            auto const plan = *at(p.curve, fastest_time(p.curve) + (slowest_time(p.curve) - fastest_time(p.curve)) * (step / 7.0));
            auto const clocks = two_clocks(p.curve, plan, p.made.options, p.blocking);
            double cost = 0.0;
            for (std::size_t k = 0; k < clocks.size(); ++k) {
                REQUIRE(clocks[k].share >= 0.0);
                REQUIRE(clocks[k].share <= 1.0);
                REQUIRE(time_of(clocks[k]).count <= time_of(p.curve, plan.durations[k]).count + 1e-9);
                cost += (energy_of(clocks[k]) - p.blocking * time_of(clocks[k])).count;
            }
            REQUIRE(cost == Approx(in_joules(plan.cost).count).margin(1e-5));
        }
    }
}
