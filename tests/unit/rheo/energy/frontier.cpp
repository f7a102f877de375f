// SPDX-License-Identifier: Apache-2.0
// Look-ups between vertices, the straggler's answer, and the proof of every plan.
#include "rheo/energy/frontier/frontier.hpp"

#include "problems.hpp"
#include "rheo/energy/frontier/certificate.hpp"
#include "rheo/energy/frontier/make_activity_network.hpp"
#include "rheo/schedule/families/one_f_one_b.hpp"
#include "support/catch.hpp"

using namespace frontier_tests;

namespace {

constexpr frontier small_frontier()
{
    auto const network = make_event_network(one_f_one_b::program({.ranks = 2, .microbatches = 2}));
    auto made = make_activity_network(network, small_profile(), {watts{50.0}, cost_fit::hull, milliseconds(1.0)});
    return make_frontier(std::move(made->activities), watts{100.0});
}

// A frontier of two ranks is planned and proved by the compiler.
static_assert([] {
    auto const f = small_frontier();
    for (auto time = f.vertices.back().time; time <= f.vertices.front().time; time += ticks{1}) {
        auto const claim = certify(f, time);
        if (!verify(f.activities, claim) || verify(f.activities, claim).cost != plan_at(f, time).cost) {
            return false;
        }
    }
    return f.vertices.size() > 2 && fastest_time(f) == milliseconds(18.0);
}());

/// The total energy at a time, in nanojoules.
std::int64_t total(frontier const& f, ticks time) { return plan_at(f, time).cost.count + detail::waiting_per_tick(f.activities, f.waiting).count * time.count; }

}  // namespace

TEST_CASE("frontier: every tick has a proved plan at its cost")
{
    std::mt19937 draw{12};
    for (int round = 0; round < 60; ++round) {
        auto const f = make_frontier(random_network(draw, random_program(draw, 3, 3, 4), 3), watts{0.0}, frontier_begin::slowest);
        for (auto time = f.vertices.back().time; time <= f.vertices.front().time; time += ticks{1}) {
            auto const plan = plan_at(f, time);
            REQUIRE(plan.time == time);
            std::vector<int> durations;
            std::int64_t cost = 0;
            for (std::size_t k = 0; k < plan.durations.size(); ++k) {
                durations.push_back(plan.durations[k].count);
                cost += cost_at(f.activities.curves[static_cast<std::size_t>(f.activities.curve_of[k])], plan.durations[k]).count;
            }
            REQUIRE(length_of(f.activities, durations) <= time.count);
            REQUIRE(cost == plan.cost.count);
            auto const claim = certify(f, time);
            auto const checked = verify(f.activities, claim);
            REQUIRE(checked.error.empty());
            REQUIRE(checked.cost == plan.cost);
        }
    }
}

TEST_CASE("frontier: a changed certificate proves nothing")
{
    auto const f = small_frontier();
    auto const time = f.vertices[f.vertices.size() / 2].time;
    auto const sound = certify(f, time);
    REQUIRE(verify(f.activities, sound));
    std::size_t refused = 0;
    for (std::size_t a = 0; a < sound.flows.size(); ++a) {
        for (auto const change : {-1'000'000, 1'000'000}) {
            auto claim = sound;
            claim.flows[a] += change;
            refused += verify(f.activities, claim) ? 0U : 1U;
        }
    }
    CHECK(refused == 2 * sound.flows.size());
    auto late = sound;
    late.events[1] = late.events.back();
    CHECK_FALSE(verify(f.activities, late));
    CHECK_FALSE(verify(f.activities, {sound.events, {}}));
    auto other = sound;
    other.flows = certify(f, f.vertices.front().time).flows;
    auto const weak = verify(f.activities, other);
    CHECK((weak ? weak.cost == weak.bound : weak.bound < weak.cost));  // any flow bounds; only the right one proves
}

TEST_CASE("frontier: begins at the time of least energy")
{
    std::mt19937 draw{13};
    for (int round = 0; round < 60; ++round) {
        auto const p = random_network(draw, random_program(draw, 3, 3, 4), 3);
        auto const waiting = watts{1e-9 * below(draw, 20)};  // nanojoules per tick of a second
        auto const whole = make_frontier(p, waiting, frontier_begin::slowest);
        auto const f = make_frontier(p, waiting);
        REQUIRE(f.vertices.back().time == whole.vertices.back().time);
        REQUIRE(f.vertices.back().cost == whole.vertices.back().cost);
        for (auto time = whole.vertices.back().time; time <= whole.vertices.front().time; time += ticks{1}) {
            REQUIRE(total(whole, f.vertices.front().time) <= total(whole, time));
            REQUIRE((time >= f.vertices.front().time || total(whole, time) > total(whole, f.vertices.front().time)));
            REQUIRE(plan_at(f, time).cost == plan_at(whole, std::min(time, f.vertices.front().time)).cost);
        }
    }
}

TEST_CASE("frontier: a straggler uses the earlier of its time and T*")
{
    auto const f = small_frontier();
    CHECK(at(f, milliseconds(18.0))->time == ticks{18});
    CHECK(*at(f, slowest_time(f) * 10.0) == plan_at(f, f.vertices.front().time));
    CHECK(at(f, milliseconds(17.9)).error() == "no plan meets this deadline: the fastest one takes longer");
    CHECK_FALSE(at(f, seconds{std::numeric_limits<double>::quiet_NaN()}));
    CHECK_THROWS_WITH(plan_at(f, ticks{1}), "no plan is faster than the fastest one");
}

TEST_CASE("frontier: pipelines run at the pace of the longest")
{
    std::vector<frontier> both;
    for (int microbatches : {2, 3}) {
        auto const network = make_event_network(one_f_one_b::program({.ranks = 2, .microbatches = microbatches}));
        both.push_back(make_frontier(make_activity_network(network, small_profile(), {watts{50.0}})->activities, watts{100.0}));
    }
    auto const deadline = common_deadline(both);
    CHECK(deadline == fastest_time(both[1]));
    auto const slowed = at(both[0], deadline);
    REQUIRE(slowed);
    CHECK(slowed->cost < both[0].vertices.back().cost);
}
