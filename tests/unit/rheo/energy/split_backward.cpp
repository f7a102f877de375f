// SPDX-License-Identifier: Apache-2.0
// Halves of a backward add up to it, at every clock; schedules that split it have frontiers, and the proofs hold.
#include "rheo/energy/profile/split_backward.hpp"

#include "problems.hpp"
#include "rheo/energy/frontier/certificate.hpp"
#include "rheo/energy/frontier/make_activity_network.hpp"
#include "rheo/schedule/families/families.hpp"
#include "support/catch.hpp"

using namespace frontier_tests;

TEST_CASE("split_backward: halves add up; measured halves stay")
{
    auto measured = small_profile();
    measured.rows[3].throttled = true;  // the first backward
    auto const both = with_split_backwards(measured, 0.4);
    CHECK(both.rows.size() == measured.rows.size() + 12);
    for (auto const& row : measured.rows) {
        if (row.kind == instruction_kind::backward) {
            seconds time{0.0};
            joules energy{0.0};
            for (auto const& half : both.rows) {
                if (half.stage == row.stage && half.clock == row.clock && half.kind > instruction_kind::backward) {
                    time += half.time;
                    energy += half.energy;
                    CHECK(half.throttled == row.throttled);
                }
            }
            CHECK(time.count == Approx(row.time.count));
            CHECK(energy.count == Approx(row.energy.count));
        }
    }
    CHECK(with_split_backwards(both, 0.9) == both);
    CHECK_THROWS_WITH(with_split_backwards(measured, 1.0), "the share of the input's gradient in a backward lies between 0 and 1");
}

TEST_CASE("split_backward: split schedules need measured halves")
{
    for (auto const name : {"zb-h1", "zb-h2"}) {
        CAPTURE(name);
        auto const p = make_program(*parse_schedule(name), {.ranks = 2, .microbatches = 6});
        auto const network = make_event_network(p);
        CHECK(make_activity_network(network, small_profile(), {watts{50.0}}).error().starts_with("the profile has nothing for 0I"));
        auto const made = make_activity_network(network, with_split_backwards(small_profile(), 0.5), {watts{50.0}});
        REQUIRE(made);
        auto const f = make_frontier(made->activities, watts{100.0});
        REQUIRE(f.vertices.size() > 1);
        for (auto const& vertex : f.vertices) {
            REQUIRE(verify(f.activities, certify(f, vertex.time)).error.empty());
        }
        auto const whole = make_frontier(
            make_activity_network(make_event_network(make_program(*parse_schedule("1f1b"), {.ranks = 2, .microbatches = 6})), small_profile(), {watts{50.0}})
                ->activities,
            watts{100.0});
        CHECK(fastest_time(f) <= fastest_time(whole));
    }
}
