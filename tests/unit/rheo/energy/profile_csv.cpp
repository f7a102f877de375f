// SPDX-License-Identifier: Apache-2.0
// Profiles are read back as they were written; each mistake is answered with one sentence that names file and line.
#include "rheo/energy/profile/profile_csv.hpp"

#include "problems.hpp"
#include "support/catch.hpp"

using namespace frontier_tests;

namespace {

std::string const header = "stage,instruction,frequency,time,energy\n";
std::string const sound = "0,forward,1400,0.002,1\n0,forward,1200,0.003,0.75\n0,backward,1400,0.004,2\n0,backward,1200,0.006,1.5\n";

std::string error(std::string const& text) { return parse_profile(text, "p.csv").error(); }

}  // namespace

TEST_CASE("profile_csv: round-trips with marks and ranks")
{
    auto const read = parse_profile(to_csv(small_profile()), "p.csv");
    REQUIRE(read);
    CHECK(*read == small_profile());
    CHECK(stages_of(*read) == 2);

    auto marked = small_profile();
    for (auto& row : marked.rows) {
        row.rank = rank_id{row.stage.value};
    }
    marked.rows[0].throttled = true;
    marked.blocking = watts{83.64};
    auto const again = parse_profile(to_csv(marked), "p.csv");
    REQUIRE(again);
    CHECK(*again == marked);
    CHECK(options_of(*again, rank_id{0}, stage_id{0}, instruction_kind::forward).size() == 2);
}

TEST_CASE("profile_csv: tolerates line ends, columns, order")
{
    CHECK(error("energy,time,frequency,instruction,stage,host\r\n1,0.003,900,forward,0,a\r\n\r\n2,0.002,1400,forward,0,b\r\n").empty());
    CHECK(error(header + sound + "0,send_activation,0,0.001,0").find("send_activation") == std::string::npos);
}

TEST_CASE("profile_csv: fastest first, own rows before shared")
{
    auto measured = small_profile();
    auto own = measured.rows[0];
    own.rank = rank_id{1};
    own.time = milliseconds(9.0);
    measured.rows.push_back(own);
    auto const general = options_of(measured, rank_id{0}, stage_id{0}, instruction_kind::forward);
    REQUIRE(general.size() == 3);
    CHECK(general[0].time < general[1].time);
    CHECK(general[1].time < general[2].time);
    CHECK(options_of(measured, rank_id{1}, stage_id{0}, instruction_kind::forward).size() == 1);
    CHECK(options_of(measured, rank_id{0}, stage_id{7}, instruction_kind::forward).empty());
}

TEST_CASE("profile_csv: waiting power is one row, not a computation")
{
    auto const read = parse_profile(header + sound + "0,blocking,0,0.5,41.82\n", "p.csv");
    REQUIRE(read);
    CHECK(read->blocking.count == Approx(83.64));
    CHECK(read->rows.size() == 4);
    CHECK(stages_of(*read) == 1);
    CHECK(blocking_of(*read, {}).count == Approx(83.64));
    CHECK(blocking_of(*read, {50.0}) == watts{50.0});
    CHECK(blocking_of({}, {}) == usual_blocking);
    CHECK(parse_profile(header + "0,blocking,0,1,80\n" + sound, "p.csv")->blocking == watts{80.0});
    for (auto const* wrong :
         {"0,blocking,0,1,80\n0,blocking,0,1,80\n", "0,blocking,1400,1,80\n", "1,blocking,0,1,80\n", "0,blocking,0,1,0\n", "0,blocking,0,1e-9,1\n"}) {
        CHECK(error(header + wrong).ends_with("blocking is a single row, at stage 0 and clock 0, of a power up to a million watts"));
    }
}

TEST_CASE("profile_csv: each mistake names file and line")
{
    CHECK(error("") == "p.csv, line 1: the file is empty; the first line of a profile is stage,instruction,frequency,time,energy");
    CHECK(error("stage,instruction,frequency,time\n") ==
          "p.csv, line 1: the header has no column 'energy'; a profile has stage,instruction,frequency,time,energy");
    CHECK(error(header) == "p.csv, line 1: the profile has no rows");
    CHECK(error(header + "0,forward,1400,0.002\n") == "p.csv, line 2: 4 cells under a header of 5");
    CHECK(error(header + "zero,forward,1400,0.002,1\n") == "p.csv, line 2: stage is 'zero', but a stage is a number from 0 on");
    CHECK(error(header + "0,forwards,1400,0.002,1\n").find("line 2: instruction is 'forwards', but it is forward, backward") != std::string::npos);
    CHECK(error(header + sound + "1,forward,1400,-0.002,1\n") == "p.csv, line 6: time is '-0.002', but a time is a positive number of seconds, at most 2000");
    CHECK(error(header + "0,forward,1400,nan,1\n") == "p.csv, line 2: time is 'nan', but a time is a positive number of seconds, at most 2000");
    CHECK(error(header + "0,forward,inf,0.1,1\n") == "p.csv, line 2: frequency is 'inf', but a clock is a number of MHz, or 0 where no clock matters");
    CHECK(error(header + "0,forward,1400,0.1,nan\n") == "p.csv, line 2: energy is 'nan', but an energy is a number of joules from 0 to a million");
    CHECK(error(header + sound + "0,forward,1400,0.002,1\n") == "p.csv, line 6: stage 0 forward has this clock twice, first in line 2");
    CHECK(error(header + sound + "0,forward,1300,0.0025,0.8\n") == "p.csv, line 6: stage 0 forward is not sorted by clock");
    CHECK(error(header + sound + "2,forward,1400,0.002,1\n2,forward,1300,0.003,0.8\n") == "p.csv, line 7: the profile ends and has no row of stage 1 forward");
    CHECK(error(header + sound + "1,forward,1400,0.002,1\n1,backward,1400,0.002,1\n1,backward,1300,0.003,1\n") ==
          "p.csv, line 8: stage 1 forward was measured at one clock only (line 6): there is nothing to choose; clock 0 says that no clock matters");
    CHECK(error(header + sound + "0,forward,0,0.002,1\n") ==
          "p.csv, line 6: stage 0 forward has a row at clock 0, which says that no clock matters, and other rows");
    CHECK(error("rank," + header + "-1,0,forward,1400,0.002,1\n") == "p.csv, line 2: rank is '-1', but a rank is a number from 0 on");
    CHECK(error(header + "0,forward,-1400,0.002,1\n") == "p.csv, line 2: frequency is '-1400', but a clock is a number of MHz, or 0 where no clock matters");
    CHECK(error(header + "0,forward,1400,0.002,-1\n") == "p.csv, line 2: energy is '-1', but an energy is a number of joules from 0 to a million");
    CHECK(error("throttled," + header + "1,0,forward,1400,0.002,1\n0,0,forward,1300,0.003,1\n") ==
          "p.csv, line 3: stage 0 forward was measured at one clock only (line 3): there is nothing to choose; clock 0 says that no clock matters");
    CHECK(error("throttled," + header + "yes,0,forward,1400,0.002,1\n") == "p.csv, line 2: throttled is 'yes', but it is 0 or 1");
}

TEST_CASE("profile_csv: a million rows are rejected while reading")
{
    std::string text = header;
    for (int stage = 0; stage < 30'000; ++stage) {
        for (int clock = 0; clock < 34; ++clock) {
            text += std::to_string(stage) + ",forward," + std::to_string(1400 - clock) + ",0.002,1\n";
        }
    }
    CHECK(error(text) == "p.csv, line 200002: more than 200000 rows; a profile has one per stage, instruction and clock");
}
