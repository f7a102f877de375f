// SPDX-License-Identifier: Apache-2.0
// The exact search against plain enumeration, and against the families that are optimal.
#include <random>

#include "every_schedule.hpp"
#include "rheo/schedule/check/activations.hpp"
#include "rheo/schedule/check/complete.hpp"
#include "rheo/schedule/core/placement.hpp"
#include "rheo/schedule/families/families.hpp"
#include "rheo/schedule/search/exact_search.hpp"
#include "support/catch.hpp"

using namespace rheo;
using test::every_schedule;
using test::random_costs;

TEST_CASE("exact_search: equals enumeration")
{
    std::mt19937 draw{9};
    for (int round = 0; round < 12; ++round) {
        int const ranks = 1 + round % 3;
        int const microbatches = ranks == 3 ? 2 : 2 + round % 2;
        list_request const request{.ranks = ranks, .placement = loop_placement(ranks, 1), .costs = random_costs(draw, ranks), .microbatches = microbatches};
        auto const found = exact_schedule(request);
        INFO(to_text(found->program));
        CHECK(found->is_optimal);
        CHECK(found->makespan == found->lower_bound);
        CHECK(found->makespan.count == Approx(every_schedule{request}.shortest()));
        CHECK(makespan(found->program, request.costs) == found->makespan);
        CHECK(complete(found->program, microbatches));
    }
}

TEST_CASE("exact_search: equals enumeration with several stages")
{
    std::mt19937 draw{21};
    for (int round = 0; round < 8; ++round) {
        list_request const request{.ranks = 2,
                                   .placement = round % 2 == 0 ? v_placement(2, 2) : std::vector{0, 1, 0},
                                   .costs = random_costs(draw, round % 2 == 0 ? 4 : 3),
                                   .microbatches = 2};
        auto const found = exact_schedule(request);
        CHECK(found->is_optimal);
        CHECK(found->makespan.count == Approx(every_schedule{request}.shortest()));
    }
}

TEST_CASE("exact_search: equals enumeration, capped, split, sliced")
{
    std::mt19937 draw{33};
    int tighter = 0;
    int infeasible = 0;
    for (int round = 0; round < 60; ++round) {
        int const form = round % 4;  // whole, split, sliced, two stages per rank
        auto const placement = form == 3 ? std::vector{0, 1, 0} : loop_placement(2, 1);
        list_request request{.ranks = 2,
                             .placement = placement,
                             .costs = random_costs(draw, static_cast<int>(placement.size())),
                             .microbatches = form == 0 ? 3 : 2,
                             .split = form == 1,
                             .slices = form == 2 ? 2 : 1};
        for (std::size_t s = 0; s < placement.size(); ++s) {
            request.activations.push_back(bytes{1 + static_cast<std::int64_t>(draw() % 3)});
        }
        request.cap = bytes{2 + static_cast<std::int64_t>(draw() % 6)};
        auto const found = exact_schedule(request);
        auto const best = every_schedule{request}.shortest();
        INFO("form " << form << " cap " << request.cap.count << '\n' << (found ? to_text(found->program) : found.error()));
        if (!found) {
            CHECK(best == 1e9);
            ++infeasible;
            continue;
        }
        REQUIRE(found->is_optimal);
        CHECK(found->makespan.count == Approx(best));
        CHECK(found->lower_bound == found->makespan);
        CHECK(complete(found->program, request.microbatches));
        CHECK(makespan(found->program, request.costs) == found->makespan);
        for (auto const peak : peak_bytes_by_rank(found->program, request.activations)) {
            CHECK(peak <= request.cap);
        }
        request.cap = {};
        tighter += exact_schedule(request)->makespan < found->makespan ? 1 : 0;
    }
    CHECK(tighter > 5);
    CHECK(infeasible > 2);
}

TEST_CASE("exact_search: equals enumeration with two copies")
{
    std::mt19937 draw{35};
    int infeasible = 0;
    int beyond_the_list = 0;
    for (int round = 0; round < 40; ++round) {
        bool const split = round % 4 == 3;
        list_request request{.ranks = 2,
                             .placement = both_directions(loop_placement(2, 1), 2),
                             .costs = random_costs(draw, 4),
                             .microbatches = split ? 2 : 2 + round % 2,
                             .copies = 2,
                             .split = split};
        if (round % 2 == 1) {
            for (int s = 0; s < 4; ++s) {
                request.activations.push_back(bytes{1 + static_cast<std::int64_t>(draw() % 3)});
            }
            request.cap = bytes{1 + static_cast<std::int64_t>(draw() % 6)};
        }
        auto const found = exact_schedule(request);
        auto const best = every_schedule{request}.shortest();
        INFO("round " << round << '\n' << (found ? to_text(found->program) : found.error()));
        if (!found) {
            CHECK(best == 1e9);
            ++infeasible;
            continue;
        }
        beyond_the_list += list_schedule(request) ? 0 : 1;
        REQUIRE(found->is_optimal);
        CHECK(found->makespan.count == Approx(best));
        CHECK(found->program.copies == 2);
        CHECK(complete(found->program, request.microbatches));
        CHECK(makespan(found->program, request.costs) == found->makespan);
        for (auto const peak : request.cap > bytes{} ? peak_bytes_by_rank(found->program, request.activations) : std::vector<bytes>{}) {
            CHECK(peak <= request.cap);
        }
    }
    CHECK(infeasible > 2);
    CHECK(beyond_the_list > 0);
}

TEST_CASE("exact_search: Chimera f = b and BitPipe p = 2 are optimal")
{
    auto const request_of = [](program const& p, stage_costs costs, int microbatches) {
        return list_request{
            .ranks = static_cast<int>(p.rows.size()), .placement = p.placement, .costs = std::move(costs), .microbatches = microbatches, .copies = 2};
    };
    stage_costs const even(8, stage_cost{{1.0}, {1.0}, {0.5}, {0.5}, {0.0}, {0.0}});
    auto const four = chimera::program({4, 4});
    auto const proof = exact_schedule(request_of(four, even, 4));
    CHECK(proof->is_optimal);
    CHECK(makespan(four, even) == proof->lower_bound);
    auto const two = bitpipe::program({2, 4});
    auto const whole = exact_schedule(request_of(two, unit_costs(8), 4));
    CHECK(whole->is_optimal);
    CHECK(makespan(two, unit_costs(8)) == whole->lower_bound);
}

TEST_CASE("exact_search: a cut search returns a valid bound")
{
    std::mt19937 draw{34};
    int cut = 0;
    for (int round = 0; round < 40; ++round) {
        list_request request{.ranks = 2,
                             .placement = loop_placement(2, 1),
                             .costs = random_costs(draw, 2),
                             .microbatches = 2 + round % 2,
                             .split = round % 4 == 0 && round % 2 == 0,
                             .cap = bytes{round % 3 == 0 ? 0 : 2}};
        if (round % 5 == 4) {
            request.cap = {};
            request.slices = 2;
            request.microbatches = 2;
            request.split = false;
        }
        auto const best = every_schedule{request}.shortest();
        for (long const most : {0L, 1L, 3L, 10L}) {
            auto const found = exact_schedule(request, most);
            INFO("round " << round << " most " << most);
            CHECK(found->lower_bound.count <= best + 1e-9);
            CHECK(found->makespan.count >= best - 1e-9);
            CHECK((!found->is_optimal || found->makespan.count == Approx(best)));
            cut += found->is_optimal ? 0 : 1;
        }
    }
    CHECK(cut > 10);
}

TEST_CASE("exact_search: an impossible cap is rejected")
{
    list_request request{.ranks = 2, .placement = v_placement(2, 2), .costs = unit_costs(4), .microbatches = 2, .cap = bytes{1}};
    CHECK(exact_schedule(request).error() == "the memory cap does not hold one microbatch on each stage of a rank");
    request.slices = 2;
    request.cap = bytes{3};
    CHECK_FALSE(exact_schedule(request));
    request.cap = bytes{4};
    CHECK(exact_schedule(request));
    request = {.ranks = 2,
               .placement = both_directions(loop_placement(2, 1), 2),
               .costs = unit_costs(4),
               .microbatches = 4,
               .copies = 2,
               .activations = std::vector(4, bytes{2}),
               .cap = bytes{1}};
    CHECK(exact_schedule(request).error() == "no order keeps within the memory cap");
    request.cap = bytes{2};  // one copy's microbatch after the other's
    CHECK(exact_schedule(request)->makespan.count == Approx(every_schedule{request}.shortest()));
    CHECK(exact_schedule(request, 3).error() == "no order was found within the branches allowed");
}

TEST_CASE("exact_search: Seq1F1B and lists are not shorter")
{
    auto const p = seq1f1b::program({.ranks = 2, .microbatches = 2, .slices = 2});
    auto const costs = even_costs(p, {{1.0}, {2.0}, {1.0}, {1.0}, {0.0}, {0.0}});
    list_request const request{.ranks = 2, .placement = p.placement, .costs = costs, .microbatches = 2, .slices = 2};
    auto const found = exact_schedule(request);
    CHECK(found->is_optimal);
    CHECK(found->makespan <= makespan(p, costs));
    auto const listed = list_schedule(request);
    CHECK(complete(listed->program, 2));
    CHECK(dependencies_in_order(listed->program));
    CHECK(found->makespan <= listed->makespan);
    CHECK(makespan(listed->program, costs) == listed->makespan);
}

TEST_CASE("exact_search: no family beats it; 1F1B is optimal")
{
    list_request request{.ranks = 3, .placement = loop_placement(3, 1), .costs = unit_costs(3), .microbatches = 4};
    CHECK(exact_schedule(request)->makespan == makespan(one_f_one_b::program({3, 4}), unit_costs(3)));
    request.split = true;
    request.microbatches = 3;
    auto const split = exact_schedule(request);
    CHECK(split->is_optimal);
    CHECK(split->makespan <= makespan(zb_h1::program({3, 3}), unit_costs(3)));
    CHECK(split->makespan <= makespan(zb_h2::program({3, 3}), unit_costs(3)));
}
