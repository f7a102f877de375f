// SPDX-License-Identifier: Apache-2.0
// `rheo schedule` and `rheo plan --schedule` as their users start them.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>

#include <sys/wait.h>

#include <nlohmann/json.hpp>

#include "support/catch.hpp"
#include "support/rheo_command.hpp"
#include "support/temporary_folder.hpp"

TEST_CASE("schedule_command: prints drawing, figures and proof")
{
    temporary_folder const folder;
    auto const shown = run_rheo(folder, "schedule zb-h1 --ranks 3 --microbatches 4");
    CHECK(shown.exit_code == 0);
    CHECK(shown.out == R"(zb-h1: Qi et al., Zero Bubble Pipeline Parallelism, ICLR 2024, section 2.2
0 | F0 F1 F2 .  .  I0 W0 F3 I1 W1 I2 W2 I3 W3
1 | .  F0 F1 .  I0 F2 I1 W0 F3 I2 W1 I3 W2 W3
2 | .  .  F0 I0 F1 I1 F2 I2 W0 F3 I3 W1 W2 W3
  makespan        14, work of the busiest rank 12
  bubble          2 of the makespan; 2 between a rank's first and last computation
  lower bound     14, met
  activations     3 full stages at most, parameters once
  pair insertion  every computation once, no rank waits for ever, even if every send waits for its receive
  buffers         2 received messages at once, 1 when receives come as late as the proof allows
  lazy insertion  the programs hang: pipeline 0 rank 1 waits in 1SEND_F1, pipeline 0 rank 2 waits in 2SEND_B0
                  queues between two ranks need 1 place
                  queues of one direction need 1 place
)");
}

TEST_CASE("schedule_command: file round-trips; errors name row, cell")
{
    temporary_folder const folder;
    auto const written = run_rheo(folder, "schedule zb-v --ranks 3 --microbatches 5 --format pytorch");
    REQUIRE(written.exit_code == 0);
    folder.write("mine.csv", written.out);
    auto const read = run_rheo(folder, "schedule mine.csv --format pytorch");
    CHECK(read.exit_code == 0);
    CHECK(read.out == written.out);
    folder.write("wrong.csv", "0F0,0B0\n1F0,1X0\n");
    auto const wrong = run_rheo(folder, "schedule wrong.csv");
    CHECK(wrong.exit_code == 2);
    CHECK(wrong.err == "rheo: wrong.csv: row 2, cell 2: '1X0' is not an instruction like 2F0\n");
}

TEST_CASE("schedule_command: impossible: the compiler's message")
{
    temporary_folder const folder;
    auto const odd = run_rheo(folder, "schedule dualpipe --ranks 3 --microbatches 8");
    CHECK(odd.exit_code == 3);
    CHECK(odd.err == "rheo: dualpipe on 3 ranks with 8 microbatches: this schedule runs in two directions and needs an even number of ranks\n");
    CHECK(run_rheo(folder, "schedule zbv --ranks 3 --microbatches 8").exit_code == 2);
    CHECK(run_rheo(folder, "schedule zb-v").err == "rheo: how large is zb-v to be? Say --ranks P and --microbatches M\n");
    CHECK(run_rheo(folder, "schedule 1f1b --ranks 2 --microbatches 2 --costs 1,x,1").exit_code == 2);
    CHECK(run_rheo(folder, "schedule 1f1b --ranks 2 --microbatches 2 --chunks 2").err ==
          "rheo: 1f1b on 2 ranks with 2 microbatches: this schedule has no choice of chunks per rank\n");
}

TEST_CASE("schedule_command: options beside a file must agree with it")
{
    temporary_folder const folder;
    folder.write("mine.csv", run_rheo(folder, "schedule zb-v --ranks 2 --microbatches 4 --format pytorch").out);
    CHECK(run_rheo(folder, "schedule mine.csv --ranks 2 --microbatches 4 --chunks 2 --slices 1").exit_code == 0);
    CHECK(run_rheo(folder, "schedule mine.csv --microbatches 4").exit_code == 0);
    auto const refused = [&](std::string const& option, std::string const& message) {
        auto const result = run_rheo(folder, "schedule mine.csv " + option);
        CHECK(result.exit_code == 2);
        CHECK(result.out.empty());
        CHECK(result.err == "rheo: mine.csv: " + message + "\n");
    };
    refused("--ranks 3", "written for 2 ranks and 4 microbatches, but --ranks says 3");
    refused("--ranks 2 --microbatches 5", "written for 2 ranks and 4 microbatches, but --microbatches says 5");
    refused("--chunks 1", "written for 4 stages on 2 ranks, but --chunks says 1 per rank");
    refused("--group 2", "its order is written down; --group is for families");
    refused("--slices 3", "the items count to 4, which is no whole number of microbatches of 3 slices");
}

TEST_CASE("schedule_command: bad costs are rejected, shown short")
{
    temporary_folder const folder;
    auto const refused = [&](std::string const& costs, std::string const& message) {
        auto const result = run_rheo(folder, "schedule 1f1b --ranks 2 --microbatches 2 --costs " + costs);
        CHECK(result.exit_code == 2);
        CHECK(result.err == "rheo: --costs" + message + "\n");
    };
    refused("0,0,0", ": a step that takes no time has no bubble; one of f, i and w must be more than 0, for example 1,1,1,0");
    refused("0,0,0,5", ": a step that takes no time has no bubble; one of f, i and w must be more than 0, for example 1,1,1,0");
    refused("1,1", " has 2 times; --costs wants f,i,w,transfer, for example 1,1,1,0");
    refused("1,$(printf '\\033[31m'),1", ": '\\x1b[31m' is not a time; --costs wants f,i,w,transfer, for example 1,1,1,0");
    CHECK(run_rheo(folder, "schedule 1f1b --ranks 2 --microbatches 2 --costs 1,0,0").exit_code == 0);
}

TEST_CASE("schedule_command: notes what PyTorch cannot run")
{
    temporary_folder const folder;
    auto const note = [&](std::string const& family) {
        auto const result = run_rheo(folder, "schedule " + family + " --ranks 2 --microbatches 4 --format pytorch");
        CHECK(result.exit_code == 0);
        CHECK_FALSE(result.out.empty());
        return result.err;
    };
    for (auto const* const family : {"chimera", "bitpipe", "dualpipe"}) {
        CHECK(note(family) ==
              "rheo: note: PyTorch does not run this: its stages each run every microbatch, but here two copies of the model share them, in two directions\n");
    }
    CHECK(note("seq1f1b") == "rheo: note: PyTorch does not run this: it would take slices of a sequence for microbatches that know nothing of each other\n");
    for (auto const* const family : {"1f1b", "zb-v", "dualpipe-v"}) {
        CHECK(note(family).empty());
    }
}

TEST_CASE("schedule_command: warns about times in milliseconds")
{
    temporary_folder const folder;
    folder.write("c.toml", "schema = 1\n[model]\nblocks = 1\n[train]\nmicrobatches = 2\n");
    auto const with_block_of = [&](std::string const& times) {
        folder.write("layers.csv",
                     "layer,forward,backward,parameters,activations,boundary\n0,0.0001,0.0002,0,8,8\n1," + times + ",0,8,8\n2,0.0001,0.0002,0,8,8\n");
    };
    for (std::string const command : {"plan c.toml --ranks 2 --layer-profile layers.csv", "plan c.toml --ranks 2 --schedule 1f1b --layer-profile layers.csv"}) {
        with_block_of("12.5,25");
        auto const doubted = run_rheo(folder, command);
        CHECK(doubted.exit_code == 0);
        CHECK(doubted.err == "rheo: warning: layers.csv: layer 1 takes 37.5 s for one microbatch; times are read as seconds: are these milliseconds?\n");
        with_block_of("0.0125,0.025");
        CHECK(run_rheo(folder, command).err.empty());
    }
}

TEST_CASE("schedule_command: JSON, picture and list")
{
    temporary_folder const folder;
    auto const json = nlohmann::json::parse(run_rheo(folder, "schedule interleaved --ranks 4 --microbatches 8 --chunks 2 --format json").out);
    CHECK(json["makespan_bubble"] == 4.5);
    CHECK(json["lower_bound_met"] == true);
    CHECK(json["program"].size() == 4);
    CHECK(run_rheo(folder, "schedule interleaved --ranks 4 --microbatches 8 --format svg").out.starts_with("<svg "));
    auto const list = run_rheo(folder, "schedule --list").out;
    CHECK(std::count(list.begin(), list.end(), '\n') == 17);
}

TEST_CASE("schedule_command: compares for the user's model")
{
    temporary_folder const folder;
    folder.write("c.toml", "schema = 1\n[model]\nblocks = 6\n[train]\nmicrobatches = 4\n");
    auto const all = run_rheo(folder, "plan c.toml --ranks 2 --schedule all --json");
    CHECK(all.exit_code == 0);
    auto const json = nlohmann::json::parse(all.out);
    CHECK(json["schedules"].size() == 17);
    for (auto const& row : json["schedules"]) {
        INFO(row.dump());
        CHECK((row.contains("error") || row["makespan_s"].get<double>() >= row["lower_bound_s"].get<double>() * (1 - 1e-9)));
    }
    CHECK(run_rheo(folder, "plan c.toml --ranks 2 --schedule all --memory 0.01").exit_code == 3);
    CHECK(run_rheo(folder, "plan c.toml --ranks 2 --schedule zb-h1").exit_code == 0);
    CHECK(run_rheo(folder, "plan c.toml --ranks 2 --set plan.schedule=zb-h1").exit_code == 0);
    auto const refused = run_rheo(folder, "plan c.toml --ranks 2 --set plan.schedule=seq1f1b");
    CHECK(refused.exit_code == 2);
    CHECK(refused.err.find("plan.schedule = \"seq1f1b\" cuts sequences: train.slices must say into how many slices, 2 or more") != refused.err.npos);
    CHECK(run_rheo(folder, "plan c.toml --ranks 2 --set plan.schedule=seq1f1b --set train.slices=4").exit_code == 0);
}

TEST_CASE("schedule_command: compares a file like a family")
{
    temporary_folder const folder;
    folder.write("c.toml", "schema = 1\n[model]\nblocks = 6\n[train]\nmicrobatches = 4\n");
    auto const text = run_rheo(folder, "schedule v-half --ranks 2 --microbatches 4 --format pytorch").out;
    folder.write("mine.csv", text);
    auto const by_name = nlohmann::json::parse(run_rheo(folder, "plan c.toml --ranks 2 --schedule v-half --json").out)["schedules"][0];
    auto by_file = nlohmann::json::parse(run_rheo(folder, "plan c.toml --ranks 2 --schedule mine.csv --json").out)["schedules"][0];
    CHECK(by_file["schedule"] == "mine.csv");
    by_file["schedule"] = "v-half";
    CHECK(by_file == by_name);
    auto const other_size = run_rheo(folder, "plan c.toml --ranks 3 --schedule mine.csv");
    CHECK(other_size.exit_code == 3);
    CHECK(other_size.err == "rheo: mine.csv: a schedule of 2 ranks and 4 microbatches, but the plan has 3 and 4\n");
    folder.write("wrong.csv", "0F0,,0B0\n0F1,0X1\n");
    auto const wrong = run_rheo(folder, "plan c.toml --ranks 2 --schedule wrong.csv");
    CHECK(wrong.exit_code == 2);
    CHECK(wrong.err == "rheo: wrong.csv: row 2, cell 2: '0X1' is not an instruction like 2F0\n");
    folder.write("twice.csv", "0F0,,0B0\n,0F1\n");
    CHECK(run_rheo(folder, "plan c.toml --ranks 2 --schedule twice.csv").err == "rheo: twice.csv: row 2, cell 2: stage 0 already lives in row 1\n");
    CHECK(run_rheo(folder, "plan c.toml --ranks 2 --schedule none.csv").err == "rheo: none.csv: no such file\n");
}

TEST_CASE("schedule_command: uses the user's layer profile")
{
    temporary_folder const folder;
    folder.write("c.toml", "schema = 1\n[model]\nblocks = 2\n[train]\nmicrobatches = 2\n");  // four layers with the embedding and the classifier
    std::string profile = "layer,forward,backward,parameters,activations,boundary\n";
    for (int l = 0; l < 4; ++l) {
        profile += std::to_string(l) + ",1,2,0," + std::to_string(1 << 20) + ",0\n";
    }
    folder.write("layers.csv", profile);
    auto const all = run_rheo(folder, "plan c.toml --ranks 2 --schedule all --layer-profile layers.csv --json");
    CHECK(all.exit_code == 0);
    auto const json = nlohmann::json::parse(all.out);
    auto const row = [&](std::string const& name) {
        for (auto const& r : json["schedules"]) {
            if (r["schedule"] == name) {
                return r;
            }
        }
        return nlohmann::json{};
    };
    CHECK(row("1f1b")["makespan_s"].get<double>() == Approx(18.0).epsilon(1e-4));  // (m + p - 1)(f + b), two layers each
    CHECK(row("gpipe")["memory_bytes"] == 4 << 20);
    CHECK(row("1f1b")["lower_bound_s"].get<double>() == Approx(18.0).epsilon(1e-4));
    CHECK(row("seq1f1b")["makespan_s"].get<double>() < 18.0);
    auto const capped = run_rheo(folder, "plan c.toml --ranks 2 --schedule all --layer-profile layers.csv --memory 3");
    CHECK(capped.exit_code == 0);
    CHECK(capped.out.find("over the cap") != capped.out.npos);
    CHECK(capped.out.find("times of layers.csv") != capped.out.npos);
    CHECK(capped.out.find("shortest within 3 MiB per rank: seq1f1b") != capped.out.npos);
    auto const none = run_rheo(folder, "plan c.toml --ranks 2 --schedule all --layer-profile layers.csv --memory 0.5");
    CHECK(none.exit_code == 3);
    CHECK(none.err.ends_with("rheo: no schedule keeps within 0.5 MiB per rank; the least that one needs is 3.00\n"));
    folder.write("short.csv", profile.substr(0, profile.rfind("3,1")));
    auto const shorter = run_rheo(folder, "plan c.toml --ranks 2 --schedule all --layer-profile short.csv");
    CHECK(shorter.exit_code == 4);
    CHECK(shorter.err == "rheo: short.csv: a profile of 3 layers, but the model has 4\n");
    auto const templates = run_rheo(folder, "plan c.toml --ranks 2 --layer-profile layers.csv");
    CHECK(templates.out.find("templates (as profiled in layers.csv, at 1 microbatches)") != templates.out.npos);
    CHECK(templates.out.find("  2      12000.020 ms  ") != templates.out.npos);  // one microbatch through four layers, and two messages
    CHECK(run_rheo(folder, "plan c.toml --ranks 2 --node-size 2 --layer-profile layers.csv").err ==
          "rheo: layers.csv: stages of up to 2 devices need the columns all_reduce_2 to all_reduce_2\n");
}

TEST_CASE("schedule_command: every family round-trips through a file")
{
    temporary_folder const folder;
    for (std::string const name : {"gpipe", "interleaved", "v-half", "dualpipe", "chimera", "bitpipe", "seq1f1b"}) {
        INFO(name);
        auto const size = " --ranks 2 --microbatches 4";
        folder.write("mine.csv", run_rheo(folder, "schedule " + name + size + " --format pytorch").out);
        auto written = nlohmann::json::parse(run_rheo(folder, "schedule " + name + size + " --format json").out);
        auto read = nlohmann::json::parse(run_rheo(folder, "schedule mine.csv --format json" + std::string{name == "seq1f1b" ? " --slices 2" : ""}).out);
        for (auto* const j : {&written, &read}) {
            j->erase("schedule");
            j->erase("source");
        }
        CHECK(read == written);
    }
}
