// SPDX-License-Identifier: Apache-2.0
// `rheo frontier` as its users start it: table, JSON, CSV, picture, header, and a sentence for each mistake.

#include <cstdlib>
#include <filesystem>
#include <string>

#include <sys/wait.h>

#include <nlohmann/json.hpp>

#include "catch.hpp"
#include "executor/rheo_command.hpp"
#include "executor/temporary_folder.hpp"

namespace {

outcome frontier(temporary_folder const& folder, std::string const& arguments)
{
    return run_rheo(folder, "frontier " + arguments);
}

/// Two stages at three clocks.
void write_profile(temporary_folder const& folder)
{
    std::string text = "stage,instruction,frequency,time,energy\n";
    for (int stage = 0; stage < 2; ++stage) {
        auto const s = std::to_string(stage);
        text += s + ",forward,1400,0.002,1\n" + s + ",forward,1200,0.003,0.75\n" + s + ",forward,900,0.005,0.625\n";
        text += s + ",backward,1400,0.004,2\n" + s + ",backward,1200,0.006,1.5\n" + s + ",backward,900,0.01,1.25\n";
    }
    folder.write("p.csv", text);
}

void refused(outcome const& result, int exit_code, std::string const& sentence)
{
    CHECK(result.exit_code == exit_code);
    CHECK(result.err == "rheo: " + sentence + "\n");
    CHECK(result.out.empty());
}

}  // namespace

TEST_CASE("rheo frontier shows the frontier as a table, as JSON and as rows")
{
    temporary_folder const folder;
    write_profile(folder);
    std::string const common = "p.csv --schedule 1f1b --microbatches 2 --blocking-power 50W";
    auto const table = frontier(folder, common);
    CHECK(table.exit_code == 0);
    CHECK(table.err.empty());
    CHECK(table.out.find("proved by its dual flow") != std::string::npos);
    CHECK(table.out.find("0.018000 s") != std::string::npos);

    auto const json = nlohmann::json::parse(frontier(folder, common + " --deadline 20ms --json").out);
    CHECK(json["ranks"] == 2);
    CHECK(json["chosen"]["proved"] == true);
    CHECK(json["chosen"]["time_s"].get<double>() <= 0.020);
    CHECK(json["chosen"]["clocks"].size() == 2);
    CHECK(json["chosen"]["clocks"][0].size() == 4);
    CHECK(json["chosen"]["clocks"][0][0]["instruction"] == "0F0");
    CHECK(json["highest_clocks"]["time_s"].get<double>() == Approx(0.018));

    auto const rows = frontier(folder, common + " --csv --unit 1ms");
    CHECK(rows.out.starts_with("time,energy\n"));
    CHECK(rows.out.find("\n0.018") != std::string::npos);
    CHECK(frontier(folder, common + " --csv --fit exponential").exit_code == 0);
}

TEST_CASE("rheo frontier writes a picture and a header")
{
    temporary_folder const folder;
    write_profile(folder);
    auto const result = frontier(folder, "p.csv --microbatches 3 --svg f.svg --emit-header plan.hpp");
    CHECK(result.exit_code == 0);
    CHECK(folder.read("f.svg").starts_with("<svg"));
    CHECK(folder.read("plan.hpp").find("inline constexpr rheo::clock_plan<0x") != std::string::npos);
    CHECK(frontier(folder, "p.csv --microbatches 3 --svg none/f.svg").exit_code == 5);
}

TEST_CASE("rheo frontier shows templates and clocks for each number of survivors")
{
    temporary_folder const folder;
    std::string text = "stage,instruction,frequency,time,energy\n";
    for (int layer = 0; layer < 6; ++layer) {
        for (std::string const kind : {"forward", "backward"}) {
            double const work = kind == "forward" ? 1.0 : 2.0;
            for (int step = 0; step < 3; ++step) {
                text += std::to_string(layer) + "," + kind + "," + std::to_string(1400 - 200 * step) + "," + std::to_string(work * (0.010 + 0.002 * step)) + ","
                    + std::to_string(work * (4.0 - 0.6 * step)) + "\n";
            }
        }
    }
    folder.write("layers.csv", text);
    std::string const common = "layers.csv --microbatches 8 --ranks 1..7 --min-ranks 2 --failures 1";
    auto const table = frontier(folder, common);
    CHECK(table.exit_code == 0);
    CHECK(table.out.find("    1   1 rank is too few: the smallest pipeline template takes 2") != std::string::npos);
    auto const json = nlohmann::json::parse(frontier(folder, common + " --json").out);
    REQUIRE(json["survivors"].size() == 7);
    for (auto const& row : json["survivors"]) {
        if (row.contains("cannot")) {
            continue;
        }
        CHECK(row["together"]["energy_J"].get<double>() <= row["one_after_the_other"]["energy_J"].get<double>());
        CHECK(row["together"]["time_s"] == row["one_after_the_other"]["time_s"]);
        int work = 0;
        for (auto const& p : row["together"]["pipelines"]) {
            work += p["microbatches"].get<int>();
        }
        CHECK(work == 8);
    }
    refused(frontier(folder, "layers.csv --microbatches 8 --ranks 4..x"), 2, "--ranks is '4..x', but it is a range like 4..12");
    refused(frontier(folder, "layers.csv --microbatches 1 --ranks 4"), 2, "--microbatches 1 is too few: each of 2 pipelines needs one");
    refused(frontier(folder, "layers.csv --microbatches 8 --ranks 4 --schedule chimera"), 2,
        "--ranks needs a schedule with a stage per rank for any number of microbatches, such as 1f1b; chimera is none");
    refused(frontier(folder, "layers.csv --microbatches 8 --ranks 9 --min-ranks 7"), 3, "--min-ranks 7: the profile has 6 stages, so no pipeline is that long");
    CHECK(frontier(folder, "layers.csv --microbatches 8 --failures 2").exit_code == 2);
}

TEST_CASE("rheo frontier takes schedules that split the backward, from halves or from a share of it")
{
    temporary_folder const folder;
    write_profile(folder);
    refused(frontier(folder, "p.csv --microbatches 4 --schedule zb-h1"), 4,
        "p.csv: the profile has nothing for 0I0 on rank 0; the schedule splits backwards: --input-gradient-share 0.5 takes half of each measured one");
    auto const shared = frontier(folder, "p.csv --microbatches 4 --schedule zb-h1 --input-gradient-share 0.5");
    CHECK(shared.exit_code == 0);
    CHECK(shared.out.find("proved by its dual flow") != std::string::npos);
    std::string text = folder.read("p.csv");
    for (std::string const stage : {"0", "1"}) {
        for (std::string const half : {"input_gradient", "weight_gradient"}) {
            text += stage + "," + half + ",1400,0.002,1\n" + stage + "," + half + ",1200,0.003,0.75\n" + stage + "," + half + ",900,0.005,0.625\n";
        }
    }
    folder.write("halves.csv", text);
    CHECK(frontier(folder, "halves.csv --microbatches 4 --schedule zb-h1").out == shared.out);
}

TEST_CASE("while somebody else is waited for, rheo frontier is slower than it would be alone")
{
    temporary_folder const folder;
    write_profile(folder);
    auto const alone = nlohmann::json::parse(frontier(folder, "p.csv --microbatches 4 --json --deadline 90ms").out);
    auto const late = nlohmann::json::parse(frontier(folder, "p.csv --microbatches 4 --json --straggler 90ms").out);
    CHECK(alone["chosen"]["time_s"].get<double>() < late["chosen"]["time_s"].get<double>());
    CHECK(late["chosen"]["time_s"].get<double>() <= 0.090);
    double const waited = 0.090 - alone["chosen"]["time_s"].get<double>();
    CHECK(late["chosen"]["energy_J"].get<double>() < alone["chosen"]["energy_J"].get<double>() + 2 * 83.64 * waited);
    CHECK(frontier(folder, "p.csv --microbatches 4 --straggler 90ms").out.find("and waits until 0.090000 s, which is in the energy") != std::string::npos);
    CHECK(frontier(folder, "p.csv --microbatches 4 --straggler 90ms --deadline 90ms").exit_code == 2);
}

TEST_CASE("rheo frontier carries a long program over from a shorter one, with the same figures")
{
    temporary_folder const folder;
    write_profile(folder);
    auto const table = frontier(folder, "p.csv --microbatches 100");
    CHECK(table.exit_code == 0);
    CHECK(table.out.find("carried over from a shorter program in the same steady state") != std::string::npos);
    CHECK(table.out.find("proved by its dual flow") != std::string::npos);
    auto const whole = nlohmann::json::parse(frontier(folder, "p.csv --microbatches 100 --json").out);
    auto const least = whole["frontier"][0];
    CHECK(table.out.find(std::to_string(least["time_s"].get<double>()) + " ") != std::string::npos);
    auto const even = frontier(folder, "p.csv --microbatches 100 --schedule chimera");  // not for every number of microbatches
    CHECK(even.exit_code == 0);
}

TEST_CASE("throttled points, ranks of their own and rows without a clock go from the file to the frontier")
{
    temporary_folder const folder;
    std::string text = "rank,stage,instruction,frequency,time,energy,throttled\n";
    for (int rank = 0; rank < 2; ++rank) {
        auto const r = std::to_string(rank) + "," + std::to_string(rank);
        auto const slow = rank == 1 ? "3" : "2";  // the second device is slower
        text += r + ",forward,1500,0.001,1.2,1\n" + r + ",forward,1400,0.00" + slow + ",1,0\n" + r + ",forward,1000,0.004,0.7,0\n";
        text += r + ",backward,0,0.004,2,0\n";
    }
    folder.write("ranks.csv", text);
    auto const json = nlohmann::json::parse(frontier(folder, "ranks.csv --microbatches 2 --blocking-power 50W --json").out);
    // 1F1B: 0F0 1F0 1B0 1F1 1B1 0B1; nobody runs at the throttled clock of 1500 MHz, which would be shorter
    CHECK(json["highest_clocks"]["time_s"].get<double>() == Approx(0.002 + 0.003 + 0.004 + 0.003 + 0.004 + 0.004));
    for (auto const& row : json["chosen"]["clocks"]) {
        for (auto const& o : row) {
            auto const clock = o["clock_MHz"].get<double>();
            CHECK((clock == 1400.0 || clock == 1000.0 || (clock == 0.0 && o["instruction"].get<std::string>()[1] == 'B')));
        }
    }
}

TEST_CASE("rheo frontier answers each mistake with a sentence and its exit code")
{
    temporary_folder const folder;
    write_profile(folder);
    refused(frontier(folder, "none.csv --microbatches 2"), 4, "none.csv: this profile cannot be read");
    refused(frontier(folder, "p.csv --microbatches 2 --schedule 1f1c"), 2, "no schedule is called '1f1c'; the nearest known name is '1f1b'");
    refused(frontier(folder, "p.csv --microbatches 2 --unit 1x"), 2, "--unit is '1x', but it is a number like 0.1ms");
    refused(frontier(folder, "p.csv --microbatches 2 --deadline 10ms"), 3,
        "--deadline 10ms: no plan meets this deadline: at the highest clocks the iteration takes longer (0.018000 s)");
    folder.write("bad.csv", "stage,instruction,frequency,time,energy\n0,forward,1400,-1,1\n");
    refused(frontier(folder, "bad.csv --microbatches 2"), 4, "bad.csv, line 2: time is '-1', but a time is a positive number of seconds, at most 2000");
    CHECK(frontier(folder, "p.csv --microbatches 0").exit_code == 2);
    CHECK(frontier(folder, "p.csv --microbatches 2 --fit cubic").exit_code == 2);
}
