// SPDX-License-Identifier: Apache-2.0
// The forms beside one stage per rank: slices keep their order, copies keep apart, an overlapped pair is one piece of time.
#include "programs.hpp"
#include "rheo/schedule/check/complete.hpp"
#include "rheo/schedule/check/deadlock.hpp"
#include "rheo/schedule/check/fifo_depth.hpp"
#include "rheo/schedule/check/figures.hpp"
#include "rheo/schedule/core/frozen.hpp"
#include "rheo/schedule/families/families.hpp"
#include "rheo/schedule/transform/lowering.hpp"
#include "support/catch.hpp"

using namespace rheo;
using test::from_text;

constexpr auto frozen_seq = freeze<[] { return seq1f1b::program({.ranks = 2, .microbatches = 2}); }>();
static_assert(thaw(frozen_seq) == seq1f1b::program({.ranks = 2, .microbatches = 2}));
constexpr auto frozen_dual = freeze<[] { return dualpipe::program({.ranks = 2, .microbatches = 4}); }>();
static_assert(thaw(frozen_dual) == dualpipe::program({.ranks = 2, .microbatches = 4}));

TEST_CASE("forms: slices: forwards in order, backwards reversed")
{
    auto const sliced = [](std::string const& text) {
        auto p = from_text(text, {0});
        p.slices = 2;
        return p;
    };
    CHECK(dependencies_in_order(sliced("0F0,0F1,0B1,0B0\n")));
    CHECK(complete(sliced("0F0,0F1,0B1,0B0\n"), 1));
    CHECK_FALSE(complete(sliced("0F0,0B0\n"), 1));
    CHECK(dependencies_in_order(sliced("0F1,0F0,0B1,0B0\n")).fault == program_error::hang);
    CHECK(dependencies_in_order(sliced("0F0,0F1,0B0,0B1\n")).fault == program_error::hang);
    CHECK_THROWS_WITH(lower(sliced("0F0,0F1,0B0,0B1\n")), "the compute order of this program is cyclic: it cannot be lowered");
}

TEST_CASE("forms: copies share no microbatch and no message")
{
    auto p = from_text("0F0,0B0,3F1,3B1\n1F0,1B0,2F1,2B1\n", {0, 1, 1, 0});
    p.copies = 2;
    CHECK(dependencies_in_order(p));
    CHECK(complete(p, 2));
    auto across = from_text("0F0,0SEND_F0\n1RECV_F0,1F0,1SEND_F0\n", {0, 1, 0, 1});
    CHECK(deadlock_free<rendezvous>(across).fault == program_error::hang);  // no rank receives it
    across.copies = 2;
    CHECK(deadlock_free<rendezvous>(across).fault == program_error::misplaced);
    auto twice = from_text("0F0,0B0,3F0,3B0\n1F0,1B0,2F0,2B0\n", {0, 1, 1, 0});
    twice.copies = 2;
    CHECK_FALSE(complete(twice, 1));  // one microbatch in both copies
}

TEST_CASE("forms: overlap: both inputs, sum of times less gain")
{
    auto const p = from_text("0F0,(0F1;0B0)OVERLAP_F_B,0B1\n", {0});
    stage_costs const costs{{{2.0}, {5.0}, {0.0}, {0.0}, {0.0}, {0.0}, {3.0}}};
    auto const f = figures_of(p, costs);
    CHECK(f.makespan == seconds{2.0 + 4.0 + 5.0});
    CHECK(f.largest_work == f.makespan);
    CHECK(f.peaks == std::vector{2});
    auto const times = make_timeline<shared_memory>(array_view{&p, 1}, {{costs}, {}});
    CHECK(times.rows[0].instructions[2].start == times.rows[0].instructions[3].start);
    CHECK(times.rows[0].instructions[2].end == times.rows[0].instructions[3].end);
    auto const early = from_text("(0F0;0B1)OVERLAP_F_B,0B0,0F1\n", {0});
    CHECK(dependencies_in_order(early).fault == program_error::hang);
    program const alone{{0}, {{{instruction_kind::overlap, 0, 0}, {instruction_kind::forward, 0, 0}}}};
    CHECK(dependencies_in_order(alone).fault == program_error::misplaced);
}

TEST_CASE("forms: two sends before receives need depth two")
{
    auto p = from_text("0F0,0F2,0SEND_F0,0SEND_F2,3RECV_F1,3RECV_F3,3F1,3F3\n2F1,2F3,2SEND_F1,2SEND_F3,1RECV_F0,1RECV_F2,1F0,1F2\n", {0, 1, 1, 0});
    p.copies = 2;
    CHECK(least_fifo_depth(p) == 2);
    CHECK_FALSE(deadlock_free(p, fifo{.depth = 1}));
    CHECK(deadlock_free<tagged>(p));
}

TEST_CASE("forms: activations and gradients in one queue, or in two")
{
    // Rank 0 sends an activation of stage 0, then a gradient of stage 2; rank 1 wants the gradient first.
    auto const p = from_text("0F0,0SEND_F0,2RECV_F1,2F1,2B1,2SEND_B1,0F1\n1F1,1SEND_F1,1RECV_B1,1B1,1RECV_F0,1F0\n", {0, 1, 0});
    auto given = p;
    for (auto& row : given.rows) {
        std::erase_if(row, [](instruction i) { return i == instruction{instruction_kind::forward, 0, 1}; });
    }
    given.rows[0].insert(given.rows[0].begin(), {instruction_kind::forward, 0, 1});
    given.rows[0].insert(given.rows[0].begin() + 1, {instruction_kind::send_activation, 0, 1});
    given.rows[1].insert(given.rows[1].begin(), {instruction_kind::receive_activation, 1, 1});
    CHECK_FALSE(least_fifo_depth(given));
    CHECK(least_fifo_depth(given, true) == 1);
}

TEST_CASE("forms: peaks in bytes weigh each stage's own activations")
{
    auto const p = one_f_one_b::program({3, 5});
    CHECK(peak_bytes_by_rank(p, {bytes{10}, bytes{7}, bytes{5}}) == std::vector{bytes{30}, bytes{14}, bytes{5}});
}
