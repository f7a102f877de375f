// SPDX-License-Identifier: Apache-2.0
// Save energy at no loss of time: what is not on the critical path may run at a lower clock. The frontier knows for
// every time the plan of least energy, with a proof; the compiler plans this small one, and its clocks fit no other program.
#include <cstdio>

#include "rheo/energy/clocks/clock_plan.hpp"
#include "rheo/energy/frontier/certificate.hpp"
#include "rheo/energy/frontier/make_activity_network.hpp"
#include "rheo/schedule/families/one_f_one_b.hpp"

using namespace rheo;

constexpr auto pipeline = named<[] { return one_f_one_b::program({.ranks = 3, .microbatches = 4}); }>;
constexpr watts blocking{80.0};  // what a device draws while it waits

/// As if measured: half the clock takes 1.6 times as long for half the energy; the last stage is the longest.
constexpr profile measured()
{
    profile result;
    for (int stage = 0; stage < 3; ++stage) {
        for (auto const kind : {instruction_kind::forward, instruction_kind::backward}) {
            double const work = (kind == instruction_kind::forward ? 1.0 : 2.0) * (stage == 2 ? 1.25 : 1.0);
            result.rows.push_back({rank_id{-1}, stage_id{stage}, kind, {1400.0}, milliseconds(20.0 * work), {8.0 * work}});
            result.rows.push_back({rank_id{-1}, stage_id{stage}, kind, {1050.0}, milliseconds(25.0 * work), {5.5 * work}});
            result.rows.push_back({rank_id{-1}, stage_id{stage}, kind, {700.0}, milliseconds(32.0 * work), {4.0 * work}});
        }
    }
    return result;
}

constexpr made_network planned()
{
    return *make_activity_network(make_event_network(one_f_one_b::program({.ranks = 3, .microbatches = 4})), measured(),
                                  {blocking, cost_fit::hull, milliseconds(1.0)});
}

constexpr auto calm = [] {
    auto const made = planned();
    auto const f = make_frontier(made.activities, blocking * 3.0);
    return clock_plan_of(pipeline, f, *round_to_clocks(f, made.options, blocking, fastest_time(f)));
}();

int main()
{
    auto const made = planned();
    auto const f = make_frontier(made.activities, blocking * 3.0);
    std::printf("computations at their clocks in MHz, a line per rank:");
    int row = -1;
    for (auto const& i : clocked(pipeline, calm)) {
        std::printf("%s%s@%.0f", i.row == row ? " " : "\n", to_string(i.instruction).c_str(), i.clock.count);
        row = i.row;
    }
    std::printf("\nno loss of time: %.3f s, %.1f J\n", calm.time.count, calm.energy.count);
    for (double late : {1.0, 1.1, 1.2, 1.5}) {  // a straggler elsewhere: no rank waits for us
        auto const plan = *at(f, fastest_time(f) * late);
        auto const least = total_energy(f, plan.cost, time_of(f, plan.time));
        std::printf("deadline x %.1f: %.3f s, no less than %.1f J: %s\n", late, time_of(f, plan.time).count, least.count,
                    verify(f.activities, certify(f, plan.time)) ? "proved" : "not proved");
    }
}
