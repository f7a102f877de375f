// SPDX-License-Identifier: Apache-2.0
// The check against an oracle that tries every order of progress; the public deadlocks; what a stuck state says.
#include <random>

#include "programs.hpp"
#include "rheo/schedule/check/deadlock.hpp"
#include "rheo/schedule/families/families.hpp"
#include "rheo/schedule/transform/lowering.hpp"
#include "support/catch.hpp"

using namespace rheo;
using test::from_text;

static_assert(!deadlock_free<rendezvous>(lower_lazily(one_f_one_b::program({.ranks = 2, .microbatches = 2}))));
static_assert(deadlock_free<rendezvous>(lower_lazily(gpipe::program({.ranks = 4, .microbatches = 8}))));

TEST_CASE("deadlock: check agrees with exhaustive search")
{
    std::mt19937 draw{11};
    int stuck = 0;
    int sound = 0;
    for (int round = 0; round < 400; ++round) {
        auto const compute = test::random_program(draw, 2 + round % 2, 2 + round % 3, 2);
        for (auto p : {lower(compute), lower_lazily(compute)}) {
            if (round % 4 == 3) {  // swap two neighbours somewhere: it may become wrong in any way
                auto& row = p.rows[static_cast<std::size_t>(round) % p.rows.size()];
                if (row.size() > 1) {
                    auto const k = std::uniform_int_distribution<std::size_t>{1, row.size() - 1}(draw);
                    std::swap(row[k - 1], row[k]);
                }
            }
            INFO(to_text(p));
            bool const ends = test::every_order{{p}}.ends();
            CHECK(deadlock_free<rendezvous>(p).ok == ends);
            (ends ? sound : stuck) += 1;
        }
    }
    CHECK(stuck > 50);
    CHECK(sound > 50);
}

TEST_CASE("deadlock: lazy 1F1B hangs from m >= p >= 2, GPipe not")
{
    for (int p = 1; p <= 5; ++p) {
        for (int m = 1; m <= 8; ++m) {
            INFO(p << " x " << m);
            auto const lazy = lower_lazily(one_f_one_b::program({p, m}));
            if (p >= 2 && m >= p) {
                CHECK(deadlock_free<rendezvous>(lazy).fault == program_error::hang);
            }
            CHECK(deadlock_free<nonblocking>(lazy));
            CHECK(deadlock_free<rendezvous>(lower_lazily(gpipe::program({p, m}))));
        }
    }
}

TEST_CASE("deadlock: the stuck state says what each rank waits in")
{
    auto const verdict = deadlock_free<rendezvous>(lower_lazily(one_f_one_b::program({.ranks = 3, .microbatches = 4})));
    CHECK(verdict.message() ==
          "the programs hang: pipeline 0 rank 0 waits in 0SEND_F2, pipeline 0 rank 1 waits in 1SEND_F1, "
          "pipeline 0 rank 2 waits in 2SEND_B0");
    CHECK(deadlock_free<rendezvous>(lower(gpipe::program({.ranks = 2, .microbatches = 1}))).message() == "the programs are sound");
}

TEST_CASE("deadlock: published deadlocks are refused")
{
    // pytorch/pytorch issue 172668, comments of January 2026: both ranks send first. The computations before are added.
    auto const first = from_text("0F1,0SEND_F1,2RECV_F0,2F0\n1RECV_F0,1F0,1SEND_F0,1RECV_F1,1F1\n", {0, 1, 0});
    CHECK(deadlock_free<rendezvous>(first).fault == program_error::crossed);
    auto const both = from_text("0F0,0SEND_F0,0F1,0SEND_F1,2RECV_F0,2F0\n1RECV_F0,1F0,1SEND_F0,1RECV_F1,1F1\n", {0, 1, 0});
    auto const verdict = deadlock_free<rendezvous>(both);
    CHECK(verdict.fault == program_error::hang);
    CHECK(verdict.culprits.size() == 2);
    CHECK(verdict.message() == "the programs hang: pipeline 0 rank 0 waits in 0SEND_F1, pipeline 0 rank 1 waits in 1SEND_F0");
}

TEST_CASE("deadlock: a mismatched message is named")
{
    auto const p = from_text("0F0,0F1,0SEND_F1,0SEND_F0\n1RECV_F0,1F0,1RECV_F1,1F1\n", {0, 1});
    auto const verdict = deadlock_free<rendezvous>(p);
    CHECK(verdict.fault == program_error::crossed);
    CHECK(verdict.message() == "a send meets a receive of something else: pipeline 0 rank 0 with 0SEND_F1, pipeline 0 rank 1 with 1RECV_F0");
    CHECK(deadlock_free<nonblocking>(p));  // with tags it is none
}

TEST_CASE("deadlock: meaningless instructions are named")
{
    CHECK(deadlock_free<rendezvous>(from_text("1F0\n\n", {0, 1})).fault == program_error::misplaced);
    CHECK(deadlock_free<rendezvous>(from_text("2F0\n\n", {0, 1})).fault == program_error::misplaced);
    CHECK(deadlock_free<rendezvous>(from_text("0F0,0SEND_B0\n\n", {0, 1})).fault == program_error::misplaced);
    CHECK(deadlock_free<rendezvous>(from_text("\n1F0,1SEND_F0\n", {0, 1})).fault == program_error::misplaced);
}

TEST_CASE("deadlock: a cyclic order is found before lowering")
{
    auto const cyclic = from_text("0F0,0B0,0F1,0B1\n1F1,1B1,1F0,1B0\n", {0, 1});
    CHECK(dependencies_in_order(cyclic).fault == program_error::hang);
    CHECK_THROWS_WITH(lower(cyclic), "the compute order of this program is cyclic: it cannot be lowered");
}
