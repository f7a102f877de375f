// SPDX-License-Identifier: Apache-2.0
// The page about a run: of a folder that `rheo train` left, of one that was killed, of one that is none.
#include "executor/report/html_report.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "executor/records/records.hpp"
#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

using namespace rheo;

namespace {

bool has(std::string const& text, std::string const& what) { return text.find(what) != text.npos; }

std::size_t pictures(std::string const& text)
{
    std::size_t count = 0;
    for (auto at = text.find("<svg"); at != text.npos; at = text.find("<svg", at + 1)) {
        ++count;
    }
    return count;
}

}  // namespace

TEST_CASE("html_report: page is offline and complete, also killed")
{
    temporary_folder const folder;
    folder.write("text", std::string(3000, 'a') + "bcdefgh");
    folder.write("c.toml",
                 "schema = 1\n[model]\ncontext = 8\nwidth = 8\nheads = 2\nblocks = 1\n[data]\npaths = [\"text\"]\n[train]\nsteps = 4\n"
                 "microbatches = 2\nmicrobatch = { sequences = 1, tokens = 8 }\n[plan]\nfailures = 0\n");
    auto const program = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "rheo";
    auto const start = "cd '" + folder.path.string() + "' && env -u OMPI_COMM_WORLD_RANK -u PMIX_RANK -u PMI_RANK timeout 60 '" + program.string() + "' ";
    REQUIRE(std::system((start + "train c.toml --json --set run.folder='a <run>' >out").c_str()) == 0);
    auto const run = (folder.path / "a <run>").string();
    auto const page = html_report(run);
    for (auto const* part : {"all 4 steps are committed", "<h2>Loss</h2>", "<h2>Tokens per second</h2>", "A step as planned and as measured",
                             "Planned: ", "No rank was lost.", "<h2>Memory per rank</h2>", "MiB", "a &lt;run&gt;", "microbatches = 2"}) {
        CAPTURE(part);
        CHECK(has(page, part));
    }
    CHECK(pictures(page) == 4);
    // Both steps are drawn equally wide and over the same time, though one took longer.
    auto const pair = page.substr(page.find("<div class=\"pair\">"));
    auto const planned = pair.substr(0, pair.find("Measured: "));
    auto const measured = pair.substr(planned.size(), pair.find("<h2>") - planned.size());
    REQUIRE(pictures(planned) == 1);
    REQUIRE(pictures(measured) == 1);
    auto const length_of_axis = [](std::string const& part) {
        auto const last = part.rfind("text-anchor=\"end\"");
        return part.substr(part.find('>', last), part.find("</text>", last) - part.find('>', last));
    };
    CHECK(length_of_axis(planned) == length_of_axis(measured));
    CHECK(length_of_axis(planned).ends_with("s"));
    auto const view_of = [](std::string const& part) { return part.substr(part.find("viewBox"), 24); };
    CHECK(view_of(planned) == view_of(measured));
    for (auto const* reference : {"src=", "href=", "url(", "@import", "<script", "<run>"}) {
        CAPTURE(reference);
        CHECK_FALSE(has(page, reference));
    }
    CHECK(std::system((start + "report 'a <run>' >path").c_str()) == 0);
    CHECK(folder.read("path") == "a <run>/report.html\n");
    CHECK(has(folder.read("a <run>/report.html"), "</html>"));

    // Steps that were recomputed, from an earlier checkpoint, take the place of those before.
    auto const metrics = folder.read("a <run>/metrics.jsonl");
    auto const curves_with = [&](std::string const& lines) {
        folder.write("a <run>/metrics.jsonl", lines);
        auto const text = html_report(run);
        auto const from = text.find("<h2>Loss</h2>");
        return text.substr(from, text.find("<h2>A step") - from);
    };
    std::string const again = "{\"kind\":\"step\",\"step\":1,\"loss\":1.5,\"tokens_per_s\":10.0}\n";
    auto const second = metrics.find("\"kind\":\"step\"", metrics.find("\"kind\":\"step\"") + 1);
    CHECK(curves_with(metrics + again) == curves_with(metrics.substr(0, metrics.rfind('\n', second) + 1) + again));
    folder.write("a <run>/metrics.jsonl", metrics);

    // Killed in the middle of a line, before it could say how it ended.
    std::filesystem::remove(run + "/report.json");
    folder.write("a <run>/metrics.jsonl", folder.read("a <run>/metrics.jsonl") + "{\"kind\": \"st");
    CHECK(has(html_report(run), "not yet, or without a report"));
    std::filesystem::remove_all(run + "/trace");
    std::filesystem::remove(run + "/plan.json");
    CHECK(has(html_report(run), "The folder holds no trace of a whole step."));

    // What is there, but is not what a run leaves, is refused with its file and line.
    auto const whole = folder.read("a <run>/metrics.jsonl");
    auto const first_lines = std::count(whole.begin(), whole.end(), '\n');
    folder.write("a <run>/metrics.jsonl", whole + "\n" + R"({"kind":"step","step":"five","loss":2.5})" + "\n");
    CHECK(std::system((start + "report 'a <run>' 2>message").c_str()) == 4 << 8);
    CHECK(folder.read("message") ==
          "rheo: 'a <run>/metrics.jsonl', line " + std::to_string(first_lines + 2) + " has a 'step' that is no whole number from 0 to 9007199254740992\n");
    folder.write("a <run>/metrics.jsonl", metrics);
    folder.write("a <run>/report.json", R"({"exit_code": "0"})");
    CHECK_THROWS_WITH(html_report(run), "'" + run + "/report.json' has a 'exit_code' that is no whole number from 0 to 9007199254740992");
    folder.write("a <run>/report.json", "[");
    CHECK_THROWS_WITH(html_report(run), "'" + run + "/report.json' is no JSON: byte 2 of 1 is not what JSON has there");
    std::filesystem::remove(run + "/report.json");
    folder.write("a <run>/ranks/0.json", R"({"rank":0,"host":7})");
    CHECK_THROWS_WITH(html_report(run), "'" + run + "/ranks/0.json' has a 'host' that is no text");
    folder.write("a <run>/ranks/0.json", R"({"rank":0,"host":"h"})");
    std::filesystem::create_directories(run + "/trace");
    folder.write("a <run>/trace/rank-0.jsonl", "{}\n");
    CHECK(has(html_report(run), "rank-0.jsonl': line 1, column 1: expected"));

    CHECK_THROWS_AS(html_report(folder.path.string()), records_error);
    CHECK_THROWS_AS(write_html_report(run, folder.path.string() + "/none/page.html"), records_error);
}
