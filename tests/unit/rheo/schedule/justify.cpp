// SPDX-License-Identifier: Apache-2.0
// Justification: the same computations on the same ranks, in an order that waits for what it needs, and never a longer one.
#include <algorithm>
#include <random>

#include "every_schedule.hpp"
#include "programs.hpp"
#include "rheo/schedule/check/complete.hpp"
#include "rheo/schedule/check/deadlock.hpp"
#include "rheo/schedule/check/figures.hpp"
#include "rheo/schedule/families/families.hpp"
#include "rheo/schedule/search/exact_search.hpp"
#include "rheo/schedule/transform/justify.hpp"
#include "support/catch.hpp"

using namespace rheo;
using test::from_text;
using test::random_costs;

// The compiler justifies, too: the second microbatch of each unit begins while the first unit ends.
static_assert(makespan(justified(detail::in_units(4, 2, [](int count) { return one_f_one_b::program({2, count}); }), unit_costs(2)), unit_costs(2)) ==
              makespan(one_f_one_b::program({2, 4}), unit_costs(2)));

TEST_CASE("justify: complete, ordered and never longer")
{
    std::mt19937 draw{41};
    int shorter = 0;
    for (auto const family : schedule_families()) {
        if (family == dualpipe{} || family == dualpipe_v{}) {
            continue;  // pairs that overlap
        }
        for (int round = 0; round < 12; ++round) {
            int const m = 8 + 2 * (round % 3);
            auto const p = make_program(family, {4, m});
            auto const costs = random_costs(draw, static_cast<int>(p.placement.size()));
            auto const after = justified(p, costs);
            INFO(name_of(family) << '\n' << to_text(p) << '\n' << to_text(after));
            CHECK(complete(after, m));
            CHECK(dependencies_in_order(after));
            CHECK(after.placement == p.placement);
            CHECK(makespan(after, costs) <= makespan(p, costs) + seconds{1e-9});
            CHECK(figures_of(after, costs).lower_bound <= makespan(after, costs) + seconds{1e-9});
            shorter += makespan(after, costs) < makespan(p, costs) ? 1 : 0;
        }
    }
    CHECK(shorter > 60);
}

TEST_CASE("justify: keeps optima, improves random orders")
{
    std::mt19937 draw{42};
    int optimal = 0;
    for (int round = 0; round < 30; ++round) {
        list_request const request{.ranks = 2, .placement = loop_placement(2, 1), .costs = random_costs(draw, 2), .microbatches = 3, .split = round % 2 == 0};
        auto const best = exact_schedule(request);
        REQUIRE(best->is_optimal);
        CHECK(makespan(justified(best->program, request.costs), request.costs).count == Approx(best->makespan.count));
        auto const some = list_schedule(request)->program;
        auto const near = makespan(justified(some, request.costs), request.costs);
        CHECK(near.count >= best->makespan.count - 1e-9);
        optimal += near.count < best->makespan.count + 1e-9 ? 1 : 0;
    }
    CHECK(optimal > 20);
}

TEST_CASE("justify: justified 1F1B units are as short as 1F1B")
{
    for (int p = 1; p <= 6; ++p) {
        for (int m = 1; m <= 4 * p; ++m) {
            auto const units = detail::in_units(m, p, [&](int count) { return one_f_one_b::program({p, count}); });
            INFO("p " << p << " m " << m);
            CHECK(makespan(justified(units, unit_costs(p)), unit_costs(p)) == makespan(one_f_one_b::program({p, m}), unit_costs(p)));
        }
    }
}

TEST_CASE("justify: what cannot be justified is refused in words")
{
    CHECK_THROWS_WITH(justified(dualpipe::program({2, 4}), unit_costs(4)), "only computations are justified, each by itself");
    CHECK_THROWS_WITH(justified(from_text("0F0,0B0\n1F0\n", {0, 1}), unit_costs(2)), "a program is justified when it is complete");
    CHECK_THROWS_WITH(justified(from_text("0B0,0F0\n", {0}), unit_costs(1)), "a program is justified when its order is acyclic");
    CHECK_THROWS_WITH(justified(from_text("0F0,0B0\n", {0}), stage_costs(1)), "only computations that take time are justified");
    CHECK(justified(from_text("0F0\n1F0\n", {0, 1}), unit_costs(2)) == from_text("0F0\n1F0\n", {0, 1}));
}
