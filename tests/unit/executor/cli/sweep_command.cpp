// SPDX-License-Identifier: Apache-2.0
// `rheo sweep` as its users start it: a row for each point of the grid, the same bytes for any number of threads and after an interruption, each refusal.
#include <algorithm>
#include <filesystem>
#include <string>

#include "support/rheo_command.hpp"
#include "support/temporary_folder.hpp"
#include "unit/executor/cli/small_cluster.hpp"

namespace {

constexpr auto config = R"(schema = 1
model = { width = 64, heads = 4, blocks = 6, context = 64 }
train = { steps = 40, microbatches = 8, microbatch = { sequences = 2, tokens = 64 } }
plan = { failures = 1 }
)";
constexpr auto grid = R"(schema = 1
[cluster]
nodes = [2, 3]
level.rack.rate_gb_per_s = [0.001, 1]
[pipelines]
stages = [1, 2, 4]
[train]
microbatches = [8, 24]
)";

void write_sweep(temporary_folder const& folder)
{
    folder.write("job.toml", config);
    folder.write("cluster.toml", small_cluster::text);
    folder.write("grid.toml", grid);
}

std::string swept(temporary_folder const& folder, std::string const& arguments)
{
    auto const shown = run_rheo(folder, "sweep job.toml --cluster cluster.toml " + arguments);
    CAPTURE(shown.err);
    REQUIRE(shown.exit_code == 0);
    return shown.out;
}

std::string refused(temporary_folder const& folder, std::string const& arguments)
{
    auto const shown = run_rheo(folder, "sweep job.toml --cluster cluster.toml " + arguments);
    CHECK(shown.exit_code == 2);
    CHECK(shown.out.empty());
    return shown.err;
}

}  // namespace

TEST_CASE("sweep_command: threads and interruptions change nothing")
{
    temporary_folder const folder;
    write_sweep(folder);
    auto const out = swept(folder, "--grid grid.toml --csv one.csv --svg one.svg --threads 1");
    auto const rows = folder.read("one.csv");
    CHECK(std::count(rows.begin(), rows.end(), '\n') == 25);
    CHECK(rows.starts_with(
        "sweep,cluster.nodes,cluster.level.rack.rate_gb_per_s,pipelines.stages,train.microbatches,feasible,ranks,pipelines,planned_s,step_s,"));
    CHECK(out.starts_with("job.toml on cluster.toml: 24 points, 20 of them feasible\n"));
    for (auto const* const part : {"nodes", "rack.rate_gb_per_s", "J/token", "What binds, in points: ", "links of rack", "compute"}) {
        CHECK(out.find(part) != std::string::npos);
    }
    CHECK(folder.read("one.svg").find("tokens per joule") != std::string::npos);
    CHECK(swept(folder, "--grid grid.toml --csv four.csv --svg four.svg --threads 4") == out);
    CHECK(folder.read("four.csv") == rows);
    CHECK(folder.read("four.svg") == folder.read("one.svg"));
    for (auto const cut : {rows.find('\n') + 1, rows.size() / 2, rows.size() - 1}) {  // also in the middle of a row
        folder.write("cut.csv", rows.substr(0, cut));
        CHECK(swept(folder, "--grid grid.toml --csv cut.csv") == out);
        CHECK(folder.read("cut.csv") == rows);
    }
    CHECK(swept(folder, "--grid grid.toml --csv one.csv") == out);  // all rows are there
}

TEST_CASE("sweep_command: a clock profile gives times and joules")
{
    temporary_folder const folder;
    write_sweep(folder);
    folder.write("two.toml", "schema = 1\n[pipelines]\nstages = [2]\n[power]\ndeadline_s = [0.001, 10]\n");
    auto const write_clocks = [&](std::string const& time) {
        std::string rows = "stage,instruction,frequency,time,energy\n0,blocking,0,1,90\n";
        for (int layer = 0; layer < 8; ++layer) {
            for (auto const* const kind : {"forward", "backward"}) {
                rows += std::to_string(layer) + "," + kind + ",1400," + time + ",0.6\n" + std::to_string(layer) + "," + kind + ",1000,0.0025,0.5\n";
            }
        }
        folder.write("clocks.csv", rows);
    };
    write_clocks("0.002");
    std::string const arguments = "--grid two.toml --csv rows.csv --set power.device=emulated --set power.clock_profile=clocks.csv";
    auto const out = swept(folder, arguments);
    CHECK(out.find("2 of them feasible") != std::string::npos);
    auto const rows = folder.read("rows.csv");
    CHECK(swept(folder, arguments) == out);
    CHECK(folder.read("rows.csv") == rows);  // continued
    std::filesystem::remove(folder.path / "rows.csv");
    write_clocks("0.001");
    CHECK(swept(folder, arguments) != out);
    CHECK(folder.read("rows.csv") != rows);
    folder.write("clocks.csv", "stage,instruction,frequency,time,energy\n0,forward,1400,0.002,0.6\n");
    std::filesystem::remove(folder.path / "rows.csv");
    CHECK(swept(folder, arguments).find("0 of them feasible") != std::string::npos);
}

TEST_CASE("sweep_command: infeasible points say why")
{
    temporary_folder const folder;
    write_sweep(folder);
    swept(folder, "--grid grid.toml --csv rows.csv");
    auto const rows = folder.read("rows.csv");
    CHECK(rows.find(",3,0.001,4,8,0,,,,,,,,,,,,,6 ranks are no equal pipelines: 4 stages of 1 make 4\n") != std::string::npos);
    folder.write("small.toml", "schema = 1\n[cluster]\nmemory_gib = [0.0001, 1]\n");
    auto const out = swept(folder, "--grid small.toml --csv small.csv");
    CHECK(out.starts_with("job.toml on cluster.toml: 2 points, 1 of them feasible\n"));
    CHECK(folder.read("small.csv").find(",0.0001,0,,,,,,,,,,,,device memory,no pipeline of at most 6 ranks keeps within plan.memory_mib") != std::string::npos);
    folder.write("none.toml", "schema = 1\n[cluster]\nmemory_gib = [0.0001]\n");
    CHECK(swept(folder, "--grid none.toml").find("No point is feasible") != std::string::npos);
}

TEST_CASE("sweep_command: pipelines follow from the devices")
{
    temporary_folder const folder;
    write_sweep(folder);
    folder.write("shapes.toml", "schema = 1\n[pipelines]\ncount = [1, 2, 4, 1000000]\nstages = [1, 3, 1000000]\n");
    swept(folder, "--grid shapes.toml --csv shapes.csv --no-binds");
    auto const rows = folder.read("shapes.csv");
    CHECK(rows.find(",2,3,1,6,3 + 3,") != std::string::npos);
    CHECK(rows.find(",4,1,1,4,1 + 1 + 1 + 1,") != std::string::npos);
    CHECK(rows.find("4 pipelines of 3 stages of 1 ranks take 12 ranks; the cluster has 6 beside 0 spares\n") != std::string::npos);
    CHECK(rows.find("1000000 pipelines of 1000000 stages of 1 ranks take 1000000000000 ranks;") != std::string::npos);
    auto const alone = run_rheo(folder, "sweep job.toml --grid shapes.toml --csv alone.csv --no-binds");  // on as many processes as it takes
    CHECK(alone.exit_code == 0);
    CHECK(folder.read("alone.csv").find(",4,3,1,12,3 + 3 + 3 + 3,") != std::string::npos);
    CHECK(folder.read("alone.csv").find("the pipelines take 1000000000000 ranks; a machine has at most 1048576\n") != std::string::npos);
    folder.write("count.toml", "schema = 1\n[pipelines]\ncount = [2, 4]\n[plan]\nspares = [0, 100]\n");
    swept(folder, "--grid count.toml --csv count.csv --no-binds");
    CHECK(folder.read("count.csv").find(",2,0,1,6,3 + 3,") != std::string::npos);
    CHECK(folder.read("count.csv").find(",4,0,0,,,,,,,,,,,,,6 ranks are no equal pipelines: 4 pipelines of ranks that share stages by 1\n") !=
          std::string::npos);
    CHECK(folder.read("count.csv").find(",2,100,0,") != std::string::npos);
}

TEST_CASE("sweep_command: a cluster of the config can vary, too")
{
    temporary_folder const folder;
    write_sweep(folder);
    folder.write("memory.toml", "schema = 1\n[cluster]\nmemory_gib = [0.0001, 1]\n");
    auto const given = run_rheo(folder, "sweep job.toml --grid memory.toml --set plan.cluster='cluster.toml'");
    CHECK(given.out.starts_with("job.toml on cluster.toml: 2 points, 1 of them feasible\n"));
}

TEST_CASE("sweep_command: goodput where the time between losses varies")
{
    temporary_folder const folder;
    write_sweep(folder);
    folder.write("losses.toml", "schema = 1\n[plan]\nmtbf_h = [0.01, 1.0, 1000.0]\n");
    auto const out = swept(folder, "--grid losses.toml --set plan.pipelines=[2,2,2] --no-binds");
    CHECK(out.find("goodput") != std::string::npos);
    CHECK(out.find("binds") == std::string::npos);
    CHECK(swept(folder, "--grid grid.toml").find("goodput") == std::string::npos);
    CHECK(swept(folder, "--grid grid.toml --goodput").find("goodput") != std::string::npos);
}

TEST_CASE("sweep_command: each refusal is a sentence")
{
    temporary_folder const folder;
    write_sweep(folder);
    auto const with = [&](std::string const& lines) {
        folder.write("g.toml", "schema = 1\n" + lines);
        return refused(folder, "--grid g.toml --csv no.csv");
    };
    CHECK(with("[cluster]\nnodse = [1]\n") == "rheo: g.toml:3: unknown key 'cluster.nodse'; the nearest known one is cluster.nodes\n");
    CHECK(with("[cluster.level.rakc]\nlatency_us = [1]\n") ==
          "rheo: g.toml:3: unknown key 'cluster.level.rakc.latency_us'; the nearest known one is cluster.level.rack.latency_us\n");
    CHECK(with("[cluster]\ncompute_tflops = [0]\n") == "rheo: g.toml:3: cluster.compute_tflops must hold numbers above 0 and at most 1e+09, not 0\n");
    CHECK(with("[pipelines]\nstages = [1.5]\n") == "rheo: g.toml:3: pipelines.stages must hold whole numbers from 1 to 1048576, not 1.5\n");
    CHECK(with("[train]\nmicrobatchs = [8]\n").find("rheo: g.toml:3: train.microbatchs=8: unknown key") == 0);
    CHECK(with("[plan]\ncluster = [\"a.toml\"]\n") ==
          "rheo: g.toml:3: plan.cluster cannot vary; expected values of its keys in [cluster], or a sweep for each file\n");
    CHECK_FALSE(std::filesystem::exists(folder.path / "no.csv"));
    swept(folder, "--grid grid.toml --csv rows.csv");
    CHECK(refused(folder, "--grid grid.toml --csv rows.csv --network free") ==
          "rheo: rows.csv:2: is a row of another sweep: its config, cluster, grid or options were others; expected the rows of this sweep, or no such file\n");
    folder.write("other.toml", "schema = 1\n[pipelines]\nstages = [1]\n");
    CHECK(refused(folder, "--grid other.toml --csv rows.csv") ==
          "rheo: rows.csv:1: has other columns than this sweep; expected the rows of this sweep, or no such file\n");
    CHECK(refused(folder, "--grid none.toml") == "rheo: none.toml: this file cannot be read\n");
}
