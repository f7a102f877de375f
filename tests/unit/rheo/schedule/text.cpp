// SPDX-License-Identifier: Apache-2.0
// Text and back is the identity; what is no instruction is rejected with row and cell. Freezing is the identity, too.
#include <random>

#include "programs.hpp"
#include "rheo/schedule/core/frozen.hpp"
#include "rheo/schedule/core/stage_work.hpp"
#include "rheo/schedule/families/gpipe.hpp"
#include "rheo/schedule/transform/lowering.hpp"
#include "support/catch.hpp"

using namespace rheo;

static_assert(instruction_named("2F0") == instruction{instruction_kind::forward, 2, 0});
static_assert(instruction_named("0SEND_F17") == instruction{instruction_kind::send_activation, 0, 17});
static_assert(!instruction_named("F0") && !instruction_named("2F") && !instruction_named("2G0") && !instruction_named("2F0 ") &&
              !instruction_named("99999F0") && !instruction_named("0F99999999999999999999") && !instruction_named(""));

constexpr auto frozen = freeze<[] { return lower(gpipe::program({.ranks = 2, .microbatches = 4})); }>();
static_assert(thaw(frozen) == lower(gpipe::program({.ranks = 2, .microbatches = 4})));
static_assert(frozen.begins[2] == frozen.instructions.size() && frozen.instructions.size() == 32);

static_assert(to_stage_work(std::vector<microbatch_work>{{microbatch_id{4}, layer_id{0}},
                                                         {microbatch_id{1}, layer_id{5}},
                                                         {microbatch_id{2}, layer_id{4}},
                                                         {microbatch_id{3}, no_backward}},
                            std::vector{layer_id{0}, layer_id{5}, layer_id{9}}) ==
              std::vector<stage_work>{
                  {microbatch_id{4}, stage_id{0}}, {microbatch_id{1}, stage_id{1}}, {microbatch_id{2}, stage_id{0}}, {microbatch_id{3}, stage_id{2}}});

TEST_CASE("text: a program reads back from its text")
{
    std::mt19937 draw{2};
    for (int round = 0; round < 100; ++round) {
        auto const p = lower(test::random_program(draw, 1 + round % 4, 1 + round % 6, 1 + round % 5));
        auto const read = parse_grid(to_text(p), p.placement);
        REQUIRE(read);
        CHECK(without_idle(*read) == p);
    }
}

TEST_CASE("text: idle cells are kept in the grid")
{
    auto const read = parse_grid("0F0,,0B0\n,1F0,\n", {0, 1});
    REQUIRE(read);
    CHECK(read->rows[0].size() == 3);
    CHECK(read->rows[1].size() == 3);
    CHECK_FALSE(read->rows[1][2]);
    CHECK(to_text(without_idle(*read)) == "0F0,0B0\n1F0\n");
    CHECK(to_text(*read) == "0F0,,0B0\n,1F0,\n");
}

TEST_CASE("text: a grid round-trips with parameter cells")
{
    std::mt19937 draw{8};
    auto const below = [&](std::size_t n) { return std::uniform_int_distribution<std::size_t>{0, n - 1}(draw); };
    constexpr std::string_view cells[] = {"", "0F0", "3I11", "(0F7;7B3)OVERLAP_F_B", "0UNSHARD", "12RESHARD", "1REDUCE_GRAD", "1REDUCE5"};
    for (int round = 0; round < 300; ++round) {
        std::string text;
        for (std::size_t row = 0; row < 1 + below(3); ++row) {
            for (std::size_t k = below(9); k > 0; --k) {
                text += std::string{cells[below(std::size(cells))]} + ",";
            }
            text += std::string{cells[below(std::size(cells))]} + "\n";
        }
        INFO(text);
        auto const read = parse_grid(text, {});
        REQUIRE(read);
        CHECK(to_text(*read) == text);
    }
}

TEST_CASE("text: carriage returns at the ends of lines are passed over") { CHECK(*parse_grid("0F0,,0B0\r\n\r\n", {0}) == *parse_grid("0F0,,0B0\n\n", {0})); }

TEST_CASE("text: what is no instruction is refused with row and cell")
{
    CHECK(parse_grid("0F0\n1F0,1X0\n", {0, 1}).error() == "row 2, cell 2: '1X0' is not an instruction like 2F0");
}
