// SPDX-License-Identifier: Apache-2.0
// Any schedule on a grid of slices does the same work in an order that ends.
#include "rheo/schedule/transform/slices.hpp"

#include "programs.hpp"
#include "rheo/schedule/check/complete.hpp"
#include "rheo/schedule/check/deadlock.hpp"
#include "rheo/schedule/core/text.hpp"
#include "rheo/schedule/families/families.hpp"
#include "rheo/schedule/transform/lowering.hpp"
#include "support/catch.hpp"

using namespace rheo;

static_assert([] {
    auto const p = with_slices(one_f_one_b::program({.ranks = 3, .microbatches = 4}), 2);
    return p.slices == 2 && complete(p, 4).ok && deadlock_free<rendezvous>(lower(p)).ok;
}());

TEST_CASE("slices: every family is complete and ends on slices")
{
    for (auto const name : schedule_names()) {
        auto const schedule = *parse_schedule(name);
        for (int const ranks : {1, 2, 4}) {
            schedule_shape const shape{.ranks = ranks, .microbatches = 8};
            if (error_of(schedule, shape) != shape_error::none) {
                continue;
            }
            INFO(name << " on " << ranks);
            auto const plain = make_program(schedule, shape);
            CHECK(with_slices(plain, plain.slices) == plain);
            if (plain.slices != 1) {
                CHECK_THROWS_AS(with_slices(plain, plain.slices + 1), precondition_error);
                continue;
            }
            for (int const slices : {2, 3}) {
                auto const p = with_slices(plain, slices);
                CHECK(p.slices == slices);
                CHECK(complete(p, 8).ok);
                CHECK(deadlock_free<shared_memory>(p).ok);
                CHECK(deadlock_free<rendezvous>(lower(p)).ok);
                CHECK(deadlock_free<nonblocking>(lower(p)).ok);
            }
        }
    }
}

TEST_CASE("slices: forwards up, backwards down, overlap both")
{
    auto const p = test::from_text("0F0,0F1,0B0,0I1,0W1\n", {0});
    CHECK(to_text(with_slices(p, 2)) == "0F0,0F1,0F2,0F3,0B1,0B0,0I3,0I2,0W3,0W2\n");
    auto const pair = test::from_text("0F0,(0F1;0B0)OVERLAP_F_B,0B1\n", {0});
    CHECK(to_text(with_slices(pair, 2)) == "0F0,0F1,(0F2;0B1)OVERLAP_F_B,(0F3;0B0)OVERLAP_F_B,0B3,0B2\n");
    CHECK_THROWS_AS(with_slices(lower(one_f_one_b::program({.ranks = 2, .microbatches = 2})), 2), precondition_error);
}
