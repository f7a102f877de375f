// SPDX-License-Identifier: Apache-2.0
// Frontiers that are carried over from shorter programs are the ones that solving gives, at every vertex and between
// them, and each of their plans is proved on the whole program.
#include "rheo/energy/frontier/continued_plan.hpp"

#include <map>
#include <string>

#include "problems.hpp"
#include "rheo/energy/clocks/round_to_clocks.hpp"
#include "rheo/energy/frontier/make_activity_network.hpp"
#include "rheo/schedule/families/families.hpp"
#include "support/catch.hpp"

using namespace frontier_tests;

namespace {

constexpr watts blocking{50.0};

/// Stages of different weight at a few clocks, whole and split backwards.
profile uneven_profile(int stages)
{
    profile result;
    for (int stage = 0; stage < stages; ++stage) {
        for (auto const kind : {instruction_kind::forward, instruction_kind::backward, instruction_kind::input_gradient, instruction_kind::weight_gradient}) {
            double time = (kind == instruction_kind::backward ? 4.0 : 2.0) * (1.0 + 0.05 * ((stage * 5) % 7));
            double energy = time / 2.0;
            for (double clock : {1400.0, 1200.0, 900.0}) {
                result.rows.push_back({rank_id{-1}, stage_id{stage}, kind, {clock}, milliseconds(time), {energy}});
                time *= 1.3;
                energy *= clock > 1300.0 ? 0.75 : 0.9;
            }
        }
    }
    return result;
}

made_network made_for(any_schedule const& schedule, int ranks, int microbatches)
{
    auto const p = make_program(schedule, {.ranks = ranks, .microbatches = microbatches});
    return *make_activity_network(make_event_network(p), uneven_profile(stages_per_copy(p)), {blocking, cost_fit::hull, milliseconds(0.01)});
}

result<steady_state> steady(any_schedule const& schedule, int ranks, int period, int to = 200)
{
    return find_steady_state([&](int microbatches) { return made_for(schedule, ranks, microbatches).activities; }, blocking * static_cast<double>(ranks),
                             {.from = 4 * ranks, .to = to, .period = period});
}

}  // namespace

TEST_CASE("steady_state: proved vertices equal solved ones")
{
    std::map<std::string, int> proved;
    for (auto const name : {"1f1b", "gpipe", "eager-1f1b", "zb-h1"}) {
        auto const schedule = *parse_schedule(name);
        for (int ranks : {1, 2, 3, 4}) {
            CAPTURE(name, ranks);
            auto const s = steady(schedule, ranks, 1);
            if (!s) {
                continue;
            }
            for (int microbatches : {s->microbatches, s->microbatches + 1, s->microbatches + 2, 2 * s->microbatches + 3, 5 * s->microbatches}) {
                CAPTURE(microbatches);
                auto const made = made_for(schedule, ranks, microbatches);
                auto const whole = make_frontier(made.activities, blocking * static_cast<double>(ranks));
                auto const slowest = make_frontier(made.activities, blocking * static_cast<double>(ranks), frontier_begin::slowest);
                auto const curve = continued_curve(*s, made.activities, microbatches);
                bool all = proved_least(*s, curve, microbatches);
                REQUIRE((!all || curve.vertices.front().time == whole.vertices.front().time));
                for (auto const& vertex : curve.vertices) {
                    auto const plan = continued_at(*s, curve, microbatches, vertex.time);
                    all = all && plan;
                    CAPTURE(plan.checked.cost.count, vertex.cost.count, cost_at(slowest, vertex.time).count, vertex.time.count,
                            slowest.vertices.front().time.count, slowest.vertices.back().time.count, vertex.slope.count);
                    REQUIRE((!plan || (plan.checked.cost == vertex.cost && vertex.cost == cost_at(slowest, vertex.time))));
                }
                CHECK(proved_everywhere(*s, curve, microbatches) == all);
                CHECK((!all || curve.vertices == whole.vertices));
                proved[name] += all ? 1 : 0;
            }
        }
    }
    CHECK(proved["1f1b"] == 20);  // of 20 programs the whole curve; of the others a part; the rest is reported as unproved
    CHECK(proved["gpipe"] > 0);
    CHECK(proved["eager-1f1b"] > 0);
    CHECK(proved["zb-h1"] > 0);
}

TEST_CASE("steady_state: plans between vertices are optimal too")
{
    auto const schedule = *parse_schedule("1f1b");
    auto const s = steady(schedule, 3, 1);
    REQUIRE(s);
    int const microbatches = 60;
    auto const made = made_for(schedule, 3, microbatches);
    auto const whole = make_frontier(made.activities, blocking * 3.0);
    auto const curve = continued_curve(*s, made.activities, microbatches);
    auto const from = curve.vertices.back().time;
    auto const to = curve.vertices.front().time;
    for (int step = 0; step <= 53; ++step) {
        auto const time = from + ticks{(to - from).count / 50 * step};
        auto const point = continued_at(*s, curve, microbatches, time);
        REQUIRE(point.checked.error.empty());
        REQUIRE(point.checked.cost == cost_at(whole, time));
        auto const there = frontier_at(curve, point, time);
        auto const deadline = time_of(whole, std::min(time, to));
        auto const real = round_to_clocks(there, made.options, blocking, deadline);
        REQUIRE(real);
        REQUIRE(real->time.count <= deadline.count + 1e-9);
        REQUIRE(real->cost >= point.checked.bound - nanojoules{1000});
    }
}

TEST_CASE("steady_state: unsteady programs are reported")
{
    auto const schedule = *parse_schedule("1f1b");
    CHECK(find_steady_state([&](int m) { return made_for(schedule, 4, m).activities; }, blocking * 4.0, {.from = 2, .to = 3}).error() ==
          "no steady state was found with so few microbatches");
    auto const s = steady(schedule, 2, 1);
    REQUIRE(s);
    auto const flushed = made_for(*parse_schedule("gpipe"), 2, 40);
    auto const wrong = continued_curve(*s, flushed.activities, 40);
    auto const point = continued_at(*s, wrong, 40, wrong.vertices.back().time);
    CHECK_FALSE(point);
    CHECK_THROWS_WITH(continued_curve(*s, flushed.activities, s->microbatches - 1), "a steady state stands for programs that are longer by whole periods");
}
