// SPDX-License-Identifier: Apache-2.0
// A run as `rheo watch` sees it: files in the making, torn lines, launches that resume, go back, end or are killed.
#include "executor/report/watch/live_run.hpp"

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "executor/records/run_lock.hpp"
#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

using namespace rheo;

namespace {

void append(std::filesystem::path const& file, std::string const& text) { std::ofstream{file, std::ios::app | std::ios::binary} << text; }

step_record step(std::int64_t number)
{
    return {.step = step_id{number},
            .of_steps = 10,
            .attempt = {},
            .loss = 4.0 - 0.1 * static_cast<double>(number),
            .tokens = 64,
            .duration = seconds{0.5},
            .ranks = 2,
            .energy = joules{10}};
}

/// A folder in which a job of this test's own runs.
struct running_job : temporary_folder {
    run_config config{};
    run_lock lock{};

    running_job()
    {
        config.run.folder = path.string();
        config.run.trace = false;
        config.train.steps = 10;
    }
    void launch(bool resumes)
    {
        begin_run_folder(path.string(), config, resumes);
        REQUIRE(lock.take(path.string(), {}).granted);
    }
    records writer() const { return records{config, rank_id{0}, true}; }
};

}  // namespace

TEST_CASE("watch: lines come when they are whole")
{
    temporary_folder folder;
    auto const path = folder.path / "lines";
    followed_file file{path.string()};
    CHECK_FALSE(file.poll().is_there);
    append(path, "one\ntw");
    CHECK(file.poll().lines == std::vector<std::string>{"one"});
    CHECK(file.poll().lines.empty());
    append(path, "o\nthree\n");
    CHECK(file.poll().lines == std::vector<std::string>{"two", "three"});
    std::filesystem::rename(folder.write("other", "all\nother\n"), path);
    auto news = file.poll();
    CHECK(news.began_again);
    CHECK(news.lines == std::vector<std::string>{"all", "other"});
    std::filesystem::resize_file(path, 4);
    news = file.poll();
    CHECK(news.began_again);
    CHECK(news.lines == std::vector<std::string>{"all"});
    std::filesystem::remove(path);
    CHECK_FALSE(file.poll().is_there);
}

TEST_CASE("watch: a job is seen from before its start to its end")
{
    running_job job;
    run_follower run{job.path.string()};
    CHECK_FALSE(run.poll());
    CHECK(run.now().phase == run_phase::absent);
    job.launch(false);
    auto writer = job.writer();
    run.poll();
    CHECK(run.now().phase == run_phase::absent);
    writer.start({generation_id{0}, step_id{0}, 2}, true);
    CHECK(run.poll());
    CHECK(run.now().phase == run_phase::starting);
    CHECK(run.now().ranks == 2);
    CHECK(run.now().of_steps == 10);
    for (std::int64_t k = 0; k < 4; ++k) {
        writer.step(step(k));
    }
    writer.evaluation({step_id{4}, 3.25});
    writer.checkpoint({step_id{4}, mebibytes(2), seconds{1}});
    recovery_record lost{};
    lost.step = step_id{4};
    lost.lost = {rank_id{1}};
    lost.ranks = 1;
    lost.pipelines = 1;
    writer.recovery(lost);
    writer.note("a note");
    CHECK(run.poll());
    auto const& now = run.now();
    CHECK(now.phase == run_phase::running);
    CHECK(now.steps == 4);
    CHECK(now.losses.size() == 4);
    CHECK(now.losses.at(4) == Approx(3.7));
    CHECK(now.last->of_steps == 10);
    CHECK(now.energy.count == Approx(40));
    CHECK(now.validation->loss == 3.25);
    CHECK(now.last_checkpoint->step == step_id{4});
    CHECK(now.recoveries.size() == 1);
    CHECK(now.ranks == 1);
    REQUIRE(now.events.size() == 4);
    CHECK(now.events[0].text == "after step 4: validation loss 3.2500");
    CHECK(now.events[2].text.starts_with("lost rank 1 in step 5"));
    CHECK(now.events[3].is_note);
    CHECK_FALSE(run.poll());

    writer.finish({.exit_code = 75, .message = "stopped", .steps = step_id{4}});
    run.poll();
    CHECK_FALSE(run.now().is_over());  // its ranks hold the lock until they are through
    job.lock.release();
    CHECK(run.poll());
    CHECK(run.now().phase == run_phase::ended);
    CHECK(run.now().end->exit_code == 75);

    // It is resumed from step 3: what is repeated is there once, and the job is no longer over.
    job.launch(true);
    auto next = job.writer();
    next.start({generation_id{1}, step_id{3}, 2, true}, true);
    run.poll();
    CHECK(run.now().phase == run_phase::starting);
    CHECK(run.now().steps == 3);
    CHECK(run.now().losses.size() == 3);
    CHECK(run.now().recoveries.empty());
    CHECK(run.now().readings == 1);
    CHECK_FALSE(run.now().end);
    next.step(step(3));
    run.poll();
    CHECK(run.now().losses.size() == 4);
    CHECK(run.now().energy.count == Approx(50));  // what was drawn twice was drawn
}

TEST_CASE("watch: a killed job is over when no process holds it")
{
    running_job job;
    job.launch(false);
    run_follower run{job.path.string()};
    auto writer = job.writer();
    writer.start({generation_id{0}, step_id{0}, 1}, true);
    writer.step(step(0));
    append(job.path / "metrics.jsonl", R"({"kind":"step","st)");
    run.poll();
    CHECK(run.now().phase == run_phase::running);
    job.lock.release();
    run.poll();
    CHECK(run.now().phase == run_phase::stopped);
    CHECK(run.now().steps == 1);
}

TEST_CASE("watch: a lock that this host cannot see ends nothing")
{
    running_job job;
    job.launch(false);
    job.lock.release();
    auto writer = job.writer();
    job.write("ranks/1.json", R"({"rank": 1, "pid": 1, "host": "another host"})");
    writer.start({generation_id{0}, step_id{0}, 2}, true);
    writer.step(step(0));
    run_follower run{job.path.string()};
    run.poll();
    CHECK(run.now().phase == run_phase::running);
}

TEST_CASE("watch: what cannot be read stays as it was")
{
    running_job job;
    job.launch(false);
    auto writer = job.writer();
    writer.start({generation_id{0}, step_id{0}, 1}, true);
    writer.step(step(0));
    append(job.path / "metrics.jsonl", "no record\n{\"kind\":7}\n[1]\n{\"kind\":\"step\"}\n{\"kind\":\"recovery\"}\n{\"kind\":\"new\"}\n");
    job.write("plan.json", "{\"torn");
    job.write("plan-7.json", "");
    job.write("plan-x.json", "{}");
    job.write("ranks/0.json", "{");
    job.write("ranks/9.json", R"({"rank": "nine"})");
    run_follower run{job.path.string()};
    run.poll();
    CHECK(run.now().phase == run_phase::running);
    CHECK(run.now().strange_lines == 5);
    CHECK(run.now().steps == 1);
    CHECK_FALSE(run.now().plan_in_force);
    job.write("config.toml", "schema = 1\n[train\n");
    writer.step(step(1));
    run.poll();
    CHECK(run.now().of_steps == 10);
    CHECK(run.now().steps == 2);
}

TEST_CASE("watch: the fullest rank is shown as measured")
{
    running_job job;
    job.launch(false);
    auto writer = job.writer();
    writer.start({generation_id{0}, step_id{0}, 2}, true);
    memory_record memory{};
    memory.planned.activations = bytes{1000};
    memory.measured.activations = bytes{900};
    writer.memory(memory);
    writer.step(step(0));
    job.write("ranks/1.json",
              R"({"rank": 1, "pid": 1, "host": "h", "planned_activations_bytes": 700, "measured_activations_bytes": 800, "peak_memory_bytes": 5000})");
    run_follower run{job.path.string()};
    run.poll();
    REQUIRE(run.now().fullest);
    CHECK(run.now().fullest->rank == rank_id{0});
    CHECK(run.now().fullest->planned == bytes{1000});
    CHECK(run.now().fullest->measured == bytes{900});
}
