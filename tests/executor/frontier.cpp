// SPDX-License-Identifier: Apache-2.0
// `rheo frontier` as its users start it: table, JSON, CSV, picture, header, and a sentence for each mistake.

#include <cstdlib>
#include <filesystem>
#include <string>

#include <sys/wait.h>

#include <nlohmann/json.hpp>

#include "catch.hpp"
#include "executor/temporary_folder.hpp"

namespace {

struct outcome {
    int exit_code;
    std::string out;
    std::string err;
};

outcome frontier(temporary_folder const& folder, std::string const& arguments)
{
    auto const program = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "rheo";
    REQUIRE(std::filesystem::exists(program));
    auto const command = "cd '" + folder.path.string() + "' && env -u OMPI_COMM_WORLD_RANK -u PMIX_RANK -u PMI_RANK timeout 60 '" + program.string()
        + "' frontier " + arguments + " >out 2>err </dev/null";
    int const status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, folder.read("out"), folder.read("err")};
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
