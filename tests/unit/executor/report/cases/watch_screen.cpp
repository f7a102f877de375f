// SPDX-License-Identifier: Apache-2.0
// The screen of `rheo watch`: it fits every terminal, shows what a run's records say, and lets nothing from a file reach the terminal as a command.
#include "executor/report/watch/watch_screen.hpp"

#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "executor/config/files/schedule_file.hpp"
#include "executor/report/watch/full_screen.hpp"
#include "support/catch.hpp"

using namespace rheo;

namespace {

live_run a_run()
{
    live_run run{.folder = "runs/job"};
    run.phase = run_phase::running;
    run.of_steps = 400;
    run.steps = 100;
    run.ranks = 4;
    run.started = 1000;
    run.newest = 1120;
    run.config.emplace();
    run.config->power.device = power_source::emulated;
    plan p;
    p.schedule = *find_schedule("1f1b");
    p.pipelines = {{{layer_id{0}, layer_id{2}, layer_id{4}}, {{rank_id{0}}, {rank_id{1}}}, {}},
                   {{layer_id{0}, layer_id{2}, layer_id{4}}, {{rank_id{2}}, {rank_id{3}, rank_id{4}}}, {}}};
    p.work = {{{}, {}, {}}, {{}}};
    run.plan_in_force = p;
    for (std::int64_t k = 1; k <= 100; ++k) {
        run.losses[k] = 4.0 - 0.02 * static_cast<double>(k);
    }
    run.last = step_record{.step = step_id{99},
                           .of_steps = 400,
                           .attempt = {},
                           .loss = 2.0,
                           .gradient_norm = 1.25,
                           .learning_rate = 3e-4,
                           .tokens = 2048,
                           .duration = seconds{0.5},
                           .ranks = 4,
                           .energy = joules{100}};
    run.pace.add({0.5});
    run.energy = joules{12345};
    run.fullest = live_memory{rank_id{3}, mebibytes(1536), mebibytes(1536)};
    run.validation = evaluation_record{step_id{80}, 2.5};
    run.last_checkpoint = checkpoint_record{step_id{80}, mebibytes(3), seconds{1}};
    run.last_safe = level_record{step_id{90}, safety_level::replicated, mebibytes(3), seconds{1}, 1};
    run.checkpoints = 2;
    recovery_record r{};
    r.detect = seconds{0.25};
    run.recoveries = {r};
    run.events = {{0, "first event", false}, {0, "second event", true}};
    return run;
}

std::string joined(std::vector<std::string> const& lines)
{
    std::string text;
    for (auto const& line : lines) {
        text += line + '\n';
    }
    return text;
}

}  // namespace

TEST_CASE("watch: a screen has the run's numbers, line by line")
{
    CHECK(joined(watch_screen(a_run(), {.columns = 80, .rows = 24, .unicode = false}, 1120)) ==
          "runs/job                                                       running for 2 min\n"
          "step 100/400  25 %  ############------------------------------------  2 min left\n"
          "\n"
          "loss        2.0000, validation 2.5000 after step 80\n"
          "            #######******++++++=======------:::::::......_______  3.980 to 2.000\n"
          "gradient    norm 1.25, learning rate 0.0003\n"
          "speed       4096 tokens/s, 500 ms per step\n"
          "memory      at most 1.5 GiB on rank 3, planned 1.5 GiB: state and activations\n"
          "energy      100 J per step, 0.0488 J per token, 12345 J in all (emulated)\n"
          "recoveries  1, 250 ms in all; last checkpoint of step 80, on nodes of step 90\n"
          "ranks       4: 2 pipelines of 2 + 3 ranks, 1f1b\n"
          "            pipeline 0: ranks 0 | 1; 3 microbatches\n"
          "            pipeline 1: ranks 2 | (3, 4); 1 microbatch\n"
          "\n"
          "first event\n"
          "second event\n");
}

TEST_CASE("watch: the speed has the share of the devices' compute")
{
    auto run = a_run();
    run.last->model_rate = {3e12};
    run.last->compute = {8e12};
    CHECK(joined(watch_screen(run, {.columns = 80, .rows = 24, .unicode = false}, 1120)).find("500 ms per step, mfu 37.5 %\n") != std::string::npos);
}

TEST_CASE("watch: a run says in which phase it is")
{
    auto run = a_run();
    auto const title = [&](double now) { return watch_screen(run, {.columns = 100, .rows = 24, .unicode = true}, now).front(); };
    CHECK(title(1120 + 600).ends_with("running, last record 10 min ago"));
    run.phase = run_phase::starting;
    CHECK(title(1120).ends_with("  starting"));
    run.phase = run_phase::ended;
    run.end = run_end{75, "SIGTERM", 100};
    CHECK(title(1120).ends_with("  ended: SIGTERM (exit code 75)"));
    CHECK(joined(watch_screen(run, {}, 1120)).find(" left\n") == std::string::npos);
    run.phase = run_phase::stopped;
    CHECK(title(1120).ends_with("  not running, and left no end: it was killed"));
    CHECK(watch_screen({.folder = "runs/later"}, {.columns = 40, .rows = 24, .unicode = true}, 0) ==
          std::vector<std::string>{"runs/later       waiting for its records"});
}

TEST_CASE("watch: every screen fits its terminal")
{
    auto run = a_run();
    run.folder = "runs/a very long name of a run \xe6\xbc\xa2\xe5\xad\x97 in the folder of somebody";
    for (int k = 0; k < 60; ++k) {
        run.events.push_back({1e9 + k, std::string(static_cast<std::size_t>(3 * k), 'x') + "\xe6\xbc\xa2", false});
    }
    for (std::size_t columns = 1; columns <= 140; ++columns) {
        for (std::size_t rows : {1, 2, 5, 9, 12, 16, 24, 50}) {
            for (bool const unicode : {false, true}) {
                auto const lines = watch_screen(run, {.columns = columns, .rows = rows, .unicode = unicode}, 2000);
                CHECK(lines.size() <= rows);
                for (auto const& line : lines) {
                    CHECK(columns_of(line) <= columns);
                }
            }
        }
    }
    auto const lines = watch_screen(run, {.columns = 80, .rows = 24, .unicode = true}, 2000);
    CHECK(lines.size() == 24);
    CHECK(lines.back().find("xxx") != std::string::npos);  // the newest event is the last line
}

TEST_CASE("watch: texts of files are no commands for a terminal")
{
    CHECK(shown_text("a\x1b[2Jb\x07\xc2\x9b\xff\xe2\x80\xae!", 80) == R"(a?[2Jb)"
                                                                      "\?\?\?\?!");
    CHECK(shown_text("abcdef", 6) == "abcdef");
    CHECK(shown_text("abcdefg", 6) == "abc...");
    CHECK(shown_text("\xe6\xbc\xa2\xe6\xbc\xa2\xe6\xbc\xa2\xe6\xbc\xa2", 7) == "\xe6\xbc\xa2\xe6\xbc\xa2...");  // two columns each
    CHECK(shown_text("abcdefg", 2) == "..");
    std::mt19937 random{9};
    for (int round = 0; round < 3000; ++round) {
        std::string text;
        for (auto size = random() % 30; size > 0; --size) {
            text += static_cast<char>(random());
        }
        auto const columns = random() % 30;
        auto const shown = shown_text(text, columns);
        CHECK(columns_of(shown) <= columns);
        for (char const c : shown) {
            CHECK((static_cast<unsigned char>(c) >= 0x20 && c != 0x7f));
        }
        CHECK(shown_text(shown, 100) == shown);
    }
}

TEST_CASE("watch: a curve rises and falls as its values do")
{
    std::map<std::int64_t, double> rising;
    for (std::int64_t k = 0; k < 8; ++k) {
        rising[k] = static_cast<double>(k * k);
    }
    CHECK(sparkline(rising, 8, true) == "▁▁▁▂▃▅▆█");
    CHECK(sparkline(rising, 8, false) == "___.:=+#");
    CHECK(sparkline(rising, 4, false) == "_.-#");  // means 0.5, 6.5, 20.5, 42.5
    CHECK(sparkline(rising, 100, false).size() == 8);
    CHECK(sparkline({{5, 1.0}, {9, 1.0}}, 5, false) == "_   _");
    CHECK(sparkline({{1, 1.0}, {2, std::numeric_limits<double>::quiet_NaN()}, {3, 2.0}}, 3, false) == "_!#");
    CHECK(sparkline({{1, std::numeric_limits<double>::infinity()}}, 3, false) == "!");
    CHECK(sparkline({}, 5, true).empty());
}

TEST_CASE("watch: a picture goes over the last one line by line")
{
    std::string const lines[] = {"one", "two"};
    CHECK(picture_of(lines) == "\x1b[?2026h\x1b[Hone\x1b[K\r\ntwo\x1b[K\x1b[J\x1b[?2026l");
}
