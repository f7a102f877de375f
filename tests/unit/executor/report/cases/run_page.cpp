// SPDX-License-Identifier: Apache-2.0
// The page about a run: of a folder that `rheo train` left, of one that was killed, of one that is none.
#include "executor/report/run_page.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "executor/records/records.hpp"
#include "report_of.hpp"
#include "rheo/units/exit_error.hpp"
#include "support/catch.hpp"

using namespace rheo;

TEST_CASE("report: the page of a run has all its parts")
{
    folder_with_run const folder{"a <run>"};
    auto const run = folder.of("a <run>");
    auto const page = run_page(run);
    CHECK(page["title"] == run);
    CHECK(names_of(page) == std::vector<std::string>{"", "Training", "A step as planned and as measured", "Recoveries", "Memory per rank", "Texts"});
    auto const text = page.dump();
    for (auto const* part : {"all 4 steps are committed (exit code 0)", "Planned: ", "Measured: ", "No rank was lost.", " MiB", "microbatches = 2", "4 of 4"}) {
        CAPTURE(part);
        CHECK(has(text, part));
    }
    auto const& loss = block_of(page, "Training", "curves");
    CHECK(loss["curves"][0]["x"] == page_block{1, 2, 3, 4});  // steps as the progress line counts them
    CHECK(loss["curves"][0]["y"].size() == 4);
    // Both steps are drawn over the same time, though one took longer, and zoom together.
    auto const& beside = block_of(page, "A step as planned and as measured", "beside");
    auto const& planned = beside["parts"][0][1];
    auto const& measured = beside["parts"][1][1];
    CHECK(planned["length"] == measured["length"]);
    CHECK(planned["group"] == measured["group"]);
    CHECK_FALSE(planned["boxes"].empty());
    CHECK_FALSE(measured["boxes"].empty());
}

TEST_CASE("report: memory is compared with the plan of the same tensors")
{
    folder_with_run const folder{"run"};
    auto const page = run_page(folder.of("run"));
    auto const& bars = block_of(page, "Memory per rank", "bars");
    REQUIRE(bars["rows"].size() == 1);
    auto const& table = block_of(page, "Memory per rank", "table");
    auto const& row = table["rows"][0];
    for (std::size_t i = 0; i < table["columns"].size(); ++i) {
        CAPTURE(i, table["columns"][i]["name"]);
        CHECK((i < 2 || has(row[i].get<std::string>(), " MiB") || row[i] == "not known"));
    }
    CHECK(row[2] == row[3]);  // what the plan says is what a step holds
    CHECK(bars["rows"][0]["bars"][0]["size"] == bars["rows"][0]["bars"][1]["size"]);
    CHECK(row[4] != "not known");
    CHECK(bars["rows"][0]["bars"][0]["size"].get<std::int64_t>() > 0);
}

TEST_CASE("report: each part of the memory is measured as planned")
{
    folder_with_run const folder{"run"};
    auto const page = run_page(folder.of("run"));
    auto const tables = sections_of(page, "Memory per rank")["blocks"];
    auto const& parts = tables[2];  // after the bars and the table of ranks
    REQUIRE(parts["rows"].size() == 7);
    for (auto const& part : parts["rows"]) {
        CAPTURE(part.dump());
        CHECK(part[1] == part[2]);
    }
    CHECK(parts["rows"][0][0] == "master parameters");
    // A part that differs is shown as it is, and a rank that left no measurement is not compared.
    auto rank = nlohmann::ordered_json::parse(folder.read("run/ranks/0.json"));
    CHECK(rank["planned_moments_bytes"] == rank["measured_moments_bytes"]);
    rank["measured_moments_bytes"] = rank["measured_moments_bytes"].get<std::int64_t>() + (std::int64_t{8} << 20);
    folder.write("run/ranks/0.json", rank.dump());
    auto const moments = sections_of(run_page(folder.of("run")), "Memory per rank")["blocks"][2]["rows"][1];
    CHECK(moments[1] != moments[2]);
    folder.write("run/ranks/0.json", R"({"rank": 0, "pid": 1, "host": "h"})");
    auto const row = block_of(run_page(folder.of("run")), "Memory per rank", "table")["rows"][0];
    CHECK(has(row[2].get<std::string>(), " MiB"));
    CHECK(row[3] == "not known");
    CHECK(row[4] == "not known");
}

TEST_CASE("report: repeated steps replace the earlier ones")
{
    folder_with_run const folder{"run"};
    auto const metrics = folder.read("run/metrics.jsonl");
    auto const curves_with = [&](std::string const& lines) {
        folder.write("run/metrics.jsonl", lines);
        return sections_of(run_page(folder.of("run")), "Training").dump();
    };
    std::string const again = "{\"kind\":\"step\",\"step\":1,\"loss\":1.5,\"tokens_per_s\":10.0}\n";
    auto const second = metrics.find("\"kind\":\"step\"", metrics.find("\"kind\":\"step\"") + 1);
    CHECK(curves_with(metrics + again) == curves_with(metrics.substr(0, metrics.rfind('\n', second) + 1) + again));
}

TEST_CASE("report: a killed run has a page")
{
    folder_with_run const folder{"run"};
    auto const run = folder.of("run");
    std::filesystem::remove(run + "/report.json");
    folder.write("run/metrics.jsonl", folder.read("run/metrics.jsonl") + "{\"kind\": \"st");  // torn
    CHECK(has(run_page(run).dump(), "no report: the run is not over, or it was killed"));
    std::filesystem::remove_all(run + "/trace");
    std::filesystem::remove(run + "/plan.json");
    CHECK(has(run_page(run).dump(), "The folder holds no trace of a whole step."));
    std::filesystem::create_directories(run + "/trace");
    folder.write("run/trace/rank-0.jsonl", "{}\n");
    CHECK(has(run_page(run).dump(), "rank-0.jsonl': line 1, column 1: expected"));
}

TEST_CASE("report: a damaged record is an error with its place")
{
    folder_with_run const folder{"run"};
    auto const run = folder.of("run");
    auto const metrics = folder.read("run/metrics.jsonl");
    auto const lines = std::count(metrics.begin(), metrics.end(), '\n');
    folder.write("run/metrics.jsonl", metrics + "\n" + R"({"kind":"step","step":"five","loss":2.5})" + "\n");
    auto const refused = folder.rheo("report run");
    CHECK(refused.exit_code == 4);
    CHECK(refused.err ==
          "rheo: 'run/metrics.jsonl', line " + std::to_string(lines + 2) + " has a 'step' that is not a whole number from 0 to 9007199254740992\n");
    folder.write("run/metrics.jsonl", metrics);
    folder.write("run/report.json", R"({"exit_code": "0"})");
    CHECK_THROWS_WITH(run_page(run), "'" + run + "/report.json' has a 'exit_code' that is not a whole number from 0 to 9007199254740992");
    folder.write("run/report.json", "[");
    CHECK_THROWS_WITH(run_page(run), "'" + run + "/report.json' is not JSON: byte 2 of 1 is not what JSON has there");
    std::filesystem::remove(run + "/report.json");
    folder.write("run/ranks/0.json", R"({"rank":0,"host":7})");
    CHECK_THROWS_WITH(run_page(run), "'" + run + "/ranks/0.json' has a 'host' that is not a text");
}

TEST_CASE("report: the command writes the page or an error")
{
    folder_with_run const folder{"a <run>"};
    auto const written = folder.rheo("report 'a <run>'");
    CHECK(written.exit_code == 0);
    CHECK(written.out == "a <run>/report.html\n");
    CHECK(has(folder.read("a <run>/report.html"), "</html>"));
    CHECK(folder.rheo("report 'a <run>/'").out == "a <run>/report.html\n");
    CHECK(folder.rheo("report 'a <run>' --out page.html").out == "page.html\n");
    CHECK(folder.rheo("report 'a <run>' --out none/page.html").exit_code == 5);
    CHECK(folder.rheo("report none").exit_code == 5);
    CHECK_THROWS_AS(run_page(folder.path.string()), exit_error);
}
