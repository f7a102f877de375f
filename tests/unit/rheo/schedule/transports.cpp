// SPDX-License-Identifier: Apache-2.0
// Which lowering ends under which transport, how deep queues must be, and what the shortest stuck state says.
#include <random>

#include "programs.hpp"
#include "rheo/schedule/check/fifo_depth.hpp"
#include "rheo/schedule/check/stuck_state.hpp"
#include "rheo/schedule/families/families.hpp"
#include "rheo/schedule/transform/lowering.hpp"
#include "rheo/schedule/transform/relax.hpp"
#include "support/catch.hpp"

using namespace rheo;
using test::from_text;

static_assert(least_fifo_depth(lower(one_f_one_b::program({.ranks = 4, .microbatches = 8}))) == 0);
static_assert(least_fifo_depth(lower_lazily(one_f_one_b::program({.ranks = 4, .microbatches = 8}))) == 1);

TEST_CASE("transports: lazy lowering hangs for all but GPipe")
{
    for (auto const family : schedule_families()) {
        int seen = 0;
        for (int p = 2; p <= 6; ++p) {
            for (int m = p; m <= 2 * p + 3; ++m) {
                if (error_of(family, {p, m}) != shape_error::none) {
                    continue;
                }
                ++seen;
                INFO(name_of(family) << " p " << p << " m " << m);
                auto const compute = make_program(family, {p, m});
                CHECK(deadlock_free<rendezvous>(lower(compute)));
                CHECK(deadlock_free<rendezvous>(lower_lazily(compute)).ok == (family == gpipe{}));
                CHECK(deadlock_free<tagged>(lower_lazily(compute)));
            }
        }
        INFO(name_of(family));
        CHECK(seen > 3);
    }
}

TEST_CASE("transports: deeper queues never hurt; least depth")
{
    std::mt19937 draw{5};
    int healed = 0;
    for (int round = 0; round < 200; ++round) {
        auto const p = lower_lazily(test::random_program(draw, 2 + round % 3, 2 + round % 4, 1 + round % 5));
        for (bool const by_direction : {false, true}) {
            auto const least = least_fifo_depth(p, by_direction);
            INFO(to_text(p));
            for (int depth = 1; depth <= 12; ++depth) {
                CHECK(deadlock_free(p, fifo{depth, by_direction}).ok == (least.has_value() && depth >= *least));
            }
            healed += least.has_value() && *least > 0 ? 1 : 0;
            CHECK(deadlock_free<tagged>(p));
        }
    }
    CHECK(healed > 10);
}

TEST_CASE("transports: reordered messages need tags, not depth")
{
    auto const p = from_text("0F0,0F1,0SEND_F1,0SEND_F0\n1RECV_F0,1F0,1RECV_F1,1F1\n", {0, 1});
    CHECK_FALSE(least_fifo_depth(p));
    CHECK(deadlock_free(p, fifo{.depth = 9}).fault == program_error::hang);
    CHECK(deadlock_free<tagged>(p));
}

TEST_CASE("transports: shortest stuck state is the cycle")
{
    auto const stuck = shortest_stuck_state<rendezvous>(lower_lazily(one_f_one_b::program({.ranks = 4, .microbatches = 8})));
    CHECK(stuck.culprits.size() == 2);
    CHECK(stuck.message() == "the programs hang: pipeline 0 rank 2 waits in 2SEND_F1, pipeline 0 rank 3 waits in 3SEND_B0");
    CHECK(shortest_stuck_state<rendezvous>(lower(gpipe::program({2, 2}))).ok);
    // Ranks 0, 1, 2 send round in a circle, and so do ranks 3 and 4.
    auto const circles = from_text("0SEND_F0\n1SEND_F0\n2SEND_F0\n4SEND_F0\n5SEND_F0\n", {0, 1, 2, 0, 3, 4, 3});
    auto const shorter = shortest_stuck_state<rendezvous_of_given>(circles);
    REQUIRE(shorter.culprits.size() == 2);
    CHECK(shorter.culprits[0].position == 3);
    auto const alone = shortest_stuck_state<rendezvous>(from_text("0F0,0SEND_F0\n\n\n", {0, 2}));
    CHECK(alone.culprits.size() == 1);
}

namespace {

/// Whether one receive could come later, or one send earlier, past something that is not its like, by trying every place.
template <class Transport>
bool can_relax(program const& p)
{
    for (std::size_t r = 0; r < p.rows.size(); ++r) {
        auto const& row = p.rows[r];
        for (std::size_t from = 0; from < row.size(); ++from) {
            for (std::size_t to = 0; to < row.size(); ++to) {
                bool const later = is_receive(row[from].kind) && to > from;
                bool const earlier = is_send(row[from].kind) && to < from;
                auto const like = later ? is_receive : is_send;
                auto const begin = row.begin() + static_cast<std::ptrdiff_t>(std::min(from, to));
                auto const end = row.begin() + static_cast<std::ptrdiff_t>(std::max(from, to) + 1);
                if ((!later && !earlier) || std::all_of(begin, end, [&](instruction i) { return like(i.kind); })) {
                    continue;
                }
                auto other = p;
                auto& moved = other.rows[r];
                moved.erase(moved.begin() + static_cast<std::ptrdiff_t>(from));
                moved.insert(moved.begin() + static_cast<std::ptrdiff_t>(to), row[from]);
                if (deadlock_free<Transport>(other)) {
                    return true;
                }
            }
        }
    }
    return false;
}

/// Every send as late as the proof allows, just before the row's next send or its end: the opposite of what relax wants.
program with_late_sends(program p)
{
    for (auto& row : p.rows) {
        for (std::size_t k = row.size(); k-- > 0;) {
            for (auto at = k; is_send(row[at].kind) && at + 1 < row.size() && is_compute(row[at + 1].kind); ++at) {
                std::swap(row[at], row[at + 1]);
                if (!deadlock_free<rendezvous>(p)) {
                    std::swap(row[at], row[at + 1]);
                    break;
                }
            }
        }
    }
    return p;
}

}  // namespace

TEST_CASE("transports: relaxed programs stay sound and minimal")
{
    int saved = 0;
    for (auto const family : schedule_families()) {
        for (auto const shape : {schedule_shape{.ranks = 2, .microbatches = 4}, {.ranks = 4, .microbatches = 8}}) {
            auto const compute = make_program(family, shape);
            auto const lowered = lower(compute);
            auto const relaxed = relax(lowered);
            INFO(name_of(family) << '\n' << to_text(lowered) << '\n' << to_text(relaxed));
            CHECK(deadlock_free<rendezvous>(relaxed));
            CHECK_FALSE(can_relax<rendezvous>(relaxed));
            auto only = relaxed;
            for (auto& row : only.rows) {
                std::erase_if(row, [](instruction i) { return is_send(i.kind) || is_receive(i.kind); });
            }
            CHECK(only == compute);
            auto const before = receive_buffers_by_rank(lowered);
            auto const after = receive_buffers_by_rank(relaxed);
            for (std::size_t r = 0; r < before.size(); ++r) {
                CHECK(after[r] <= before[r]);
                CHECK(relaxed.rows[r].size() == lowered.rows[r].size());
                saved += before[r] - after[r];
            }
        }
    }
    CHECK(saved > 0);
    CHECK(relax(lower(gpipe::program({3, 4}))) == lower_lazily(gpipe::program({3, 4})));
}

TEST_CASE("transports: late sends are relaxed fully")
{
    std::mt19937 draw{12};
    int earlier = 0;
    for (int round = 0; round < 60; ++round) {
        auto const late = with_late_sends(lower(test::random_program(draw, 2 + round % 3, 2 + round % 4, 1 + round % 4)));
        auto const relaxed = relax(late);
        INFO(to_text(late) << '\n' << to_text(relaxed));
        CHECK(deadlock_free<rendezvous>(relaxed));
        CHECK_FALSE(can_relax<rendezvous>(relaxed));
        CHECK(deadlock_free<tagged>(relax<tagged>(late)));
        CHECK_FALSE(can_relax<tagged>(relax<tagged>(late)));
        earlier += relaxed != late ? 1 : 0;
    }
    CHECK(earlier > 20);
}

TEST_CASE("transports: relaxed tags equal lazy lowering")
{
    for (auto const name : {"1f1b", "zb-h1", "interleaved", "dualpipe"}) {
        auto const compute = make_program(*parse_schedule(name), {.ranks = 4, .microbatches = 8});
        auto const relaxed = relax<tagged>(lower(compute));
        INFO(name << '\n' << to_text(relaxed));
        auto const buffers = receive_buffers_by_rank(relaxed);
        CHECK(*std::max_element(buffers.begin(), buffers.end()) <= 2);  // of an overlapped pair both
        CHECK(buffers == receive_buffers_by_rank(lower_lazily(compute)));
    }
}
