// SPDX-License-Identifier: Apache-2.0
// `rheo frontier` as its users start it: table, JSON, CSV, picture, header, and a sentence for each mistake.

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>

#include <sys/wait.h>

#include <nlohmann/json.hpp>

#include "support/catch.hpp"
#include "support/rheo_command.hpp"
#include "support/temporary_folder.hpp"

namespace {

outcome frontier(temporary_folder const& folder, std::string const& arguments) { return run_rheo(folder, "frontier " + arguments); }

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

void refused(outcome const& result, int exit_code, std::string const& message)
{
    CHECK(result.exit_code == exit_code);
    CHECK(result.err == "rheo: " + message + "\n");
    CHECK(result.out.empty());
}

}  // namespace

TEST_CASE("frontier: prints table, JSON and CSV")
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

TEST_CASE("frontier: rheo frontier writes a picture and a header")
{
    temporary_folder const folder;
    write_profile(folder);
    auto const result = frontier(folder, "p.csv --microbatches 3 --svg f.svg --emit-header plan.hpp");
    CHECK(result.exit_code == 0);
    CHECK(folder.read("f.svg").starts_with("<svg"));
    CHECK(folder.read("plan.hpp").find("inline constexpr rheo::clock_plan<0x") != std::string::npos);
    CHECK(frontier(folder, "p.csv --microbatches 3 --svg none/f.svg").exit_code == 5);
}

TEST_CASE("frontier: templates and clocks per survivor count")
{
    temporary_folder const folder;
    std::string text = "stage,instruction,frequency,time,energy\n";
    for (int layer = 0; layer < 6; ++layer) {
        for (std::string const kind : {"forward", "backward"}) {
            double const work = kind == "forward" ? 1.0 : 2.0;
            for (int step = 0; step < 3; ++step) {
                text += std::to_string(layer) + "," + kind + "," + std::to_string(1400 - 200 * step) + "," + std::to_string(work * (0.010 + 0.002 * step)) +
                        "," + std::to_string(work * (4.0 - 0.6 * step)) + "\n";
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
        if (row.contains("error")) {
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

TEST_CASE("frontier: schedules with split backwards")
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

TEST_CASE("frontier: waiting for a straggler allows slower clocks")
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

TEST_CASE("frontier: a long program continues a short one")
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

TEST_CASE("frontier: throttled points, per-rank rows, no clocks")
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
    // 1F1B: 0F0 1F0 1B0 1F1 1B1 0B1; no rank runs at the throttled clock of 1500 MHz, which would be shorter
    CHECK(json["highest_clocks"]["time_s"].get<double>() == Approx(0.002 + 0.003 + 0.004 + 0.003 + 0.004 + 0.004));
    for (auto const& row : json["chosen"]["clocks"]) {
        for (auto const& o : row) {
            auto const clock = o["clock_MHz"].get<double>();
            CHECK((clock == 1400.0 || clock == 1000.0 || (clock == 0.0 && o["instruction"].get<std::string>()[1] == 'B')));
        }
    }
}

TEST_CASE("frontier: too many microbatches: the limit is given")
{
    temporary_folder const folder;
    folder.write("long.csv", "stage,instruction,frequency,time,energy\n0,forward,1400,1,200\n0,forward,700,1.5,150\n0,backward,0,2,400\n");
    refused(frontier(folder, "long.csv --microbatches 800"), 2,
            "--microbatches 800 at units of 1e-06 s: the slowest iteration takes 2800 s, more units than can be counted; choose fewer microbatches or a "
            "--unit of 2us or more");
    CHECK(frontier(folder, "long.csv --microbatches 100 --unit 1ms").exit_code == 0);
}

TEST_CASE("frontier: rows come at each unit that was asked for")
{
    temporary_folder const folder;
    write_profile(folder);
    auto const lines = [](std::string const& text) { return std::count(text.begin(), text.end(), '\n'); };
    std::string const common = "p.csv --microbatches 2 --blocking-power 50W --csv";
    CHECK(lines(frontier(folder, common).out) == 29);  // each millisecond: a heading, 45 to 18 ms
    CHECK(lines(frontier(folder, common + " --unit 1ms").out) == 29);
    CHECK(lines(frontier(folder, common + " --unit 0.1ms").out) == 272);
}

namespace {

/// Three stages at five clocks of uneven distance, with a high fixed power; the forward throttles at the highest clock.
void write_coarse_profile(temporary_folder const& folder)
{
    std::string text = "stage,instruction,frequency,time,energy\n";
    for (int stage = 0; stage < 3; ++stage) {
        for (std::string const kind : {"forward", "backward"}) {
            double const work = (kind == "forward" ? 0.02 : 0.041) * (1.0 + 0.04 * stage);
            for (double const clock : {1410.0, 1395.0, 1200.0, 885.0, 810.0}) {
                double const share = clock / 1410.0;
                double const time = clock == 1410.0 && kind == "forward" ? work * 1.02 : work * (0.2 + 0.8 / share);
                text += std::to_string(stage) + "," + kind + "," + std::to_string(clock) + "," + std::to_string(time) + "," +
                        std::to_string(time * (140.0 + 160.0 * share * share)) + "\n";
            }
        }
    }
    folder.write("coarse.csv", text);
}

double energy_at(temporary_folder const& folder, std::string const& arguments)
{
    return nlohmann::json::parse(frontier(folder, "coarse.csv --microbatches 10 --json " + arguments).out)["chosen"]["energy_J"].get<double>();
}

}  // namespace

TEST_CASE("frontier: longer deadline never needs more energy")
{
    temporary_folder const folder;
    write_coarse_profile(folder);
    double last = 1e300;
    double last_with_rule = 1e300;
    for (int k = 0; k < 12; ++k) {
        auto const deadline = " --deadline " + std::to_string(0.85 + 0.013 * k) + "s";
        auto const hull = nlohmann::json::parse(frontier(folder, "coarse.csv --microbatches 10 --json" + deadline).out)["chosen"];
        auto const fitted = nlohmann::json::parse(frontier(folder, "coarse.csv --microbatches 10 --json --fit exponential" + deadline).out)["chosen"];
        auto const energy = hull["energy_J"].get<double>();
        CHECK(energy <= last);
        last = energy;
        CHECK(energy <= fitted["energy_J"].get<double>());
        for (auto const& chosen : {hull, fitted}) {
            CHECK(chosen["bound_J"].get<double>() <= energy);
            CHECK(chosen["rounding_loss_J"].get<double>() == Approx(chosen["energy_J"].get<double>() - chosen["bound_J"].get<double>()).margin(1e-9));
        }
        CHECK(hull["bound_J"].get<double>() == Approx(fitted["bound_J"].get<double>()).epsilon(1e-12));
        auto const with_rule = energy_at(folder, deadline + " --switch-latency 1ms --dwell 30ms");
        CHECK(with_rule <= last_with_rule);
        last_with_rule = with_rule;
    }
    auto const table = frontier(folder, "coarse.csv --microbatches 10 --fit exponential").out;
    CHECK(table.find("fitted model J") != std::string::npos);
    CHECK(table.find("the fitted model bounds nothing") != std::string::npos);
}

TEST_CASE("frontier: savings against two baselines")
{
    temporary_folder const folder;
    write_coarse_profile(folder);
    auto const json = nlohmann::json::parse(frontier(folder, "coarse.csv --microbatches 10 --blocking-power 60W --json --deadline 1.2s").out);
    auto const& highest = json["highest_clocks"];
    auto const& fastest = json["fastest_clocks"];
    CHECK(fastest["time_s"].get<double>() < highest["time_s"].get<double>());  // forwards throttle at 1410 MHz
    auto const less = [&](nlohmann::json const& than) { return 100.0 * (1.0 - json["chosen"]["energy_J"].get<double>() / than["energy_J"].get<double>()); };
    CHECK(json["chosen"]["less_than_highest_percent"].get<double>() == Approx(less(highest)));
    CHECK(json["chosen"]["less_than_fastest_percent"].get<double>() == Approx(less(fastest)));
    double computing = 0.0;
    double busy = 0.0;
    for (int stage = 0; stage < 3; ++stage) {  // by hand: what all draw at 1410 MHz, and while they wait until their own end
        double const scale = 1.0 + 0.04 * stage;
        computing += 10 * (std::stod(std::to_string(0.02 * scale * 1.02 * 300.0)) + std::stod(std::to_string(0.041 * scale * 300.0)));
        busy += 10 * (std::stod(std::to_string(0.02 * scale * 1.02)) + std::stod(std::to_string(0.041 * scale)));
    }
    auto const end = highest["time_s"].get<double>();
    CHECK(highest["energy_J"].get<double>() == Approx(computing + 60.0 * (3 * end - busy)).epsilon(1e-4));
    auto const table = frontier(folder, "coarse.csv --microbatches 10");
    CHECK(table.out.find("all at the highest clock") != std::string::npos);
    CHECK(table.out.find("each at its fastest clock") != std::string::npos);
}

TEST_CASE("frontier: each mistake has a message and exit code")
{
    temporary_folder const folder;
    write_profile(folder);
    refused(frontier(folder, "none.csv --microbatches 2"), 4, "none.csv: this profile cannot be read");
    refused(frontier(folder, "p.csv --microbatches 2 --schedule 1f1c"), 2, "no schedule is called '1f1c'; the nearest known name is '1f1b'");
    refused(frontier(folder, "p.csv --microbatches 2 --unit 1x"), 2, "--unit is '1x', but it is a number like 0.1ms");
    refused(frontier(folder, "p.csv --microbatches 2 --deadline 10ms"), 3,
            "--deadline 10ms: no plan meets this deadline: with each computation at its fastest clock the iteration takes longer (0.018000 s)");
    refused(frontier(folder, "p.csv --microbatches 2 --unit 1s --fit exponential"), 2,
            "--unit 1s is longer than the shortest computation of p.csv, which takes 0.002 s: choose at most that");
    refused(frontier(folder, "p.csv --microbatches 2 --unit 1s"), 2,
            "--unit 1s is longer than the shortest computation of p.csv, which takes 0.002 s: choose at most that");
    folder.write("bad.csv", "stage,instruction,frequency,time,energy\n0,forward,1400,-1,1\n");
    refused(frontier(folder, "bad.csv --microbatches 2"), 4, "bad.csv, line 2: time is '-1', but a time is a positive number of seconds, at most 2000");
    CHECK(frontier(folder, "p.csv --microbatches 0").exit_code == 2);
    CHECK(frontier(folder, "p.csv --microbatches 2 --fit cubic").exit_code == 2);
}
