// SPDX-License-Identifier: Apache-2.0
// A rehearsed step is the timeline written as events, and costs of transfers and reductions follow the link.
#include <algorithm>
#include <set>
#include <utility>

#include "rheo/schedule/families/dualpipe_v.hpp"
#include "rheo/schedule/families/one_f_one_b.hpp"
#include "rheo/schedule/transform/lowering.hpp"
#include "rheo/schedule/transform/reductions.hpp"
#include "rheo/simulate/link.hpp"
#include "steps.hpp"
#include "support/catch.hpp"

using namespace rheo;

static_assert(transfer_time({{1.0}, {10.0}}, {20}) == seconds{3.0});
static_assert(reduction_time({{1.0}, {10.0}}, {20}, 1) == seconds{0.0});
static_assert(reduction_time({{1.0}, {10.0}}, {20}, 2) == seconds{4.0});
static_assert(with_transfers(unit_costs(2), std::vector{bytes{20}}, {{1.0}, {10.0}}) ==
              stage_costs{{{1.0}, {2.0}, {1.0}, {1.0}, {3.0}, {0.0}}, {{1.0}, {2.0}, {1.0}, {1.0}, {0.0}, {3.0}}});

TEST_CASE("step: events are all instructions, votes, updates")
{
    auto const step = test::two_and_three();
    auto const result = rehearse_step(step);
    REQUIRE(result.sound);
    std::size_t instructions = 0;
    for (auto const& p : step.pipelines) {
        for (auto const& row : p.program.rows) {
            instructions += row.size();
        }
    }
    CHECK(result.events.size() == instructions + 2 * 5);
    for (auto const& e : result.events) {
        CHECK(e.step == step.step);
        CHECK(e.start >= step.begin);
        CHECK(e.start <= e.end);
        CHECK(e.end <= result.end);
    }
}

TEST_CASE("step: messages name the rank of the stage beside them")
{
    using enum activity;
    auto const result = rehearse_step(test::two_and_three());
    std::set<std::pair<activity, int>> seen;
    for (auto const& e : result.events) {
        auto const first = e.pipeline == pipeline_id{0} ? 0 : 2;  // a rank for each stage
        auto const last = e.pipeline == pipeline_id{0} ? 1 : 4;
        auto const beside = other_end_of(e.activity) == 0 ? -1 : e.rank.value + other_end_of(e.activity);
        bool const is_there = beside >= first && beside <= last;
        INFO(label_of(e) << " of rank " << e.rank.value);
        CHECK(e.peer == (is_there ? rank_id{beside} : no_rank));
        CHECK(e.size == bytes{});
        if (is_there) {
            seen.insert({e.activity, other_end_of(e.activity)});
        }
    }
    CHECK(seen == std::set<std::pair<activity, int>>{
                      {forward, -1}, {backward, 1}, {send_activation, 1}, {receive_activation, -1}, {send_gradient, -1}, {receive_gradient, 1}});
}

TEST_CASE("step: what stays on a rank is no message")
{
    auto const program = lower(dualpipe_v::program({.ranks = 2, .microbatches = 4}));  // stages 0 1 1 0
    modelled_step const step{{{program, {rank_id{8}, rank_id{9}}, unit_costs(4), {bytes{10}, bytes{}, bytes{30}}}}, {}, {0.1}, {0.1}, {}, {}, {}, {0.0}};
    for (auto const& e : rehearse_step(step).events) {
        auto const to = e.stage.value + other_end_of(e.activity);
        bool const exchanges = other_end_of(e.activity) != 0 && to >= 0 && to < 4 && std::min(to, e.stage.value) != 1;
        INFO(label_of(e) << " of stage " << e.stage.value);
        CHECK(e.peer == (exchanges ? rank_id{17 - e.rank.value} : no_rank));
        bool const is_message = e.activity >= activity::send_activation && e.activity <= activity::receive_gradient;
        CHECK(e.size == (!is_message ? bytes{} : std::min(to, e.stage.value) == 0 ? bytes{10} : bytes{30}));
    }
}

TEST_CASE("step: an overlap is two events, itself none")
{
    auto const program = lower(dualpipe_v::program({.ranks = 2, .microbatches = 6}));
    auto const stages = static_cast<int>(program.placement.size());
    modelled_step const step{{{program, {rank_id{0}, rank_id{1}}, unit_costs(stages)}}, {}, {0.1}, {0.1}, {}, {}, {}, {0.0}};
    auto const result = rehearse_step(step);
    REQUIRE(result.sound);
    std::size_t overlaps = 0;
    std::size_t instructions = 0;
    for (auto const& row : program.rows) {
        for (auto const i : row) {
            ++(i.kind == instruction_kind::overlap ? overlaps : instructions);
        }
    }
    CHECK(overlaps > 0);
    CHECK(result.events.size() == instructions + 2 * 2);
    auto const votes = std::count_if(result.events.begin(), result.events.end(), [](auto const& e) { return e.activity == activity::decide; });
    CHECK(votes == 2);
}

TEST_CASE("step: a rank does one thing at a time, in order")
{
    auto const step = test::two_and_three();
    for (auto const& result : {rehearse_step<nonblocking>(step), rehearse_step<rendezvous>(step)}) {
        for (int rank = 0; rank < 5; ++rank) {
            seconds free = step.begin;
            for (auto const& e : result.events) {
                if (e.rank == rank_id{rank}) {
                    CHECK(e.start >= free);
                    free = e.end;
                }
            }
        }
    }
}

TEST_CASE("step: ends with slowest pipeline, sums, vote, update")
{
    // Unit costs, no transfer time: 1F1B of p ranks and m microbatches takes 3 (m + p - 1).
    auto step = test::two_and_three();
    step.reductions.clear();
    CHECK(rehearse_step(step).end == step.begin + seconds{3.0 * (5 + 2)} + step.decide + step.update);
    step.reductions = std::vector<seconds>(7, seconds{100.0});
    CHECK(rehearse_step(step).end == step.begin + seconds{3.0 * (5 + 2)} + seconds{100.0} + step.decide + step.update);
}

TEST_CASE("step: a step that hangs is rehearsed up to its stuck state")
{
    auto step = test::two_and_three();
    step.pipelines[1].program = lower_lazily(one_f_one_b::program({3, 4}));
    auto const result = rehearse_step<rendezvous>(step);
    CHECK(result.sound.fault == program_error::hang);
    for (auto const& e : result.events) {
        CHECK(e.activity != activity::decide);
    }
}
