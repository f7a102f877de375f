// SPDX-License-Identifier: Apache-2.0
// The list scheduler and its memory cap, the exact search against plain enumeration, building blocks.
#include <random>
#include <set>

#include "catch.hpp"
#include "rheo/schedule/any_schedule.hpp"
#include "rheo/schedule/complete.hpp"
#include "rheo/schedule/deadlock.hpp"
#include "rheo/schedule/exact_search.hpp"
#include "rheo/schedule/figures.hpp"
#include "rheo/schedule/list_schedule.hpp"
#include "rheo/schedule/placement.hpp"

using namespace rheo;

namespace {

/// The shortest makespan over all rows' orders, by trying each instruction that is ready next, anywhere.
class every_schedule {
public:
    explicit every_schedule(list_request request) : request_{std::move(request)}
    {
        state_.rows.resize(static_cast<std::size_t>(request_.ranks));
        state_.placement = request_.placement;
    }

    double shortest()
    {
        explore();
        return best_;
    }

private:
    void explore()
    {
        auto const stages = static_cast<int>(request_.placement.size());
        if (!seen_.insert(to_text(state_)).second) {
            return;
        }
        bool any = false;
        for (int s = 0; s < stages; ++s) {
            for (int m = 0; m < request_.microbatches; ++m) {
                for (auto const kind : {instruction_kind::forward, instruction_kind::backward}) {
                    auto const i = make_instruction(kind, stage_id{s}, microbatch_id{m});
                    auto& row = state_.rows[static_cast<std::size_t>(request_.placement[static_cast<std::size_t>(s)])];
                    if (has(i) || (kind == instruction_kind::forward && s > 0 && !has({kind, static_cast<std::int16_t>(s - 1), m}))
                        || (kind == instruction_kind::backward
                            && (!has({instruction_kind::forward, static_cast<std::int16_t>(s), m})
                                || (s + 1 < stages && !has({kind, static_cast<std::int16_t>(s + 1), m}))))) {
                        continue;
                    }
                    any = true;
                    row.push_back(i);
                    explore();
                    row.pop_back();
                }
            }
        }
        if (!any) {
            best_ = std::min(best_, makespan(state_, request_.costs).count);
        }
    }

    bool has(instruction i) const
    {
        auto const& row = state_.rows[static_cast<std::size_t>(state_.placement[static_cast<std::size_t>(i.stage)])];
        return std::find(row.begin(), row.end(), i) != row.end();
    }

    list_request request_;
    program state_;
    std::set<std::string> seen_;
    double best_ = 1e9;
};

stage_costs random_costs(std::mt19937& draw, int stages)
{
    auto const some = [&] { return seconds{static_cast<double>(std::uniform_int_distribution{1, 5}(draw))}; };
    stage_costs costs;
    for (int s = 0; s < stages; ++s) {
        auto const i = some();
        auto const w = some();
        costs.push_back({some(), i + w, i, w, seconds{static_cast<double>(draw() % 2)}, seconds{0.0}});
    }
    return costs;
}

}  // namespace

TEST_CASE("list schedules are complete, acyclic and within their cap")
{
    std::mt19937 draw{1};
    for (int round = 0; round < 200; ++round) {
        int const ranks = 1 + round % 5;
        int const chunks = 1 + round % 3;
        int const copies = 1 + round % 2;
        auto placement = round % 4 < 2 ? v_placement(ranks, chunks) : loop_placement(ranks, chunks);
        if (copies == 2) {
            placement = both_directions(placement, ranks);
        }
        auto const stages = static_cast<int>(placement.size());
        auto const cap = std::int64_t{chunks * copies} + round % 4;
        list_request const request{.ranks = ranks, .placement = placement, .costs = random_costs(draw, stages), .microbatches = round % 7,
            .copies = copies, .split = round % 3 == 0, .cap = bytes{cap}};
        auto const answer = list_schedule(request);
        REQUIRE(answer);
        INFO(to_text(answer.what));
        CHECK(complete(answer.what, request.microbatches));
        CHECK(dependencies_in_order(answer.what));
        CHECK(peak_activations(answer.what) <= cap);
        auto const f = figures_of(answer.what, request.costs);
        CHECK(f.lower_bound <= f.makespan);
    }
}

TEST_CASE("a cap below one activation per stage is answered with a sentence")
{
    list_request const request{.ranks = 2, .placement = v_placement(2, 2), .costs = unit_costs(4), .microbatches = 3, .cap = bytes{1}};
    CHECK(list_schedule(request).reason == "the memory cap does not hold one activation of each stage of a rank");
}

TEST_CASE("the exact search finds what plain enumeration finds")
{
    std::mt19937 draw{9};
    for (int round = 0; round < 12; ++round) {
        int const ranks = 1 + round % 3;
        int const microbatches = ranks == 3 ? 2 : 2 + round % 2;
        list_request const request{.ranks = ranks, .placement = loop_placement(ranks, 1), .costs = random_costs(draw, ranks), .microbatches = microbatches};
        auto const found = exact_schedule(request);
        INFO(to_text(found.what));
        CHECK(found.is_optimal);
        CHECK(found.makespan == found.lower_bound);
        CHECK(found.makespan.count == Approx(every_schedule{request}.shortest()));
        CHECK(makespan(found.what, request.costs) == found.makespan);
        CHECK(complete(found.what, microbatches));
    }
}

TEST_CASE("with several stages per rank, too, the exact search finds what enumeration finds")
{
    std::mt19937 draw{21};
    for (int round = 0; round < 8; ++round) {
        list_request const request{.ranks = 2, .placement = round % 2 == 0 ? v_placement(2, 2) : std::vector{0, 1, 0}, .costs = random_costs(draw, round % 2 == 0 ? 4 : 3),
            .microbatches = 2};
        auto const found = exact_schedule(request);
        CHECK(found.is_optimal);
        CHECK(found.makespan.count == Approx(every_schedule{request}.shortest()));
    }
}

TEST_CASE("no family beats the exact search, and 1F1B is optimal for whole backwards")
{
    list_request request{.ranks = 3, .placement = loop_placement(3, 1), .costs = unit_costs(3), .microbatches = 4};
    CHECK(exact_schedule(request).makespan == makespan(one_f_one_b::program({3, 4}), unit_costs(3)));
    request.split = true;
    request.microbatches = 3;
    auto const split = exact_schedule(request);
    CHECK(split.is_optimal);
    CHECK(split.makespan <= makespan(zb_h1::program({3, 3}), unit_costs(3)));
    CHECK(split.makespan <= makespan(zb_h2::program({3, 3}), unit_costs(3)));
}

TEST_CASE("the bound lies below every family at random costs")
{
    std::mt19937 draw{4};
    for (auto const name : schedule_names) {
        auto const family = *parse_schedule(name).schedule;
        for (int round = 0; round < 10; ++round) {
            auto const p = make_program(family, {4, 8 + 2 * (round % 3)});
            auto const f = figures_of(p, random_costs(draw, static_cast<int>(p.placement.size())));
            INFO(name);
            CHECK(f.lower_bound <= f.makespan + seconds{1e-9});
            CHECK(f.largest_work <= f.lower_bound);
        }
    }
}

TEST_CASE("a building block that meets itself is refused")
{
    building_block const meets{{0}, {0}, {2}, {5}, 2};
    CHECK_FALSE(repeats(meets, 1));
    CHECK_THROWS_WITH(repeated(meets, 1, 2), "this building block meets itself when it is repeated");
    building_block const fits{{0}, {0}, {1}, {2}, 3};
    CHECK(to_text(repeated(fits, 1, 2)) == "0F0,0I0,0W0,0F1,0I1,0W1\n");
    for (int p = 1; p <= 24; ++p) {
        CHECK(repeats(v_half::block(p), p));
        CHECK(repeats(v_min::block(p), p));
    }
}
