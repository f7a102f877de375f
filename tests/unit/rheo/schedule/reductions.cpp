// SPDX-License-Identifier: Apache-2.0
// Reductions are in place for every schedule, the product of unequal pipelines is sound, and wrong places are rejected.
#include <random>

#include "programs.hpp"
#include "rheo/schedule/check/deadlock.hpp"
#include "rheo/schedule/families/families.hpp"
#include "rheo/schedule/transform/lowering.hpp"
#include "rheo/schedule/transform/reductions.hpp"
#include "support/catch.hpp"

using namespace rheo;

namespace {

constexpr reduction_id unit(int value) { return reduction_id{value}; }

/// Layers 0 .. layers-1 spread over the stages, and one tensor tied between the first and the last.
units_by_stage spread(int layers, int stages)
{
    units_by_stage units(static_cast<std::size_t>(stages));
    for (int layer = 0; layer < layers; ++layer) {
        units[static_cast<std::size_t>(layer * stages / layers)].push_back(unit(layer));
    }
    units.front().push_back(unit(layers));
    if (stages > 1) {
        units.back().push_back(unit(layers));
    }
    return units;
}

program two_and_three(int which)
{
    auto const p = one_f_one_b::program({.ranks = 2 + which, .microbatches = 3 + 2 * which});
    return with_reductions(lower(p), spread(6, 2 + which), 6);
}

bool move_is_seen(program p, std::size_t row, std::size_t from, std::size_t to, program_error fault)
{
    auto const i = p.rows[row][from];
    p.rows[row].erase(p.rows[row].begin() + static_cast<std::ptrdiff_t>(from));
    p.rows[row].insert(p.rows[row].begin() + static_cast<std::ptrdiff_t>(to), i);
    return reductions_in_place(p, spread(6, 2), 6).fault == fault;
}

}  // namespace

static_assert([] {
    auto const units = units_by_stage{{reduction_id{0}, reduction_id{2}}, {reduction_id{1}, reduction_id{2}}};
    auto const p = with_reductions(lower(one_f_one_b::program({.ranks = 2, .microbatches = 3})), units, 2);
    auto const q = with_reductions(lower(one_f_one_b::program({.ranks = 2, .microbatches = 5})), units, 2);
    return reductions_in_place(p, units, 2).ok && deadlock_free<rendezvous>(std::vector{p, q}).ok;
}());

TEST_CASE("reductions: posted when complete, awaited in order")
{
    auto const units = units_by_stage{{unit(0), unit(1), unit(4)}, {unit(2)}, {unit(3), unit(4)}};
    std::vector<stage_work> const work{{microbatch_id{5}, stage_id{0}}, {microbatch_id{7}, stage_id{2}}, {microbatch_id{1}, stage_id{3}}};
    CHECK('\n' + to_text(with_reductions(lower(one_f_one_b::program(3, work)), units, 4)) == R"(
0F5,0SEND_F5,0F7,0SEND_F7,0F1,0SEND_F1,0RECV_B5,0B5,0REDUCE1,0REDUCE0,0REDUCE4,0AWAIT1,0AWAIT0,0AWAIT4
1RECV_F5,1F5,1SEND_F5,1RECV_F7,1F7,1SEND_F7,1RECV_B5,1RECV_F1,1B5,1SEND_B5,1REDUCE2,1F1,1SEND_F1,1AWAIT2
2RECV_F5,2F5,2RECV_F7,2B5,2SEND_B5,2F7,2RECV_F1,2B7,2REDUCE3,2REDUCE4,2F1,2AWAIT3,2AWAIT4
)");
}

TEST_CASE("reductions: fully salvaged rank posts at once")
{
    auto const p = with_reductions(lower(gpipe::program(2, {})), {{unit(0)}, {unit(1)}}, 2);
    CHECK('\n' + to_text(p) == "\n0REDUCE0,0AWAIT0\n1REDUCE1,1AWAIT1\n");
    std::vector<stage_work> const late{{microbatch_id{0}, stage_id{1}}};
    auto const q = with_reductions(lower(gpipe::program(2, late)), {{unit(0)}, {unit(1)}}, 2);
    CHECK('\n' + to_text(q) == "\n0REDUCE0,0F0,0SEND_F0,0AWAIT0\n1RECV_F0,1F0,1B0,1REDUCE1,1AWAIT1\n");
}

TEST_CASE("reductions: shared tensor is posted once, later")
{
    std::mt19937 draw{5};
    for (int round = 0; round < 200; ++round) {
        auto const stages = 1 + round % 6;
        auto const compute = test::random_program(draw, 1 + round % 3, stages, 1 + round % 4);
        auto const units = spread(6, stages);
        auto const p = with_reductions(lower(compute), units, 6);
        INFO(to_text(p));
        CHECK(reductions_in_place(p, units, 6));
        CHECK(deadlock_free<rendezvous>(p));
    }
}

TEST_CASE("reductions: unequal pipelines are sound")
{
    CHECK(deadlock_free<rendezvous>(std::vector{two_and_three(0), two_and_three(1)}));
    auto const units = units_by_stage{{unit(0)}, {unit(1)}};
    auto const small = with_reductions(lower(one_f_one_b::program({2, 1})), units, 2);
    auto const other = with_reductions(lower(gpipe::program({2, 2})), units, 2);
    CHECK(deadlock_free<rendezvous>(std::vector{small, other}));
    CHECK(test::every_order{{small, other}}.ends());

    // Rank 1 of the first waits for layer 0 before it has sent the gradient that rank 0 needs to post it.
    auto bad = small;
    auto& row = bad.rows[1];
    auto const send = std::find(row.begin(), row.end(), instruction{instruction_kind::send_gradient, 1, 0});
    row.insert(send, {{instruction_kind::post_reduction, 1, 0}, {instruction_kind::await_reduction, 1, 0}});
    auto const verdict = deadlock_free<rendezvous>(std::vector{bad, other});
    CHECK_FALSE(test::every_order{{bad, other}}.ends());
    CHECK(verdict.message() ==
          "the programs hang: pipeline 0 rank 0 waits in 0RECV_B0, pipeline 0 rank 1 waits in 1AWAIT0, "
          "pipeline 1 rank 0 waits in 0AWAIT0, pipeline 1 rank 1 waits in 1AWAIT1");
}

TEST_CASE("reductions: one missing post stops both pipelines")
{
    auto first = two_and_three(0);
    std::erase(first.rows[0], instruction{instruction_kind::post_reduction, 0, 1});
    CHECK(deadlock_free<rendezvous>(std::vector{two_and_three(1)}));
    auto const verdict = deadlock_free<rendezvous>(std::vector{first, two_and_three(1)});
    CHECK(verdict.fault == program_error::hang);
    CHECK(verdict.culprits.size() == 2);
    CHECK(reductions_in_place(first, spread(6, 2), 6).fault == program_error::missing);
}

TEST_CASE("reductions: a reduction in a wrong place is refused")
{
    auto const p = two_and_three(0);
    auto const& row = p.rows[0];
    auto const post = static_cast<std::size_t>(std::find(row.begin(), row.end(), instruction{instruction_kind::post_reduction, 0, 2}) - row.begin());
    CHECK(reductions_in_place(p, spread(6, 2), 6));
    CHECK(move_is_seen(p, 0, post, 3, program_error::early));
    CHECK(move_is_seen(p, 0, row.size() - 1, row.size() - 2, program_error::misplaced));
    CHECK(move_is_seen(p, 0, row.size() - 4, 2, program_error::early));
    auto twice = p;
    twice.rows[0].insert(twice.rows[0].begin() + static_cast<std::ptrdiff_t>(post), row[post]);
    CHECK(reductions_in_place(twice, spread(6, 2), 6).fault == program_error::repeated);
    auto alien = p;
    alien.rows[0].push_back({instruction_kind::await_reduction, 0, 5});
    CHECK(reductions_in_place(alien, spread(6, 2), 6).fault == program_error::misplaced);
}

TEST_CASE("reductions: the holders of a unit are read off the programs")
{
    std::vector const programs{two_and_three(0), two_and_three(1)};
    CHECK(holders_of(programs, unit(6)) == std::vector<unit_holder>{{pipeline_id{0}, 0}, {pipeline_id{0}, 1}, {pipeline_id{1}, 0}, {pipeline_id{1}, 2}});
    CHECK(holders_of(programs, unit(2)) == std::vector<unit_holder>{{pipeline_id{0}, 0}, {pipeline_id{1}, 1}});
}
