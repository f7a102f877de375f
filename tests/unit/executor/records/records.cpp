// SPDX-License-Identifier: Apache-2.0
#include "executor/records/records.hpp"

#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "executor/config/toml.hpp"
#include "executor/records/earlier_run.hpp"
#include "executor/records/record_json.hpp"
#include "executor/records/record_text.hpp"
#include "executor/records/run_folder.hpp"
#include "executor/records/trace_merge.hpp"
#include "rheo/trace/json_lines.hpp"
#include "rheo/units/exit_error.hpp"
#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

using namespace rheo;
using json = nlohmann::json;

namespace {

step_record step(std::int64_t number)
{
    return {.step = step_id{number},
            .of_steps = 400,
            .attempt = {},
            .loss = 2.5,
            .gradient_norm = 1,
            .learning_rate = 0.001,
            .tokens = 2048,
            .duration = seconds{0.5},
            .ranks = 5,
            .recoveries = 1,
            .skipped = false};
}

recovery_record loss_of(std::vector<rank_id> lost)
{
    recovery_record r{};
    r.generation = generation_id{1};
    r.step = step_id{16};
    r.lost = std::move(lost);
    r.ranks = 4;
    r.pipelines = 2;
    r.detect = milliseconds(5);
    r.copy = milliseconds(7.25);
    r.copied = mebibytes(3);
    r.pairs_total = 100;
    r.pairs_salvaged = 60;
    r.pairs_missing = 40;
    return r;
}

trace_event event(int rank, double start)
{
    return {.rank = rank_id{rank},
            .activity = activity::forward,
            .pipeline = pipeline_id{0},
            .stage = stage_id{1},
            .item = 3,
            .generation = {},
            .step = step_id{2},
            .attempt = {},
            .start = seconds{start},
            .end = seconds{start + 0.001}};
}

std::vector<json> lines_of(std::string const& text)
{
    std::vector<json> result;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) {
        result.push_back(json::parse(line, nullptr, false));
    }
    return result;
}

/// What a block prints to standard output.
template <class Block>
std::string printed(Block block)
{
    temporary_folder folder;
    std::fflush(stdout);
    int const kept = ::dup(STDOUT_FILENO);
    int const file = ::open((folder.path / "out").c_str(), O_CREAT | O_WRONLY, 0600);
    ::dup2(file, STDOUT_FILENO);
    block();
    std::fflush(stdout);
    ::dup2(kept, STDOUT_FILENO);
    ::close(kept);
    ::close(file);
    return folder.read("out");
}

}  // namespace

TEST_CASE("records: config is written; old records are set aside")
{
    temporary_folder folder;
    auto const run = (folder.path / "a/b").string();
    folder.write("a/b/metrics.jsonl", "old");
    folder.write("a/b/trace/rank-9.jsonl", "old");
    folder.write("a/b/step-5/weights", "old");
    folder.write("a/b/notes.txt", "somebody's");
    run_config config;
    config.train.steps = 7;
    CHECK(set_run_aside(run) == folder.path / "a/b/before-1");
    begin_run_folder(run, config);
    CHECK(read_config_file(run + "/config.toml").config.train.steps == 7);
    CHECK_FALSE(std::filesystem::exists(run + "/metrics.jsonl"));
    CHECK_FALSE(std::filesystem::exists(run + "/trace/rank-9.jsonl"));
    for (auto const* name : {"metrics.jsonl", "trace/rank-9.jsonl", "step-5/weights"}) {
        CHECK(folder.read("a/b/before-1/" + std::string{name}) == "old");
    }
    CHECK_FALSE(std::filesystem::exists(run + "/step-5"));
    CHECK(folder.read("a/b/notes.txt") == "somebody's");
    CHECK(set_run_aside(run).empty());  // a user put a config alone there, for the first run
    records const mine(run, rank_id{3}, true, true);
    auto const rank = json::parse(folder.read("a/b/ranks/3.json"));
    CHECK(rank["rank"] == 3);
    CHECK(rank["pid"] == ::getpid());
}

TEST_CASE("records: a run folder that cannot be made is a sentence")
{
    temporary_folder folder;
    auto const file = folder.write("file", "");
    CHECK_THROWS_WITH(begin_run_folder(file + "/run", {}), "run folder: '" + file + "/run' cannot be made: Not a directory");
    CHECK_THROWS_AS(records(file + "/run", rank_id{0}, true, true), exit_error);
}

TEST_CASE("records: metrics are JSON lines by the reporter only")
{
    temporary_folder folder;
    auto const run = folder.path.string();
    records reporter(run, rank_id{0}, false, true);
    records other(run, rank_id{1}, false, true);
    reporter.set_reporter(true);
    auto first = step(0);
    first.model_rate = {3e12};
    first.compute = {8e12};
    for (auto* r : {&reporter, &other}) {
        r->step(first);
        r->evaluation({step_id{1}, 3.25});
        r->recovery(loss_of({rank_id{2}}));
        r->note("a \"note\" \xff\n");
    }
    auto const lines = lines_of(folder.read("metrics.jsonl"));
    REQUIRE(lines.size() == 4);
    CHECK(lines[0]["kind"] == "step");
    CHECK(lines[0]["model_flops_per_s"] == 3e12);
    CHECK(lines[0]["mfu"] == 0.375);
    CHECK(mfu(step_of(lines[0])) == 0.375);
    CHECK(lines[0]["tokens_per_s"] == 4096.0);
    CHECK(lines[0]["duration_s"] == 0.5);
    CHECK(lines[1]["kind"] == "evaluation");
    CHECK(lines[1]["step"] == 1);
    CHECK(lines[1]["loss"] == 3.25);
    CHECK(lines[2]["lost"] == json::array({2}));
    CHECK(lines[2]["copy_s"] == 0.00725);
    CHECK(lines[2]["total_s"] == Approx(0.01225));
    CHECK(lines[3]["kind"] == "note");
}

TEST_CASE("records: next reporter repairs a torn line")
{
    temporary_folder folder;
    auto const run = folder.path.string();
    records next(run, rank_id{1}, false, true);
    {
        records first(run, rank_id{0}, false, true);
        first.set_reporter(true);
        for (int s = 0; s < 3; ++s) {
            first.step(step(s));
        }
    }
    auto const whole = folder.read("metrics.jsonl");
    folder.write("metrics.jsonl", whole.substr(0, whole.size() - 10));  // step 2 is torn
    for (int s = 0; s < 5; ++s) {
        next.step(step(s));
    }
    next.set_reporter(true);
    next.set_reporter(true);
    next.step(step(5));
    std::vector<std::int64_t> steps;
    int torn = 0;
    for (auto const& line : lines_of(folder.read("metrics.jsonl"))) {
        if (line.is_discarded()) {
            ++torn;
        } else {
            steps.push_back(line["step"]);
        }
    }
    CHECK(torn == 1);
    CHECK(steps == std::vector<std::int64_t>{0, 1, 2, 3, 4, 5});
}

TEST_CASE("records: next reporter completes missing records")
{
    temporary_folder folder;
    auto const run = folder.path.string();
    std::string before;
    auto const out = printed([&] {
        records next(run, rank_id{1}, false, false);
        records first(run, rank_id{0}, false, true);
        first.start({generation_id{4}, step_id{0}, 2, false}, true);
        next.start({generation_id{4}, step_id{0}, 2, false}, false);
        auto const both = [&](auto record) {
            record(first);
            record(next);
        };
        both([](records& r) { r.note("a note"); });
        both([](records& r) { r.step(step(0)); });
        both([](records& r) { r.note("a note"); });
        first.alone("what rank 0 alone knows");
        both([](records& r) { r.recovery(loss_of({rank_id{2}})); });
        both([](records& r) { r.evaluation({step_id{1}, 3.25}); });
        before = folder.read("metrics.jsonl");
        next.note("a note");  // from here on the first one is dead
        auto gone = loss_of({rank_id{0}});
        gone.generation = generation_id{5};
        next.recovery(gone);
        next.checkpoint({step_id{1}, {100}, {0.5}});
        next.evaluation({step_id{2}, 3.0});
        next.step(step(2));
        next.set_reporter(true);
    });
    auto const text = folder.read("metrics.jsonl");
    REQUIRE(text.starts_with(before));
    std::vector<std::string> kinds;
    for (auto const& line : lines_of(text.substr(before.size()))) {
        kinds.push_back(line["kind"]);
    }
    CHECK(kinds == std::vector<std::string>{"note", "recovery", "checkpoint", "evaluation", "step"});
    for (auto const* line : {"a note\n", "lost rank 0 in step 17", "checkpoint of step 1: ", "after step 2: validation loss 3.0000\n"}) {
        CHECK(out.find(line) != std::string::npos);
        CHECK(out.find(line) == out.rfind(line));
    }
}

TEST_CASE("records: a start marks repeated steps; one end per launch")
{
    temporary_folder folder;
    auto const run = folder.path.string();
    auto const steps_in_file = [&](char const* kind) {
        std::vector<std::int64_t> steps;
        for (auto const& line : lines_of(folder.read("metrics.jsonl"))) {
            if (line.is_object() && line["kind"] == kind) {
                steps.push_back(line.value("step", std::int64_t{-1}));
            }
        }
        return steps;
    };
    using numbers = std::vector<std::int64_t>;
    {
        records killed(run, rank_id{0}, false, true);
        killed.start({generation_id{1}, step_id{0}, 2, false}, true);
        for (int s = 0; s < 6; ++s) {
            killed.step(step(s));
        }
        killed.evaluation({step_id{4}, 3.25});
        killed.note("kept");
    }
    auto const whole = folder.read("metrics.jsonl");
    folder.write("metrics.jsonl", whole + "{\"kind\":\"step\",\"step\":6,\"att");
    records first(run, rank_id{0}, false, true);
    records next(run, rank_id{1}, false, true);
    for (auto* r : {&first, &next}) {
        r->start({generation_id{2}, step_id{4}, 2, true}, r == &first);
    }
    CHECK(steps_in_file("step") == numbers{0, 1, 2, 3});
    CHECK(steps_in_file("undone") == numbers{4, 5, 4});
    CHECK(steps_in_file("start") == numbers{0, 4});
    CHECK(steps_in_file("note").size() == 1);
    for (int s = 4; s < 7; ++s) {
        for (auto* r : {&first, &next}) {
            r->step(step(s));
        }
    }
    next.step(step(7));  // the first one died before it wrote this, and before the job went back
    next.start({generation_id{3}, step_id{6}, 1, true}, false);
    next.step(step(6));
    next.set_reporter(true);
    CHECK(steps_in_file("step") == numbers{0, 1, 2, 3, 4, 5, 6});
    CHECK(steps_in_file("start") == numbers{0, 4, 6});
    printed([&] {
        next.finish({.message = "all"});
        records last(run, rank_id{2}, false, true);  // writes the report again: the one before died while it did
        last.set_reporter(true);
        last.finish({.message = "all"});
    });
    CHECK(steps_in_file("end").size() == 1);
    printed([&] {
        records later(run, rank_id{0}, false, true);
        later.start({generation_id{4}, step_id{7}, 1, true}, true);
        later.finish({.message = "all"});
    });
    CHECK(steps_in_file("end").size() == 2);
    CHECK(steps_in_file("step") == numbers{0, 1, 2, 3, 4, 5, 6});
}

TEST_CASE("records: foreign lines are skipped and kept")
{
    temporary_folder folder;
    auto const run = folder.path.string();
    std::string const strange = "[1, 2]\n{\"kind\":7}\n{\"kind\":\"step\",\"step\":\"five\"}\n{\"kind\":\"step\",\"step\":1,\"attempt\":1e99}\n";
    records next(run, rank_id{1}, false, true);
    next.step(step(0));
    folder.write("metrics.jsonl", strange);
    next.set_reporter(true);
    auto const text = folder.read("metrics.jsonl");
    REQUIRE(text.starts_with(strange));
    auto const lines = lines_of(text.substr(strange.size()));
    REQUIRE(lines.size() == 1);
    CHECK(lines[0]["step"] == 0);
}

TEST_CASE("records: trace files are merged, torn lines too")
{
    temporary_folder folder;
    auto const run = folder.path.string();
    records reporter(run, rank_id{0}, true, true);
    records other(run, rank_id{1}, true, true);
    reporter.set_reporter(true);
    for (int i = 3; i > 0; --i) {
        reporter.event(event(0, i));
        other.event(event(1, i));
    }
    CHECK(folder.read("trace/rank-1.jsonl").empty());
    other.flush();
    reporter.flush();
    auto const whole = folder.read("trace/rank-1.jsonl");
    CHECK(lines_of(whole).size() == 3);
    folder.write("trace/rank-1.jsonl", whole.substr(0, whole.size() - 7));
    folder.write("trace/rank-2.jsonl", "");
    CHECK(merge_traces(run).empty());
    auto const trace = json::parse(folder.read("trace.json"));
    int of_rank[2] = {};
    double before = 0;
    for (auto const& e : trace["traceEvents"]) {
        if (e["ph"] == "X") {
            ++of_rank[e["pid"].get<int>()];
            if (e["pid"] == 0) {
                CHECK(e["ts"].get<double>() > before);
                before = e["ts"];
            }
        }
    }
    CHECK(of_rank[0] == 3);
    CHECK(of_rank[1] == 2);
}

TEST_CASE("records: merging traces needs constant memory")
{
    temporary_folder folder;
    auto const run = folder.path.string();
    std::filesystem::create_directories(folder.path / "trace");
    std::string line;
    {
        std::vector<trace_event> const one{event(0, 1)};
        std::ostringstream text;
        write_json_lines(text, one);
        line = text.str();
    }
    for (int rank = 0; rank < 2; ++rank) {  // 20 MB each
        std::ofstream file(folder.path / ("trace/rank-" + std::to_string(rank) + ".jsonl"));
        line.replace(8, 1, std::to_string(rank));
        for (std::size_t written = 0; written < (20 << 20); written += line.size()) {
            file << line;
        }
    }
    rusage before{};
    rusage after{};
    ::getrusage(RUSAGE_SELF, &before);
    CHECK(merge_traces(run).empty());
    ::getrusage(RUSAGE_SELF, &after);
    CHECK(after.ru_maxrss - before.ru_maxrss < 8 << 10);  // KiB
    CHECK(std::filesystem::file_size(folder.path / "trace.json") > (30 << 20));
    CHECK_FALSE(std::filesystem::exists(folder.path / "trace.json.partial"));
}

TEST_CASE("records: trace is flushed at each step")
{
    temporary_folder folder;
    auto const run = folder.path.string();
    records mine(run, rank_id{4}, true, true);
    mine.event(event(4, 1));
    mine.step(step(0));
    mine.event(event(4, 2));
    CHECK(lines_of(folder.read("trace/rank-4.jsonl")).size() == 1);
    mine.flush();
    CHECK(lines_of(folder.read("trace/rank-4.jsonl")).size() == 2);
}

TEST_CASE("records: report has end and recoveries; NaN is null")
{
    temporary_folder folder;
    auto const run = folder.path.string();
    records mine(run, rank_id{0}, false, true);
    mine.recovery(loss_of({rank_id{2}}));  // another rank spoke then
    mine.set_reporter(true);
    mine.recovery(loss_of({rank_id{1}, rank_id{3}}));
    auto const out = printed([&] {
        mine.finish({.exit_code = 0,
                     .message = "done",
                     .steps = step_id{9},
                     .loss = std::numeric_limits<double>::quiet_NaN(),
                     .validation_loss = 2,
                     .unigram_entropy = 3,
                     .digest = {1, 2},
                     .digest_known = true,
                     .pairs_by_survivors = 7,
                     .sample = "\xff\x01",
                     .plan_drawing = ""});
    });
    CHECK(out.empty());  // quiet
    auto const report = json::parse(folder.read("report.json"));
    CHECK(report["digest"] == "00000000000000010000000000000002");
    CHECK(report["loss"].is_null());
    CHECK(report["recoveries"].size() == 2);
    CHECK(report["recoveries"][1]["lost"] == json::array({1, 3}));
    CHECK(lines_of(folder.read("metrics.jsonl")).back()["kind"] == "end");
}

TEST_CASE("records: plain lines without a terminal")
{
    temporary_folder folder;
    auto const out = printed([&] {
        records reporter(folder.path.string(), rank_id{0}, false, false);
        records other(folder.path.string(), rank_id{1}, false, false);
        reporter.set_reporter(true);
        for (auto* r : {&reporter, &other}) {
            r->step(step(0));
            r->step(step(1));
            r->step(step(399));
            r->note("a note");
            r->finish({.message = "all steps are done"});
        }
    });
    CHECK(out.find("step 1/400  loss 2.5000  norm 1  lr 0.001  4096 tokens/s  5 ranks  3 min left\nstep 400/400  loss ") ==
          0);  // the second came too soon after the first
    CHECK(out.find("a note\n") != std::string::npos);
    CHECK(out.find("a note\n", out.find("a note\n") + 1) == std::string::npos);
    CHECK(out.find('\r') == std::string::npos);
}

TEST_CASE("records: the lines for people, word by word")
{
    CHECK(recovery_line(loss_of({rank_id{2}})) ==
          "lost rank 2 in step 17: 4 ranks in 2 pipelines continued after 12.2 ms, 60 of 100 gradient contributions kept (60 %)");
    std::vector const recoveries{loss_of({rank_id{2}}), loss_of({rank_id{0}, rank_id{1}})};
    final_record const end{.exit_code = 0,
                           .message = "all steps are done",
                           .steps = step_id{400},
                           .loss = 1.5,
                           .validation_loss = 1.75,
                           .unigram_entropy = 3.25,
                           .digest = {0, 255},
                           .digest_known = true,
                           .pairs_by_survivors = 1,
                           .sample = "int\tmain\n\x1b[2J\xff",
                           .plan_drawing = ""};
    CHECK(final_table(end, recoveries) == R"(
  recovery                               1             2
  lost                              rank 2    ranks 0, 1
  in step                               17            17
  ranks, pipelines after              4, 2          4, 2
  detect, ms                          5.00          5.00
  revoke, ms                          0.00          0.00
  decide, ms                          0.00          0.00
  shrink, ms                          0.00          0.00
  link, ms                            0.00          0.00
  exchange, ms                        0.00          0.00
  plan, ms                            0.00          0.00
  copy, ms                            7.25          7.25
  merge, ms                           0.00          0.00
  first instruction, ms               0.00          0.00
  total, ms                          12.25         12.25
  state copied, MiB                   3.00          3.00
  gradients moved, MiB                0.00          0.00
  contributions kept                60/100        60/100
  recomputed                            40            40

  a sample of what the model writes:

  int    main
  ?[2J?

  steps               400
  loss                1.5000 nats per token
  validation loss     1.7500 nats per token (unigram entropy 3.2500)
  digest of the state 000000000000000000000000000000ff
  ended               all steps are done
)");
}
