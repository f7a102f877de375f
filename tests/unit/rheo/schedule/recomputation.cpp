// SPDX-License-Identifier: Apache-2.0
// Recomputation as a transform: what it may not change, what it must save, and what the checks refuse.
#include "rheo/schedule/transform/recomputation.hpp"

#include <random>

#include "programs.hpp"
#include "rheo/schedule/check/complete.hpp"
#include "rheo/schedule/check/deadlock.hpp"
#include "rheo/schedule/core/text.hpp"
#include "rheo/schedule/draw/draw.hpp"
#include "rheo/schedule/families/families.hpp"
#include "rheo/schedule/transform/lowering.hpp"
#include "support/catch.hpp"

using namespace rheo;

namespace {

program without_recomputation(program p)
{
    for (auto& row : p.rows) {
        std::erase_if(row, [](instruction i) { return is_local(i.kind); });
    }
    return p;
}

/// By the definition, walking the row with a set of what is whole and what is evicted.
bool rows_make_sense(program const& p)
{
    for (auto const& row : p.rows) {
        std::set<std::pair<int, int>> whole;
        std::set<std::pair<int, int>> evicted;
        for (auto const& i : row) {
            std::pair<int, int> const key{i.stage, i.item};
            if (i.kind == instruction_kind::forward) {
                whole.insert(key);
            } else if (i.kind == instruction_kind::evict) {
                if (whole.erase(key) != 1) {
                    return false;
                }
                evicted.insert(key);
            } else if (i.kind == instruction_kind::recompute) {
                if (evicted.erase(key) != 1) {
                    return false;
                }
                whole.insert(key);
            } else if ((is_compute(i.kind) || i.kind == instruction_kind::send_activation) && !whole.contains(key)) {
                return false;
            }
        }
        if (!evicted.empty()) {
            return false;
        }
    }
    return true;
}

std::vector<held_bytes> unit_holdings(program const& p) { return {p.placement.size(), held_bytes{bytes{10}, bytes{1}, bytes{3}}}; }

program two_ranks() { return one_f_one_b::program({.ranks = 2, .microbatches = 3}); }

}  // namespace

// The compiler makes it and proves it.
static_assert([] {
    auto const p = with_recomputation(lower(one_f_one_b::program({.ranks = 3, .microbatches = 4})));
    return complete(p, 4).ok && deadlock_free<rendezvous>(p).ok && deadlock_free<nonblocking>(p).ok && peak_activations(p) == 1;
}());

TEST_CASE("recomputation: keeps computations, ends, saves memory")
{
    for (auto const name : schedule_names()) {
        auto const schedule = *parse_schedule(name);
        for (int const ranks : {1, 2, 3, 4}) {
            schedule_shape const shape{.ranks = ranks, .microbatches = 8};
            if (error_of(schedule, shape) != shape_error::none) {
                continue;
            }
            auto const compute = make_program(schedule, shape);
            if (compute.slices != 1) {
                CHECK_THROWS_AS(with_recomputation(compute), precondition_error);
                continue;
            }
            INFO(name << " on " << ranks);
            auto const plain = lower(compute);
            auto const p = with_recomputation(plain);
            CHECK(without_recomputation(p) == plain);
            CHECK(rows_make_sense(p));
            CHECK(complete(p, 8).ok);
            CHECK(deadlock_free<rendezvous>(p).ok);
            CHECK(deadlock_free<nonblocking>(p).ok);
            CHECK(deadlock_free<tagged>(p).ok);
            auto const on_compute = with_recomputation(compute);
            CHECK(deadlock_free<shared_memory>(on_compute).ok);
            auto const before = peak_bytes_by_rank(plain, unit_holdings(plain));
            auto const after = peak_bytes_by_rank(p, unit_holdings(p));
            for (std::size_t r = 0; r < before.size(); ++r) {
                CHECK(after[r] <= before[r]);
            }
        }
    }
}

TEST_CASE("recomputation: any acyclic program stays sound")
{
    std::mt19937 draw{4};
    for (int round = 0; round < 300; ++round) {
        auto const plain = lower(test::random_program(draw, 1 + round % 3, 1 + round % 5, 1 + round % 4));
        std::vector<bool> marks;
        for (std::size_t s = 0; s < plain.placement.size(); ++s) {
            marks.push_back(draw() % 2 == 1);
        }
        auto const p = with_recomputation(plain, marks);
        CHECK(without_recomputation(p) == plain);
        CHECK(rows_make_sense(p));
        CHECK(deadlock_free<rendezvous>(p).ok);
        CHECK(deadlock_free<nonblocking>(p).ok);
        for (auto const& row : p.rows) {
            CHECK(std::all_of(row.begin(), row.end(), [&](instruction i) { return !is_local(i.kind) || marks[static_cast<std::size_t>(i.stage)]; }));
        }
    }
}

TEST_CASE("recomputation: 1F1B with recomputation, as text and drawn")
{
    CHECK(to_text(with_recomputation(lower(two_ranks()))) ==
          "0F0,0SEND_F0,0EVICT0,0F1,0SEND_F1,0EVICT1,0RECV_B0,0R0,0B0,0F2,0SEND_F2,0EVICT2,0RECV_B1,0R1,0B1,0RECV_B2,0R2,0B2\n"
          "1RECV_F0,1F0,1RECV_F1,1B0,1SEND_B0,1F1,1RECV_F2,1B1,1SEND_B1,1F2,1B2,1SEND_B2\n");
    CHECK(instruction_named("3EVICT7") == instruction{instruction_kind::evict, 3, 7});
    CHECK(instruction_named("3R7") == instruction{instruction_kind::recompute, 3, 7});
    CHECK(draw(with_recomputation(two_ranks())) ==
          "0 | F0 F1 R0 .  B0 =  F2 R1 B1 =  R2 B2 =\n"
          "1 | .  F0 B0 =  F1 B1 =  F2 B2 =  .  .  .\n");
}

TEST_CASE("recomputation: costs a forward, frees all but inputs")
{
    auto const plain = gpipe::program({.ranks = 2, .microbatches = 4});
    auto const p = with_recomputation(plain);
    auto const costs = unit_costs(2);
    CHECK(makespan(p, costs) > makespan(plain, costs));
    // All forwards first: the first stage keeps four inputs and one whole activation, the last one as well but for its last microbatch.
    CHECK(peak_bytes_by_rank(plain, unit_holdings(plain)) == std::vector{bytes{40}, bytes{40}});
    CHECK(peak_bytes_by_rank(p, unit_holdings(p)) == std::vector{bytes{13}, bytes{13}});
}

TEST_CASE("recomputation: kept gradients live from I to W")
{
    auto const p = test::from_text("0F0,0I0,0F1,0I1,0W0,0W1\n", {0});
    CHECK(peak_bytes_by_rank(p, unit_holdings(p)) == std::vector{bytes{26}});
    CHECK(peak_activations(p) == 2);

    // The weight gradient frees both, so a second microbatch after it takes no more than the first.
    auto const one_by_one = test::from_text("0F0,0I0,0W0,0F1,0I1,0W1\n", {0});
    CHECK(peak_bytes_by_rank(one_by_one, unit_holdings(one_by_one)) == std::vector{bytes{13}});
    CHECK(peak_parts_by_rank(one_by_one, unit_holdings(one_by_one)) == std::vector{held_peak{bytes{10}, bytes{3}, bytes{0}}});
    CHECK(held_at_once(one_by_one) == std::vector<std::vector<held_items>>{{{1, 1, 0}}});
}

TEST_CASE("recomputation: using evicted activations is named")
{
    for (auto const* text : {"0F0,0EVICT0,0B0\n", "0F0,0EVICT0,0EVICT0,0R0,0B0\n", "0F0,0R0,0B0\n", "0EVICT0,0F0,0R0,0B0\n", "0F0,0B0,0EVICT0,0R0\n"}) {
        INFO(text);
        auto const answer = deadlock_free<shared_memory>(test::from_text(text, {0}));
        CHECK(answer.fault == program_error::hang);
        REQUIRE(answer.culprits.size() == 1);
    }
    auto const sends = test::from_text("0F0,0EVICT0,0SEND_F0\n1RECV_F0,1F0\n", {0, 1});
    CHECK(deadlock_free<rendezvous>(sends).fault == program_error::hang);
    auto const neighbour = test::from_text("0F0,0EVICT0,1F0\n", {0, 0});
    CHECK(deadlock_free<rendezvous>(neighbour).fault == program_error::hang);
}

TEST_CASE("recomputation: fewest ranks under a cap")
{
    auto const p = one_f_one_b::program({.ranks = 4, .microbatches = 8});
    auto const held = unit_holdings(p);
    auto const same = [](std::int64_t cap) { return std::vector<bytes>(4, bytes{cap}); };
    CHECK(recomputation_under(p, held, same(40)) == recomputation_choice{{false, false, false, false}, true});
    CHECK(recomputation_under(p, held, same(25)) == recomputation_choice{{true, true, false, false}, true});
    CHECK(recomputation_under(p, held, same(13)).fits);
    CHECK_FALSE(recomputation_under(p, held, same(9)).fits);
    auto const chosen = recomputation_under(p, held, same(25));
    auto const peaks = peak_bytes_by_rank(with_recomputation(p, chosen.stages), held);
    for (auto const peak : peaks) {
        CHECK(peak <= bytes{25});
    }
}
