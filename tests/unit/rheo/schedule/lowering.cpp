// SPDX-License-Identifier: Apache-2.0
// Pair insertion is sound for every acyclic order, keeps the order of computations, and pairs every crossing once.
#include <cstdlib>
#include <fstream>
#include <random>
#include <sstream>

#include "programs.hpp"
#include "rheo/schedule/check/deadlock.hpp"
#include "rheo/schedule/families/gpipe.hpp"
#include "rheo/schedule/families/one_f_one_b.hpp"
#include "rheo/schedule/transform/lowering.hpp"
#include "support/catch.hpp"

using namespace rheo;

namespace {

program only_computations(program p)
{
    for (auto& row : p.rows) {
        std::erase_if(row, [](instruction i) { return !is_compute(i.kind); });
    }
    return p;
}

std::size_t count(program const& p, instruction wanted)
{
    std::size_t n = 0;
    for (auto const& row : p.rows) {
        n += static_cast<std::size_t>(std::count(row.begin(), row.end(), wanted));
    }
    return n;
}

}  // namespace

TEST_CASE("lowering: random orders are sound, pairs crossed once")
{
    std::mt19937 draw{3};
    for (int round = 0; round < 300; ++round) {
        auto const compute = test::random_program(draw, 1 + round % 4, 1 + round % 7, 1 + round % 6);
        auto const lowered = lower(compute);
        INFO(to_text(compute) << '\n' << to_text(lowered));
        REQUIRE(deadlock_free<rendezvous>(lowered));
        CHECK(only_computations(lowered) == compute);
        std::size_t instructions = 0;
        for (auto const& row : compute.rows) {
            for (auto const& i : row) {
                bool const up = i.kind == instruction_kind::forward;
                auto const source = i.stage + (up ? -1 : 1);
                bool const crosses = i.kind != instruction_kind::weight_gradient && source >= 0 && source < static_cast<int>(compute.placement.size()) &&
                                     compute.placement[static_cast<std::size_t>(source)] != compute.placement[static_cast<std::size_t>(i.stage)];
                instructions += crosses ? 3 : 1;
                if (crosses) {
                    CHECK(count(lowered, {up ? instruction_kind::receive_activation : instruction_kind::receive_gradient, i.stage, i.item}) == 1);
                    CHECK(count(lowered,
                                {up ? instruction_kind::send_activation : instruction_kind::send_gradient, static_cast<std::int16_t>(source), i.item}) == 1);
                }
            }
        }
        for (auto const& row : lowered.rows) {
            instructions -= row.size();
        }
        CHECK(instructions == 0);  // and nothing is sent that no rank uses
    }
}

TEST_CASE("lowering: 1F1B on three ranks, lowered")
{
    CHECK('\n' + to_text(lower(one_f_one_b::program({.ranks = 3, .microbatches = 3}))) == R"(
0F0,0SEND_F0,0F1,0SEND_F1,0F2,0SEND_F2,0RECV_B0,0B0,0RECV_B1,0B1,0RECV_B2,0B2
1RECV_F0,1F0,1SEND_F0,1RECV_F1,1F1,1SEND_F1,1RECV_B0,1RECV_F2,1B0,1SEND_B0,1F2,1SEND_F2,1RECV_B1,1B1,1SEND_B1,1RECV_B2,1B2,1SEND_B2
2RECV_F0,2F0,2RECV_F1,2B0,2SEND_B0,2F1,2RECV_F2,2B1,2SEND_B1,2F2,2B2,2SEND_B2
)");
}

TEST_CASE("lowering: lowering wants a program that only computes")
{
    CHECK_THROWS_WITH(lower(lower(gpipe::program({2, 2}))), "lowering begins with a program that only computes");
}

TEST_CASE("lowering: published lowerings are met, text for text")
{
    auto const* shared = std::getenv("RHEO_SHARED");
    if (shared == nullptr) {
        WARN("RHEO_SHARED names no folder with public vectors: skipped");
        return;
    }
    auto const folder = std::string{shared} + "/vectors/schedules/pytorch_";
    auto const read = [&](std::string const& name) {
        std::ifstream file{folder + name + ".csv"};
        REQUIRE(file);
        std::stringstream text;
        text << file.rdbuf();
        auto result = text.str();
        std::erase(result, '\r');
        return result;
    };
    struct vector_case {
        std::string name;
        std::vector<int> placement;
    };
    for (auto const& [name, placement] : {vector_case{"simple_2rank_2stage", {0, 1}}, vector_case{"v_2rank_4stage", {0, 1, 1, 0}}}) {
        INFO(name);
        auto const compute = parse_grid(read(name + "_compute"), placement);
        auto const expected = parse_grid(read(name + "_comms"), placement);
        REQUIRE(compute.error().empty());
        REQUIRE(expected.error().empty());
        CHECK(to_text(lower(*compute)) == to_text(without_idle(*expected)));
        CHECK(deadlock_free<rendezvous>(lower(*compute)));
    }
}
