// SPDX-License-Identifier: Apache-2.0
// Public schedules and cases, where RHEO_SHARED names the folder with them: texts, step counts, invariants.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "programs.hpp"
#include "public_files.hpp"
#include "rheo/schedule/check/complete.hpp"
#include "rheo/schedule/check/deadlock.hpp"
#include "rheo/schedule/core/placement.hpp"
#include "rheo/schedule/draw/grid_text.hpp"
#include "rheo/schedule/families/families.hpp"
#include "rheo/schedule/transform/lowering.hpp"
#include "rheo/schedule/transform/parameter_cells.hpp"
#include "rheo/schedule/transform/relax.hpp"
#include "rheo/schedule/transform/step_count.hpp"
#include "rheo/schedule/transform/whole_backwards.hpp"
#include "support/catch.hpp"

using namespace rheo;
using test::read_public;

namespace {

program_grid grid_of(std::string const& text, std::vector<int> placement)
{
    auto parsed = parse_grid(text, std::move(placement));
    INFO(parsed.error());
    REQUIRE(parsed);
    return *parsed;
}

}  // namespace

TEST_CASE("vectors: PyTorch's interleaved zero bubble matches")
{
    auto const compute = read_public("pytorch_zb1p_2rank_2stagep_compute.csv");
    if (compute.empty()) {
        return;
    }
    auto const grid = grid_of(compute, {0, 1, 0, 1});
    CHECK(to_text(without_idle(grid)) == to_text(zb1p::program({.ranks = 2, .microbatches = 8, .chunks = 2})));
    auto const comms = without_idle(grid_of(read_public("pytorch_zb1p_2rank_2stagep_comms.csv"), {0, 1, 0, 1}));
    CHECK(to_text(lower(with_whole_backwards(without_idle(grid)))) == to_text(comms));
}

TEST_CASE("vectors: public texts round-trip")
{
    for (auto const* name : {"pytorch_simple_2rank_2stage_compute.csv", "pytorch_simple_2rank_2stage_comms.csv", "pytorch_v_2rank_4stage_compute.csv",
                             "pytorch_v_2rank_4stage_comms.csv", "pytorch_zb1p_2rank_2stagep_compute.csv", "pytorch_zb1p_2rank_2stagep_comms.csv",
                             "pytorch_issue172668_interleaved1f1b_2rank_4mb_comms.csv"}) {
        auto const text = read_public(name);
        if (!text.empty()) {
            INFO(name);
            CHECK(to_text(grid_of(text, {})) == text);
        }
    }
}

TEST_CASE("vectors: PyTorch's single actions read and print alike")
{
    std::string const row = "1F0,2I1,0W3,0B3,1UNSHARD,3RESHARD,2SEND_B2,1RECV_F1\n";
    auto const grid = grid_of(row, {});
    CHECK(to_text(grid) == row);
    CHECK(grid.rows.front().size() == 6);
    CHECK(grid.parameters == std::vector<parameter_cell>{{0, 4, 1, 0}, {0, 4, 3, 1}});
}

TEST_CASE("vectors: PyTorch's parameter cells match")
{
    auto const one = test::from_text("0F0,0F1,,0B0,0B1\n", {0});
    auto const two = test::from_text("0F0,0F1,1F0,1F1,1B0,1B1,0B0,0B1\n", {0, 0});
    CHECK(to_text(with_parameters_gathered(one)) == "0UNSHARD,0F0,0F1,0B0,0B1,0RESHARD\n");
    CHECK(to_text(with_parameters_gathered(two)) == "0UNSHARD,1UNSHARD,0F0,0F1,1F0,1F1,1B0,1B1,1RESHARD,0B0,0B1,0RESHARD\n");
    CHECK(to_text(with_gradients_reduced(one)) == "0F0,0F1,0B0,0B1,0REDUCE_GRAD\n");
    CHECK(to_text(with_gradients_reduced(two)) == "0F0,0F1,1F0,1F1,1B0,1B1,1REDUCE_GRAD,0B0,0B1,0REDUCE_GRAD\n");
    auto const split = test::from_text("0F0,0I0,0W0\n", {0});
    CHECK(to_text(with_gradients_reduced(split)) == "0F0,0I0,0W0,0REDUCE_GRAD\n");
    auto const three = test::from_text("0F0,1F0,0F1,1F1,2F0,2B0,1B0,1B1,0B0,0B1\n", {0, 0, 0});
    CHECK(to_text(with_parameters_gathered(three, 1)) ==
          "0UNSHARD,0F0,0RESHARD,1UNSHARD,1F0,1RESHARD,0UNSHARD,0F1,0RESHARD,1UNSHARD,1F1,1RESHARD,2UNSHARD,2F0,2B0,2RESHARD,1UNSHARD,1B0,1B1,1RESHARD,"
          "0UNSHARD,0B0,0B1,0RESHARD\n");
    CHECK(without_idle(with_parameters_gathered(three)) == three);
}

TEST_CASE("vectors: published step counts")
{
    struct counted {
        std::string file;
        std::vector<int> placement;
        int steps;
    };
    for (auto const& c : {counted{"pytorch_simple_2rank_2stage_comms.csv", {0, 1}, 11},
                          {"pytorch_v_2rank_4stage_comms.csv", {0, 1, 1, 0}, 24},
                          {"pytorch_zb1p_2rank_2stagep_comms.csv", {0, 1, 0, 1}, 113}}) {
        auto const text = read_public(c.file);
        if (!text.empty()) {
            INFO(c.file);
            CHECK(count_steps(without_idle(grid_of(text, c.placement))) == c.steps);
        }
    }
}

TEST_CASE("vectors: reported stall needs late receives")
{
    auto const text = read_public("pytorch_issue172668_interleaved1f1b_2rank_4mb_comms.csv");
    if (text.empty()) {
        return;
    }
    auto const listed = without_idle(grid_of(text, {0, 1, 0, 1}));
    CHECK(deadlock_free<rendezvous>(listed));
    auto late = listed;
    for (auto& row : late.rows) {
        for (std::size_t k = row.size(); k-- > 0;) {
            for (auto at = k; is_receive(row[at].kind) && at + 1 < row.size() && !detail::uses(row[at + 1], row[at]); ++at) {
                std::swap(row[at], row[at + 1]);
            }
        }
    }
    CHECK(deadlock_free<rendezvous>(late).fault == program_error::hang);
}

TEST_CASE("vectors: accepts PyTorch's plan cases")
{
    constexpr std::array<std::array<int, 3>, 23> cases{{{2, 2, 2},  {2, 4, 4},  {2, 8, 2},  {2, 8, 4},   {2, 8, 8},   {4, 4, 4},    {4, 8, 4}, {4, 8, 8},
                                                        {4, 16, 4}, {4, 32, 4}, {4, 64, 4}, {4, 16, 16}, {4, 32, 32}, {4, 128, 64}, {3, 2, 2}, {3, 8, 2},
                                                        {3, 12, 4}, {4, 6, 3},  {4, 10, 5}, {2, 3, 4},   {2, 4, 4},   {2, 10, 4},   {2, 15, 4}}};
    for (auto const& [chunks, m, p] : cases) {
        INFO("chunks " << chunks << " m " << m << " p " << p);
        for (auto const name : {"interleaved", "looped-bfs", "zb1p"}) {
            auto const family = *parse_schedule(name);
            schedule_shape const shape{.ranks = p, .microbatches = m, .chunks = chunks};
            REQUIRE(error_of(family, shape) == shape_error::none);
            auto const program = make_program(family, shape);
            CHECK(complete(program, m));
            CHECK(deadlock_free<rendezvous>(lower(program)));
        }
    }
}

TEST_CASE("vectors: placements as published")
{
    CHECK(loop_placement(4, 2) == std::vector{0, 1, 2, 3, 0, 1, 2, 3});
    CHECK(v_placement(2, 2) == std::vector{0, 1, 1, 0});
    CHECK(v_placement(4, 3) == std::vector{0, 1, 2, 3, 3, 2, 1, 0, 0, 1, 2, 3});
    CHECK(v_placement(4, 4) == std::vector{0, 1, 2, 3, 3, 2, 1, 0, 0, 1, 2, 3, 3, 2, 1, 0});
}

TEST_CASE("vectors: adjacent I and W merge into B")
{
    auto const p = test::from_text("0F0,0F1,0F2,0I0,0I1,0W0,0I2,0W2,0W1\n", {0});
    CHECK(to_text(with_whole_backwards(p)) == "0F0,0F1,0F2,0I0,0I1,0W0,0B2,0W1\n");
}

TEST_CASE("vectors: what PyTorch rejects and accepts")
{
    CHECK_FALSE(complete(test::from_text("0F0,0B0\n\n", {0, 1}), 1));
    CHECK_FALSE(complete(test::from_text("0F0\n1F0\n", {0, 1}), 1));
    CHECK(complete(test::from_text("0F0,0B0\n1F0,1B0\n", {0, 1}), 1));
    CHECK(complete(test::from_text("0F0,0I0,0W0\n1F0,1I0,1W0\n", {0, 1}), 1));
}

TEST_CASE("vectors: Megatron-LM's invariants of the interleaved order")
{
    for (auto const& [p, g] : {std::array{1, 1}, {2, 2}, {2, 4}, {4, 4}, {4, 5}, {8, 9}, {8, 11}}) {
        for (int const m : {8, 32}) {
            for (int const chunks : {1, 2, 4, 8}) {
                schedule_shape const shape{.ranks = p, .microbatches = m, .chunks = chunks, .group = g};
                if (g > m) {
                    continue;
                }
                auto const program = interleaved::order(shape);
                INFO("p " << p << " g " << g << " m " << m << " chunks " << chunks);
                for (auto const& row : program.rows) {
                    CHECK(row.size() == static_cast<std::size_t>(2 * m * chunks));
                    std::vector<int> open(static_cast<std::size_t>(chunks));
                    for (auto const& i : row) {
                        auto& count = open[static_cast<std::size_t>(i.stage / p)];
                        count += i.kind == instruction_kind::forward ? 1 : -1;
                        CHECK(count >= 0);
                    }
                    CHECK(std::all_of(open.begin(), open.end(), [](int c) { return c == 0; }));
                }
            }
        }
    }
}
