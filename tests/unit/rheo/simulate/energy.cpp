// SPDX-License-Identifier: Apache-2.0
// The account of each rank and the frontier's cost are two ways to the same energy.
#include "rheo/simulate/energy.hpp"

#include "rheo/energy/frontier/make_activity_network.hpp"
#include "rheo/schedule/families/gpipe.hpp"
#include "rheo/schedule/families/one_f_one_b.hpp"
#include "support/catch.hpp"

using namespace rheo;

TEST_CASE("energy: all ranks add up to the frontier's total")
{
    profile measured;
    for (int stage = 0; stage < 3; ++stage) {
        for (auto const kind : {instruction_kind::forward, instruction_kind::backward}) {
            double const work = kind == instruction_kind::forward ? 1.0 + 0.1 * stage : 2.0;
            measured.rows.push_back({rank_id{-1}, stage_id{stage}, kind, {1400.0}, milliseconds(20.0 * work), {8.0 * work}});
            measured.rows.push_back({rank_id{-1}, stage_id{stage}, kind, {1100.0}, milliseconds(25.0 * work), {6.0 * work}});
            measured.rows.push_back({rank_id{-1}, stage_id{stage}, kind, {800.0}, milliseconds(33.0 * work), {5.0 * work}});
        }
    }
    watts const blocking{70.0};
    for (auto const& p : {one_f_one_b::program({.ranks = 3, .microbatches = 5}), gpipe::program({.ranks = 3, .microbatches = 4})}) {
        auto const made = *make_activity_network(make_event_network(p), measured, {blocking});
        auto const f = make_frontier(made.activities, blocking * 3.0);
        for (double late : {1.0, 1.07, 1.3, 2.0}) {
            auto const time = fastest_time(f) * late;
            auto const real = round_to_clocks(f, made.options, blocking, time);
            REQUIRE(real);
            auto const account = energy_account(f.activities.network, *real, blocking, time);
            REQUIRE(account.size() == 3);
            CHECK(total_energy(account).count == Approx(total_energy(f, real->cost, time).count).epsilon(1e-8));
            joules computing{0.0};
            for (auto const& rank : account) {
                CHECK(rank.waiting.count >= -1e-9);
                CHECK(rank.busy.count + rank.waiting.count == Approx(time.count));
                computing += rank.computing;
            }
            CHECK(computing.count == Approx(real->computing.count));
        }
        CHECK_THROWS_WITH(energy_account(f.activities.network, *round_to_clocks(f, made.options, blocking, fastest_time(f)), blocking, seconds{0.0}),
                          "an iteration takes at least as long as its plan");
    }
}
