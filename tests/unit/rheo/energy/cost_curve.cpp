// SPDX-License-Identifier: Apache-2.0
// Curves are convex, falling, in whole numbers; the hull lies under every option and touches those at its corners.
#include "rheo/energy/profile/cost_curve.hpp"

#include "problems.hpp"
#include "rheo/energy/profile/exponential_fit.hpp"
#include "support/catch.hpp"

using namespace frontier_tests;

namespace {

std::vector<clock_option> random_options(std::mt19937& draw)
{
    std::vector<clock_option> options;
    double time = 0.04 + 0.001 * below(draw, 20);
    double energy = 20.0 + below(draw, 10);
    for (int k = 1 + below(draw, 30); k > 0; --k) {
        options.push_back({{1400.0 - 15.0 * static_cast<double>(options.size())}, {time}, {energy}});
        time += 1e-6 * (1 + below(draw, 2000));
        energy -= 1e-3 * (below(draw, 600) - 200);
    }
    return options;
}

void check_convex(cost_curve const& curve)
{
    REQUIRE(curve.slopes.size() + 1 == curve.times.size());
    for (std::size_t k = 0; k < curve.slopes.size(); ++k) {
        REQUIRE(curve.times[k] < curve.times[k + 1]);
        REQUIRE(curve.slopes[k].count > 0);
        REQUIRE((k == 0 || curve.slopes[k] < curve.slopes[k - 1]));
    }
}

}  // namespace

// Two clocks of which the middle one lies above the line between the others: it is not on the hull.
static_assert(hull_curve({{{3.0}, {1.0}, {10.0}}, {{2.0}, {2.0}, {9.0}}, {{1.0}, {3.0}, {2.0}}}, watts{0.0}, seconds{1.0}) ==
              cost_curve{{ticks{1}, ticks{3}}, {nanojoules{4'000'000'000}}, nanojoules{10'000'000'000}});
// A slower clock that costs more, once the power of waiting is taken off, is left out.
static_assert(hull_curve({{{2.0}, {1.0}, {10.0}}, {{1.0}, {2.0}, {12.0}}}, watts{1.0}, seconds{1.0}).slopes.empty());
static_assert(hull_curve({{{2.0}, {1.0}, {10.0}}, {{1.0}, {2.0}, {12.0}}}, watts{3.0}, seconds{1.0}).slopes.size() == 1);

TEST_CASE("cost_curve: hull is convex, below and touching options")
{
    std::mt19937 draw{14};
    for (int round = 0; round < 300; ++round) {
        auto const options = random_options(draw);
        watts const blocking{static_cast<double>(below(draw, 200))};
        auto const curve = hull_curve(options, blocking, microseconds(1.0));
        check_convex(curve);
        std::size_t touched = 0;
        for (auto const& option : options) {
            auto const time = detail::ticks_above(detail::nanoseconds_above(option.time), 1000);
            auto const cost = in_whole_nanojoules(option.energy - blocking * option.time).count;
            auto const hull = cost_at(curve, time).count;
            std::int64_t const rounding = curve.times.back().count - curve.times.front().count + 1;
            REQUIRE(hull <= cost + rounding);
            touched += hull >= cost - rounding ? 1U : 0U;
        }
        REQUIRE(touched >= curve.times.size());
    }
}

TEST_CASE("cost_curve: exponential fit finds the exact exponential")
{
    std::mt19937 draw{15};
    for (int round = 0; round < 50; ++round) {
        double const a = 10.0 + below(draw, 1000);
        double const b = -0.01 - 0.002 * below(draw, 40);
        double const c = 5.0 - below(draw, 20);
        std::vector<bucketed_option> points;
        for (int q = 50; q < 80; q += 1 + below(draw, 3)) {
            points.push_back({ticks{q}, a * std::exp(b * q) + c, milliseconds(q), {}});
        }
        auto const model = fit_exponential(points);
        CHECK(model.b == Approx(b).epsilon(1e-5));
        for (auto const& p : points) {
            REQUIRE(cost_of(model, p.time) == Approx(p.cost).margin(1e-6));
        }
    }
}

TEST_CASE("cost_curve: no other exponential rate fits better")
{
    std::mt19937 draw{16};
    for (int round = 0; round < 30; ++round) {
        auto const points = bucketed(random_options(draw), watts{80.0}, milliseconds(1.0));
        auto const model = fit_exponential(points);
        double const span = points.back().time.count - points.front().time.count;
        if (points.size() < 4 || model.a < 0.0 || -model.b * span < 2e-3) {
            continue;  // as good as a line: slower and slower rates fit better and better
        }
        for (double factor : {0.5, 0.9, 0.99, 0.999, 1.001, 1.01, 1.1, 2.0}) {
            REQUIRE(model.error <= detail::fit_for_rate(points, model.b * factor).error + 1e-15);
        }
    }
}

TEST_CASE("cost_curve: published curve has a breakpoint per tick")
{
    std::vector<clock_option> const options{{{1400.0}, {0.0500}, {24.0}}, {{1300.0}, {0.0503}, {23.0}}, {{1200.0}, {0.0521}, {21.0}},
                                            {{1100.0}, {0.0547}, {19.5}}, {{1000.0}, {0.0581}, {19.0}}, {{900.0}, {0.0620}, {19.4}}};
    auto const kept = bucketed(options, watts{0.0}, milliseconds(1.0));
    REQUIRE(kept.size() == 4);  // the second shares a bucket, the last takes longer and more energy
    CHECK(kept[0].measured.clock == megahertz{1400.0});
    auto const curve = exponential_curve(options, watts{0.0}, milliseconds(1.0));
    check_convex(curve);
    CHECK(curve.times.front() == ticks{50});
    CHECK(curve.times.back() == ticks{58});
    CHECK(curve.times.size() == 9);
}
