// SPDX-License-Identifier: Apache-2.0
// What the frontier at real clocks promises, over many made-up profiles: a longer deadline never takes more energy, no
// other fit leads to less, bounds are below the optimum, and the optimum itself is found where it can be enumerated.
#include "rheo/energy/clocks/real_frontier.hpp"

#include "coarse_profiles.hpp"
#include "problems.hpp"
#include "rheo/energy/clocks/bucket_clocks.hpp"
#include "rheo/energy/clocks/round_to_clocks.hpp"
#include "rheo/energy/frontier/make_activity_network.hpp"
#include "rheo/schedule/families/gpipe.hpp"
#include "rheo/schedule/families/one_f_one_b.hpp"
#include "support/catch.hpp"

using namespace frontier_tests;

namespace {

constexpr watts blocking{75.0};

struct prepared {
    made_network made;
    frontier curve;
};

prepared prepare(program const& p, profile const& measured, cost_fit fit = cost_fit::hull, frontier_begin begin = frontier_begin::least_energy)
{
    auto made = *make_activity_network(make_event_network(p), measured, {blocking, fit});
    auto f = make_frontier(made.activities, blocking * static_cast<double>(p.rows.size()), begin);
    return {std::move(made), std::move(f)};
}

/// Shape number `k` of those that the tests go through, and a program for it.
coarse_shape shape_of(int k, int stages) { return {stages, 3 + k % 4, 100.0 + 20.0 * (k % 5), k % 3 == 0 ? 0.0 : 0.01 * (k % 3)}; }

program program_of(int k, int ranks, int microbatches)
{
    schedule_shape const shape{.ranks = ranks, .microbatches = microbatches};
    return k % 4 == 3 ? gpipe::program(shape) : one_f_one_b::program(shape);
}

std::int64_t nanoseconds_of(seconds time) { return in_whole_nanoseconds(time); }

/// The deadline that many hundredths of the way from the fastest plan to the frontier's other end.
seconds deadline_at(prepared const& p, int step, int steps)
{
    auto const fastest = at_fastest_clocks(p.made.activities, p.made.options, blocking).time;
    return fastest + (slowest_time(p.curve) - fastest) * (static_cast<double>(step) / steps);
}

struct least {
    std::int64_t cost = std::numeric_limits<std::int64_t>::max();
    std::int64_t total = std::numeric_limits<std::int64_t>::max();  ///< with waiting until its own end
};

/// The least of all choices of one option per operation that end in time, one after the other.
least enumerate(prepared const& p, std::int64_t deadline)
{
    auto const& activities = p.made.activities;
    std::vector<std::size_t> choice(activities.curve_of.size());
    std::vector<std::int64_t> times;
    least best;
    for (bool more = true; more;) {
        times.assign(static_cast<std::size_t>(activities.network.events), 0);
        std::int64_t cost = 0;
        for (auto const& arc : activities.network.arcs) {
            auto length = arc.nanoseconds;
            if (arc.operation >= 0) {
                auto const k = static_cast<std::size_t>(arc.operation);
                auto const& option = p.made.options[static_cast<std::size_t>(activities.curve_of[k])][choice[k]];
                length = detail::nanoseconds_above(option.time);
                cost += in_whole_nanojoules(option.energy - blocking * option.time).count;
            }
            auto& end = times[static_cast<std::size_t>(arc.to)];
            end = std::max(end, times[static_cast<std::size_t>(arc.from)] + length);
        }
        if (times.back() <= deadline) {
            best.cost = std::min(best.cost, cost);
            best.total = std::min(best.total, cost + in_whole_nanojoules(p.curve.waiting * nanoseconds(static_cast<double>(times.back()))).count);
        }
        more = false;
        for (std::size_t k = 0; k < choice.size() && !more; ++k) {
            more = choice[k] + 1 < p.made.options[static_cast<std::size_t>(activities.curve_of[k])].size();
            choice[k] = more ? choice[k] + 1 : 0;
        }
    }
    return best;
}

std::int64_t total_of(prepared const& p, clocked_plan const& plan) { return plan.cost.count + in_whole_nanojoules(p.curve.waiting * plan.time).count; }

}  // namespace

TEST_CASE("real_frontier: longer deadlines never need more energy")
{
    std::mt19937 draw{31};
    int deadlines = 0;
    for (int k = 0; k < 24; ++k) {
        int const ranks = 2 + k % 3;
        auto const p = prepare(program_of(k, ranks, 4 + k % 7), coarse_profile(draw, shape_of(k, ranks)), cost_fit::hull,
                               k % 2 == 0 ? frontier_begin::least_energy : frontier_begin::slowest);
        auto const real = make_real_frontier(p.curve, p.made.options, blocking, slowest_time(p.curve));
        auto last_cost = std::numeric_limits<std::int64_t>::max();
        auto last_total = last_cost;
        for (int step = 0; step < 100; ++step, ++deadlines) {
            auto const deadline = deadline_at(p, step, 99);
            auto const plan = round_to_clocks(real, deadline);
            auto const alone = round_to_clocks(real, deadline, waiting_until::own_end);
            CAPTURE(k, step);
            REQUIRE(plan);
            REQUIRE(nanoseconds_of(plan->time) <= nanoseconds_of(deadline));
            REQUIRE(nanoseconds_of(alone->time) <= nanoseconds_of(deadline));
            REQUIRE(plan->cost.count <= last_cost);
            REQUIRE(total_of(p, *alone) <= last_total);
            REQUIRE(total_of(p, *alone) <= total_of(p, *plan));
            last_cost = plan->cost.count;
            last_total = total_of(p, *alone);
            if (step % 9 == 0) {
                auto const claim = certify(p.curve, std::max(detail::ticks_within(p.curve, deadline), p.curve.vertices.back().time));
                REQUIRE(least_cost_by(p.made.activities, p.made.options, blocking, claim.flows, deadline) <= plan->cost);
            }
            if (k % 4 == 0 && step % 49 == 17) {  // made for this deadline alone it is the same plan
                REQUIRE(*round_to_clocks(p.curve, p.made.options, blocking, deadline) == *plan);
            }
        }
    }
    CHECK(deadlines == 2400);
}

TEST_CASE("real_frontier: no other fit rounds better")
{
    std::mt19937 draw{32};
    int compared = 0;
    int above = 0;
    double worst = 0.0;
    double gained = 0.0;
    for (int k = 0; k < 16; ++k) {
        int const ranks = 2 + k % 3;
        auto const program = program_of(k, ranks, 6 + k % 5);
        auto const measured = coarse_profile(draw, shape_of(k, ranks));
        auto const hull = prepare(program, measured);
        auto const fitted = prepare(program, measured, cost_fit::exponential, frontier_begin::slowest);
        auto const real = make_real_frontier(hull.curve, hull.made.options, blocking, slowest_time(hull.curve));
        auto const other = make_real_frontier(fitted.curve, fitted.made.options, blocking, slowest_time(hull.curve));
        for (int step = 0; step < 20; ++step, ++compared) {
            auto const deadline = deadline_at(hull, step, 20);
            CAPTURE(k, step);
            REQUIRE(round_to_clocks(real, deadline)->cost <= round_to_clocks(other, deadline)->cost);
        }
        auto const published = published_plans(fitted.made, fitted.curve, blocking);  // at the times that its plans take
        auto const both = make_real_frontier(hull.curve, hull.made.options, blocking, slowest_time(hull.curve), published);
        for (auto const& plan : published) {
            if (plan.time <= slowest_time(hull.curve)) {
                CAPTURE(k, plan.time.count);
                REQUIRE(round_to_clocks(both, plan.time)->cost <= plan.cost);
                auto const less = plan.cost - round_to_clocks(real, plan.time)->cost;
                above += less < nanojoules{0} ? 1 : 0;
                worst = std::min(worst, in_joules(less) / total_energy(hull.curve, plan.cost, plan.time));
                gained += in_joules(less).count;
                ++compared;
            }
        }
        auto last = std::numeric_limits<std::int64_t>::max();
        for (int step = 0; step <= 50; ++step) {
            auto const cost = round_to_clocks(both, deadline_at(hull, step, 50))->cost.count;
            REQUIRE(cost <= last);
            last = cost;
        }
    }
    INFO(above << " published plans are better than the family without them, at most by " << -100.0 * worst << " %");
    CHECK(above * 20 < compared);
    CHECK(worst > -0.005);
    CHECK(gained > 0.0);
    CHECK(compared > 1000);
}

TEST_CASE("real_frontier: optimal where enumeration is possible")
{
    std::mt19937 draw{33};
    for (int k = 0; k < 60; ++k) {
        int const ranks = 1 + k % 3;
        auto shape = shape_of(k, ranks);
        int const microbatches = ranks == 1 ? 3 : ranks == 2 ? 2 : 1;
        shape.clocks = 3 + k % 2;
        auto const p = prepare(program_of(k, ranks, microbatches), coarse_profile(draw, shape));
        for (int step = 0; step < 6; ++step) {
            auto const deadline = deadline_at(p, step, 6);
            auto const best = enumerate(p, nanoseconds_of(deadline));
            CAPTURE(k, step);
            REQUIRE(round_to_clocks(p.curve, p.made.options, blocking, deadline)->cost.count == best.cost);
            auto const alone = *round_to_clocks(p.curve, p.made.options, blocking, deadline, waiting_until::own_end);
            REQUIRE(total_of(p, alone) == best.total);
            for (auto const& f : {p.curve, prepare(program_of(k, ranks, microbatches), coarse_profile(draw, shape)).curve}) {
                auto const flows =
                    certify(f, std::max(detail::ticks_within(f, deadline), f.vertices.back().time)).flows;  // another profile's flow bounds as well
                REQUIRE(least_cost_by(p.made.activities, p.made.options, blocking, flows, deadline).count <= best.cost);
            }
        }
    }
}

TEST_CASE("real_frontier: gap is under half that of plain rounding")
{
    std::mt19937 draw{34};
    double plain_gap = 0.0;
    double gap = 0.0;
    double largest = 0.0;
    for (int k = 0; k < 12; ++k) {
        auto const p = prepare(program_of(k, 2, 4), coarse_profile(draw, {2, 3 + k % 2, 120.0 + 10.0 * (k % 4)}));
        auto const tables = detail::worth_choosing(p.made.options, blocking);
        REQUIRE_FALSE(detail::is_enumerable(p.made.activities, tables));
        auto const real = make_real_frontier(p.curve, p.made.options, blocking, slowest_time(p.curve));
        for (int step = 0; step < 10; ++step) {
            auto const deadline = deadline_at(p, step, 10);
            auto const end = nanoseconds_of(deadline);
            detail::clock_search plain{p.made.activities, tables};
            plain.round_down(detail::events_within(p.curve, end), detail::rounding::windows);
            REQUIRE(plain.meet(end));
            plain.fill(end, [](auto const&) {});
            auto const found = *round_to_clocks(real, deadline);
            auto const flows = certify(p.curve, std::max(detail::ticks_within(p.curve, deadline), p.curve.vertices.back().time)).flows;
            detail::exact_clocks exact{p.made.activities, tables, flows, watts{0.0}, end};
            auto const best = exact.best(plain.choices(), plain.cost(), plain.time());
            std::int64_t cost = 0;
            for (std::size_t i = 0; i < best.size(); ++i) {
                cost += tables[static_cast<std::size_t>(p.made.activities.curve_of[i])][static_cast<std::size_t>(best[i])].cost;
            }
            REQUIRE(found.cost.count >= cost);
            auto const energy = static_cast<double>(cost) + p.curve.waiting.count * static_cast<double>(end);
            plain_gap += static_cast<double>(plain.cost() - cost) / energy;
            gap += static_cast<double>(found.cost.count - cost) / energy;
            largest = std::max(largest, static_cast<double>(found.cost.count - cost) / energy);
        }
    }
    INFO("mean gap in %: plain " << plain_gap / 1.2 << ", found " << gap / 1.2 << ", largest " << 100.0 * largest);
    CHECK(gap < 0.5 * plain_gap);
    CHECK(largest < 0.01);
}
