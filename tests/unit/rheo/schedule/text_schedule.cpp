// SPDX-License-Identifier: Apache-2.0
// Every family reads back from its text; what is wrong in a file is named by row and cell.
#include "rheo/schedule/draw/text_schedule.hpp"
#include "rheo/schedule/draw/svg.hpp"
#include "rheo/schedule/families/families.hpp"
#include "support/catch.hpp"

using namespace rheo;

TEST_CASE("text_schedule: families round-trip with overlaps")
{
    for (auto const family : schedule_families()) {
        auto const p = make_program(family, {2, 6});
        auto const grid = parse_grid(to_text(p), p.placement);
        INFO(name_of(family));
        REQUIRE(grid);
        CHECK(without_idle(*grid).rows == p.rows);
        auto const read = parse_schedule_text(to_text(p), p.slices);
        INFO(read.error());
        REQUIRE(read);
        CHECK(read->program == p);
        CHECK(read->microbatches == 6);
    }
}

TEST_CASE("text_schedule: an overlapped pair is one cell")
{
    auto const read = parse_grid("0F0,(0F1;1B0)OVERLAP_F_B\n", {0, 0});
    REQUIRE(read);
    CHECK(to_text(without_idle(*read)) == "0F0,(0F1;1B0)OVERLAP_F_B\n");
    CHECK(read->rows[0].size() == 4);
    CHECK(parse_grid("(0B1;1B0)OVERLAP_F_B\n", {0, 0}).error() == "row 1, cell 1: '(0B1;1B0)OVERLAP_F_B' is not an instruction like 2F0");
    CHECK_FALSE(parse_grid("(0F1;1B0\n", {0, 0}));
    CHECK_FALSE(parse_grid("()OVERLAP_F_B\n", {0, 0}));
}

TEST_CASE("text_schedule: tolerates BOM, spaces and quotes")
{
    auto const plain = parse_schedule_text("0F0,0F1,,0B0,0B1\n1F0,1B0,1F1,1B1\n");
    REQUIRE(plain);
    auto const written = parse_schedule_text("\xEF\xBB\xBF 0F0 ,\"0F1\",\"\",\t0B0,0B1 \r\n1F0, \" 1B0 \",1F1 ,1B1\r\n");
    CHECK(written.error().empty());
    CHECK(written->program == plain->program);
    CHECK(to_text(without_idle(*parse_grid("( 0F1 ; 1B0 )OVERLAP_F_B\n", {0, 0}))) == "(0F1;1B0)OVERLAP_F_B\n");
    CHECK(parse_schedule_text("0 F0,0B0\n").error() == "row 1, cell 1: '0 F0' is not an instruction like 2F0");
}

TEST_CASE("text_schedule: a wrong cell is shown short and printable")
{
    CHECK(parse_schedule_text("0F0,\x1b[31m\n").error() == "row 1, cell 2: '\\x1b[31m' is not an instruction like 2F0");
    CHECK(parse_schedule_text("0F0," + std::string(5'000'000, 'X') + "\n").error() ==
          "row 1, cell 2: '" + std::string(40, 'X') + "'... (5000000 bytes) is not an instruction like 2F0");
}

TEST_CASE("text_schedule: a broken path of a microbatch is named")
{
    CHECK(parse_schedule_text("0F0,0F1,0B0,0B1\n1F1,1B1\n").error() == "row 2: microbatch 0 runs in stage 0 but not in stage 1: 1F0 is missing");
    CHECK(parse_schedule_text("0F0,0B0\n1F1,1B1\n").error() == "row 2: microbatch 0 runs in stage 0 but not in stage 1: 1F0 is missing");
    CHECK(parse_schedule_text("0F0,0B0,1F1,1B1\n").error() == "row 1: microbatch 0 runs in stage 0 but not in stage 1: 1F0 is missing");
    CHECK(parse_schedule_text("0F0,0B0,2F1,2B1\n1F0,1B0,3F1,3B1\n").error() == "row 1: microbatch 0 runs in stage 0 but not in stage 2: 2F0 is missing");
    CHECK(parse_schedule_text("0F0,0F1,0B0,0B1\n1F0,1F1,1B0,1B1\n2F0,2B0\n").error() ==
          "row 3: microbatch 1 runs in stage 0 but not in stage 2: 2F1 is missing");
    CHECK(parse_schedule_text("0F0,0F1,0B1,0B0\n1F0,1B0\n", 2).error() == "row 2: slice 1 of microbatch 0 runs in stage 0 but not in stage 1: 1F1 is missing");
    auto const two = parse_schedule_text("0F0,3F1,3B1,0B0\n1F0,1B0,2F1,2B1\n");
    CHECK(two.error().empty());
    CHECK(two->program.copies == 2);
}

TEST_CASE("text_schedule: mistakes name row and cell")
{
    CHECK(parse_schedule_text("").error() == "row 1, cell 1: a schedule needs an instruction like 0F0");
    CHECK(parse_schedule_text("0F0,,0X0\n").error() == "row 1, cell 3: '0X0' is not an instruction like 2F0");
    CHECK(parse_schedule_text("0F0,0SEND_F0\n1F0\n").error() == "row 1, cell 2: a schedule only computes (F, B, I, W); transfers are put in by lowering");
    CHECK(parse_schedule_text("0F0,0B0\n,0F1\n").error() == "row 2, cell 2: stage 0 already lives in row 1");
    CHECK(parse_schedule_text("1F0,1B0\n").error() == "stage 0 is nowhere, but a later one is");
    CHECK(parse_schedule_text("0F0,0B0,0F0\n").error() == "row 1, cell 1: an instruction is there twice: pipeline 0 rank 0 with 0F0");
    CHECK(parse_schedule_text("0F0\n").error() == "row 1: an instruction is missing: pipeline 0 rank 0 with 0B0");
    CHECK(parse_schedule_text("0UNSHARD,(0F1;1B0)OVERLAP_F_B,0SEND_F0\n").error() ==
          "row 1, cell 3: a schedule only computes (F, B, I, W); transfers are put in by lowering");
    CHECK(parse_schedule_text("0F0,0B0\n1B0,1F0\n").error() == "row 2, cell 1: the programs hang: pipeline 0 rank 1 waits in 1B0");
    CHECK(parse_schedule_text("0F0,0B0,0F1,0B1\n1F1,1B1,1F0,1B0\n2F0,2B0,2F1,2B1\n").error() ==
          "row 1, cell 2: the programs hang: pipeline 0 rank 0 waits in 0B0, pipeline 0 rank 1 waits in 1F1");
    CHECK(parse_schedule_text("0F0,0F1,0B0,0B1\n", 2).error() == "row 1, cell 3: the programs hang: pipeline 0 rank 0 waits in 0B0");
    CHECK(parse_schedule_text("0F0,0B0\n", 2).error() == "the items count to 1, which is no whole number of microbatches of 2 slices");
    CHECK(parse_schedule_text("0F2147483647,0B0\n1F2147483647\n").error() ==
          "2147483648 items in 2 stages want at least 4294967296 computations, and there are 3");
    CHECK(parse_schedule_text("0F0,0B0,3F0,3B0\n1F0,1B0,2F1,2B1\n").error() == "row 2: microbatch 0 runs in stage 0 but not in stage 2: 2F0 is missing");
}

TEST_CASE("text_schedule: picture: box per computation, colour by kind")
{
    auto const p = zb_h1::program({2, 3});
    auto const svg = to_svg(p, unit_costs(2));
    auto const count = [&](std::string const& what) {
        std::size_t n = 0;
        for (auto at = svg.find(what); at != svg.npos; at = svg.find(what, at + 1)) {
            ++n;
        }
        return n;
    };
    CHECK(count("<title>") == 18);
    CHECK(count("#7fb2e5") == 7);  // six forwards and the legend
    CHECK(count("#b9dfa0") == 7);
    CHECK(count("#f3c678") == 7);
    CHECK(count("#eeeeee") == 3);  // behind both ranks
    CHECK(svg.starts_with("<svg xmlns="));
    CHECK(svg.ends_with("</svg>\n"));
}
