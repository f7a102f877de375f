// SPDX-License-Identifier: Apache-2.0
// The list scheduler: complete, acyclic, and within its memory cap; the lower bound beside it and beside every family.
#include <algorithm>
#include <random>

#include "every_schedule.hpp"
#include "rheo/schedule/check/activations.hpp"
#include "rheo/schedule/check/complete.hpp"
#include "rheo/schedule/check/deadlock.hpp"
#include "rheo/schedule/check/figures.hpp"
#include "rheo/schedule/core/placement.hpp"
#include "rheo/schedule/families/families.hpp"
#include "rheo/schedule/search/list_schedule.hpp"
#include "support/catch.hpp"

using namespace rheo;
using test::random_costs;

TEST_CASE("list_schedule: complete, acyclic, within the cap")
{
    std::mt19937 draw{1};
    int tight = 0;
    for (int round = 0; round < 400; ++round) {
        int const ranks = 1 + round % 5;
        int const chunks = 1 + round % 3;
        int const copies = 1 + round % 2;
        int const slices = 1 + static_cast<int>(draw() % 3);
        auto placement = round % 4 < 2 ? v_placement(ranks, chunks) : loop_placement(ranks, chunks);
        if (copies == 2) {
            placement = both_directions(placement, ranks);
        }
        auto const stages = static_cast<int>(placement.size());
        list_request request{.ranks = ranks,
                             .placement = placement,
                             .costs = random_costs(draw, stages),
                             .microbatches = round % 7,
                             .copies = copies,
                             .split = round % 3 == 0,
                             .slices = slices};
        std::vector<std::int64_t> whole(static_cast<std::size_t>(ranks));  // of one microbatch on each stage of a rank
        for (auto const rank : placement) {
            request.activations.push_back(bytes{1 + static_cast<std::int64_t>(draw() % 4)});
            whole[static_cast<std::size_t>(rank)] += request.activations.back().count * slices;
        }
        request.cap = bytes{*std::max_element(whole.begin(), whole.end()) + round % 4};
        auto const answer = list_schedule(request);
        REQUIRE(answer);
        INFO(to_text(answer->program));
        CHECK(complete(answer->program, request.microbatches));
        CHECK(dependencies_in_order(answer->program));
        auto const peaks = peak_bytes_by_rank(answer->program, request.activations);
        auto const peak = *std::max_element(peaks.begin(), peaks.end());
        CHECK(peak <= request.cap);
        tight += peak == request.cap ? 1 : 0;
        auto const f = figures_of(answer->program, request.costs);
        CHECK(f.makespan == answer->makespan);
        CHECK(f.lower_bound <= f.makespan);
        request.cap = bytes{*std::max_element(whole.begin(), whole.end()) - 1};
        if (request.cap > bytes{}) {  // 0 would be no cap
            CHECK(list_schedule(request).error() == "the memory cap does not hold one microbatch on each stage of a rank");
        }
    }
    CHECK(tight > 100);
}

TEST_CASE("list_schedule: slices: memory helps; p equals Seq1F1B")
{
    for (int const p : {2, 4}) {
        for (int const k : {2, 4}) {
            auto const seq = seq1f1b::program({.ranks = p, .microbatches = 8, .slices = k});
            auto const costs = even_costs(seq, {{1.0}, {2.0}, {1.0}, {1.0}, {0.0}, {0.0}});
            list_request request{.ranks = p, .placement = seq.placement, .costs = costs, .microbatches = 8, .slices = k};
            seconds before{1e9};
            for (int held = k; held <= p * k; ++held) {
                request.cap = bytes{held};
                auto const answer = list_schedule(request);
                INFO("p " << p << " k " << k << " held " << held);
                CHECK(answer->makespan <= before);
                CHECK(peak_activations(answer->program) <= held);
                before = answer->makespan;
            }
            CHECK(before == makespan(seq, costs));
        }
    }
}

TEST_CASE("list_schedule: a cap below one activation is rejected")
{
    list_request const request{.ranks = 2, .placement = v_placement(2, 2), .costs = unit_costs(4), .microbatches = 3, .cap = bytes{1}};
    CHECK(list_schedule(request).error() == "the memory cap does not hold one microbatch on each stage of a rank");
}

TEST_CASE("list_schedule: lower bound holds at random costs")
{
    std::mt19937 draw{4};
    for (auto const family : schedule_families()) {
        for (int round = 0; round < 10; ++round) {
            auto const p = make_program(family, {4, 8 + 2 * (round % 3)});
            auto const f = figures_of(p, random_costs(draw, static_cast<int>(p.placement.size())));
            INFO(name_of(family));
            CHECK(f.lower_bound <= f.makespan + seconds{1e-9});
            CHECK(f.largest_work <= f.lower_bound);
        }
    }
}
