// SPDX-License-Identifier: Apache-2.0
// Several runs on one page: equal ones, one with another seed, one that cannot be read.
#include "executor/report/runs_page.hpp"

#include <filesystem>
#include <utility>

#include "report_of.hpp"
#include "support/catch.hpp"

using namespace rheo;

namespace {

/// Two runs that differ by their seed: trained once, because a training starts a process.
trained_folder const& trained()
{
    static trained_folder const folder;
    static bool const is_trained = [] {
        folder.train("a");
        folder.train("c", "--set train.seed=2");
        return true;
    }();
    CHECK(is_trained);
    return folder;
}

/// Three runs: two alike, one with another seed.
struct three_runs : trained_folder {
    three_runs()
    {
        std::filesystem::create_directory(path / "runs");
        for (auto const& [from, to] : {std::pair{"a", "a"}, std::pair{"a", "b"}, std::pair{"c", "c"}}) {
            std::filesystem::copy(trained().path / from, path / "runs" / to, std::filesystem::copy_options::recursive);
        }
    }

    std::vector<std::string> all() const { return {of("runs/a"), of("runs/b"), of("runs/c")}; }
};

}  // namespace

TEST_CASE("report: several runs are compared")
{
    three_runs const folder;
    CHECK(folder.rheo("report runs/a").exit_code == 0);  // its page is there to link to
    auto const [page, errors, compared] = runs_page(folder.all(), folder.of("runs/runs.html"));
    CHECK(errors.empty());
    CHECK(compared == 3);
    CHECK(names_of(page) == std::vector<std::string>{"Runs", "Curves", "Config"});

    auto const& table = block_of(page, "Runs", "table");
    REQUIRE(table["rows"].size() == 3);
    constexpr std::size_t digest = 5;
    CHECK(table["columns"][digest]["name"] == "digest");
    CHECK(table["rows"][0][0]["text"] == "a");
    CHECK(table["rows"][0][0]["to"] == "a/report.html");
    CHECK(table["rows"][1][0] == "b");
    CHECK(table["rows"][0][1]["text"] == "all 4 steps are committed (exit code 0)");
    CHECK(table["rows"][0][2] == "4 of 4");
    CHECK(table["rows"][0][digest] == table["rows"][1][digest]);
    CHECK(table["rows"][0][digest] != table["rows"][2][digest]);
    CHECK(block_of(page, "Runs", "note")["text"] == "The 3 known final states have 2 different digests.");

    auto const& loss = block_of(page, "Curves", "curves");
    CHECK(loss["name"] == "Loss, nats per token");
    REQUIRE(loss["curves"].size() == 3);
    CHECK(loss["curves"][0]["y"] == loss["curves"][1]["y"]);
    CHECK(loss["curves"][0]["y"] != loss["curves"][2]["y"]);

    auto const& config = block_of(page, "Config", "table");
    REQUIRE(config["rows"].size() == 1);
    CHECK(config["rows"][0].dump() == R"(["train.seed",{"text":"1","differs":false},{"text":"1","differs":false},{"text":"2","differs":true}])");
}

TEST_CASE("report: equal runs have one digest and no other config")
{
    three_runs const folder;
    std::vector<std::string> const both{folder.of("runs/a"), folder.of("runs/b")};
    auto const page = runs_page(both, folder.of("runs.html")).data;
    CHECK(block_of(page, "Runs", "note")["text"] == "The 2 known final states have the same digest: they are equal, bit by bit.");
    CHECK(has(block_of(page, "Config", "note")["text"].get<std::string>(), "The configs are equal: "));
}

TEST_CASE("report: a run that can't be read is left out with its error")
{
    three_runs const folder;
    folder.write("runs/b/metrics.jsonl", "{\"kind\":\"step\",\"step\":\"five\"}\n");
    std::filesystem::remove(folder.of("runs/c") + "/report.json");
    auto const [page, errors, compared] = runs_page(folder.all(), folder.of("runs.html"));
    CHECK(compared == 2);
    REQUIRE(errors.size() == 1);
    CHECK(errors[0] == "'" + folder.of("runs/b") + "/metrics.jsonl', line 1 has a 'step' that is not a whole number from 0 to 9007199254740992");
    auto const& note = block_of(page, "", "note");
    CHECK(note["text"] == "Left out: " + errors[0] + ".");
    CHECK(note["bad"] == true);
    auto const& table = block_of(page, "Runs", "table");
    CHECK(table["rows"][1][0] == "c");
    CHECK(table["rows"][1][1].dump() == R"({"text":"no report: the run is not over, or it was killed","bad":true})");
}

TEST_CASE("report: runs are the folders given, or those inside")
{
    three_runs const folder;
    auto const in_order = folder.all();
    std::vector<std::string> const of_folder{folder.of("runs")};
    CHECK(runs_in(of_folder) == in_order);
    std::vector<std::string> const twice{folder.of("runs/c") + "/", folder.of("runs")};
    CHECK(runs_in(twice) == std::vector<std::string>{folder.of("runs/c"), folder.of("runs/a"), folder.of("runs/b")});
    std::vector<std::string> const none{folder.of("none"), folder.path.string()};
    CHECK(runs_in(none) == none);
}

TEST_CASE("report: the command compares runs")
{
    three_runs const folder;
    auto const compared = folder.rheo("report runs");
    CHECK(compared.exit_code == 0);
    CHECK(compared.out == "runs/runs.html\n");
    CHECK(has(folder.read("runs/runs.html"), "</html>"));
    CHECK(folder.rheo("report runs/a runs/c").out == "runs.html\n");
    CHECK(folder.rheo("report runs/a runs/c --out ac.html").out == "ac.html\n");

    auto const partly = folder.rheo("report runs/a runs/none --out partly.html");
    CHECK(partly.exit_code == 4);
    CHECK(partly.out == "partly.html\n");
    CHECK(partly.err == "rheo: 'runs/none' is not the folder of a run: it has no config.toml with metrics.jsonl\n");
    auto const nothing = folder.rheo("report none more --out nothing.html");
    CHECK(nothing.exit_code == 4);
    CHECK(nothing.out.empty());
    CHECK_FALSE(std::filesystem::exists(folder.path / "nothing.html"));
    CHECK(folder.rheo("report").exit_code == 2);
}
