// SPDX-License-Identifier: Apache-2.0
// `rheo simulate` as its users start it: published accounts, the table for people, each refusal.
#include <filesystem>
#include <string>

#include <nlohmann/json.hpp>

#include "support/public_vectors.hpp"
#include "support/rheo_command.hpp"
#include "support/temporary_folder.hpp"

namespace {

constexpr auto steps = "model,samples_per_step,nodes,samples_per_s\nm,100,1,50\nm,100,2,100\nother,8,1,8\n";
constexpr auto policies = "model,policy,configure_ms,checkpoint_ms,checkpoint_every_steps\nm,replay,2000,0,0\nm,salvage,2000,0,0\n";
constexpr auto nodes = "0,add,a\n0,add,b\n60500,remove,a\n100000,remove,b\n";

void write_job(temporary_folder const& folder)
{
    folder.write("steps.csv", steps);
    folder.write("policies.csv", policies);
    folder.write("nodes.csv", nodes);
}

std::string refused(temporary_folder const& folder, std::string const& arguments)
{
    auto const shown = run_rheo(folder, "simulate " + arguments);
    CHECK(shown.exit_code == 2);
    CHECK(shown.out.empty());
    return shown.err;
}

}  // namespace

TEST_CASE("simulate_command: JSON has the published accounts")
{
    auto const text = test::read_vectors("goodput/expected.csv");
    if (text.empty()) {
        return;
    }
    test::vector_table const expected{text};
    auto const shared = std::filesystem::path{std::getenv("RHEO_SHARED")} / "vectors" / "goodput";
    temporary_folder const folder;
    auto const columns = test::split(text.substr(0, text.find('\n')), ',');
    for (auto const& line : expected.lines) {
        CAPTURE(line);
        auto const shown = run_rheo(folder, "simulate --steps-table " + (shared / "throughput.csv").string() + " --model " + expected.cell(line, "model") +
                                                " --policies " + (shared / "policies.csv").string() + " --policy " + expected.cell(line, "policy") +
                                                " --faults " + (shared / "traces" / (expected.cell(line, "trace") + ".csv")).string() + " --json");
        CAPTURE(shown.err);
        REQUIRE(shown.exit_code == 0);
        auto const rows = nlohmann::json::parse(shown.out).at("policies");
        REQUIRE(rows.size() == 1);
        CHECK(rows.front().size() == columns.size());
        for (auto const& column : columns) {
            CAPTURE(column);
            auto const& value = rows.front().at(column);
            CHECK((value.is_string() ? value.get<std::string>() : value.dump()) == expected.cell(line, column));
        }
    }
}

TEST_CASE("simulate_command: policies stand side by side")
{
    temporary_folder const folder;
    write_job(folder);
    auto const shown = run_rheo(folder, "simulate --steps-table steps.csv --model m --policies policies.csv --faults nodes.csv");
    CAPTURE(shown.err);
    CHECK(shown.exit_code == 0);
    CHECK(shown.out == R"(nodes: 2 nodes, 4 events in 0.03 h
m: steps on 1 to 2 nodes

                replay           salvage
  steps             31                31
  samples/s         31                31
  creating    45.000 s  45.0 %  45.000 s  45.0 %
  good        49.000 s  49.0 %  48.750 s  48.8 %
  lost         0.500 s   0.5 %   0.250 s   0.2 %
  recovery     4.000 s   4.0 %   4.000 s   4.0 %
  checkpoint   0.000 s   0.0 %   0.000 s   0.0 %
  halted       0.000 s   0.0 %   0.000 s   0.0 %
  unfinished   1.500 s   1.5 %   2.000 s   2.0 %
)");
}

TEST_CASE("simulate_command: what cannot be is refused")
{
    temporary_folder const folder;
    write_job(folder);
    folder.write("late.csv", "5,add,a\n4,remove,a\n");
    folder.write("holes.csv", "model,samples_per_step,nodes,samples_per_s\nm,1,1,1\nm,1,3,1\n");
    CHECK(refused(folder, "--steps-table steps.csv --policies policies.csv --faults nodes.csv") ==
          "rheo: steps.csv has 2 models: choose one with --model, for example 'm'\n");
    CHECK(refused(folder, "--steps-table steps.csv --model mm --policies policies.csv --faults nodes.csv") ==
          "rheo: --model: steps.csv has no model 'mm'; the nearest is 'm'\n");
    CHECK(refused(folder, "--steps-table steps.csv --model other --policies policies.csv --faults nodes.csv") == "rheo: policies.csv has no row for 'other'\n");
    CHECK(refused(folder, "--steps-table steps.csv --model m --policies policies.csv --policy checkpoint --faults nodes.csv") ==
          "rheo: --policy: policies.csv has no row for 'm' with checkpoint\n");
    CHECK(refused(folder, "--steps-table steps.csv --model m --policies policies.csv --faults late.csv") ==
          "rheo: late.csv, line 2: time 4 is before that of the event before it, 5; events come in the order of time, from 0 on\n");
    CHECK(refused(folder, "--steps-table holes.csv --policies policies.csv --faults nodes.csv") ==
          "rheo: holes.csv, line 3: 'm' has a row for 3 nodes, but none for 2; a table has no holes\n");
    CHECK(refused(folder, "--steps-table none.csv --policies policies.csv --faults nodes.csv") == "rheo: none.csv: this file cannot be read\n");
    CHECK(refused(folder, "--steps-table steps.csv --policies policies.csv --policy reply --faults nodes.csv").find("replay") != std::string::npos);
}
