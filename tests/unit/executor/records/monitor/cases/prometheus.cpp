// SPDX-License-Identifier: Apache-2.0
// The file for Prometheus, against a strict reader of its format: names, types, labels, values worked out by hand, counters that never fall.
#include "executor/records/monitor/prometheus_file.hpp"

#include <cmath>
#include <filesystem>
#include <random>
#include <string>

#include "../exposition.hpp"
#include "executor/records/record_json.hpp"
#include "executor/records/records.hpp"
#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

using namespace rheo;

namespace {

nlohmann::json stamped(nlohmann::json record, double unix_time, std::int64_t steps)
{
    record["unix_time_s"] = unix_time;
    record["steps"] = steps;
    return record;
}

nlohmann::json step(std::int64_t number, double duration = 0.5)
{
    step_record const r{.step = step_id{number},
                        .of_steps = 10,
                        .attempt = {},
                        .loss = 2.5,
                        .gradient_norm = 1.25,
                        .learning_rate = 0.001,
                        .tokens = 2048,
                        .duration = seconds{duration},
                        .ranks = 5,
                        .energy = joules{100},
                        .model_rate = {3e12},
                        .compute = {8e12}};
    return stamped(to_json(r), 1000.5 + static_cast<double>(number), number + 1);
}

nlohmann::json recovery()
{
    recovery_record r{};
    r.step = step_id{2};
    r.lost = {rank_id{3}, rank_id{4}};
    r.ranks = 3;
    r.pipelines = 1;
    r.detect = seconds{0.25};
    r.copy = seconds{0.5};
    return stamped(to_json(r), 1003, 2);
}

}  // namespace

TEST_CASE("prometheus: each record sets what it says")
{
    run_gauges gauges{"runs/a", 10};
    gauges.add(stamped(to_json(start_record{generation_id{0}, step_id{0}, 5}), 1000, 0));
    for (int k = 0; k < 2; ++k) {
        gauges.add(step(k));
    }
    gauges.add(recovery());
    auto skipped = step(2);
    skipped["skipped"] = true;
    skipped["loss"] = nullptr;
    skipped["ranks"] = 3;
    gauges.add(skipped);
    auto redone = step(3);
    redone["kind"] = "redo";
    redone["steps"] = 3;
    gauges.add(redone);
    gauges.add(stamped(to_json(evaluation_record{step_id{3}, 3.25}), 1004, 3));
    gauges.add(stamped(to_json(checkpoint_record{step_id{3}, bytes{4096}, seconds{2}}), 1005, 3));
    gauges.add(stamped(to_json(level_record{step_id{4}, safety_level::local, bytes{4096}, seconds{1}, 0}), 1005, 3));
    exposition_reader const read{gauges.text()};
    CHECK(read.metrics.at("rheo_train_loss").samples.contains("runs/a"));
    CHECK(std::isnan(read.value("rheo_train_loss")));
    CHECK(read.value("rheo_running") == 1);
    CHECK_FALSE(read.metrics.contains("rheo_exit_code"));
    CHECK(read.value("rheo_start_timestamp_seconds") == 1000);
    CHECK(read.value("rheo_last_record_timestamp_seconds") == 1005);
    CHECK(read.value("rheo_target_steps") == 10);
    CHECK(read.value("rheo_committed_steps") == 3);
    CHECK(read.value("rheo_remaining_seconds") == 3.5);
    CHECK(read.value("rheo_ranks") == 5);  // of the redone attempt
    CHECK(read.value("rheo_pipelines") == 1);
    CHECK(read.value("rheo_validation_loss") == 3.25);
    CHECK(read.value("rheo_gradient_norm") == 1.25);
    CHECK(read.value("rheo_learning_rate") == 0.001);
    CHECK(read.value("rheo_tokens_per_second") == 4096);
    CHECK(read.value("rheo_model_flops_per_second") == 3e12);
    CHECK(read.value("rheo_mfu_ratio") == 0.375);
    CHECK(read.value("rheo_step_duration_seconds") == 0.5);
    CHECK(read.value("rheo_joules_per_token") == 100.0 / 2048);
    CHECK(read.value("rheo_checkpoint_steps") == 3);
    CHECK(read.value("rheo_safe_steps") == 4);
    CHECK(read.value("rheo_checkpoint_bytes") == 4096);
    CHECK(read.value("rheo_steps_total") == 3);
    CHECK(read.value("rheo_step_seconds_total") == 1.5);
    CHECK(read.value("rheo_tokens_total") == 3 * 2048);
    CHECK(read.value("rheo_skipped_steps_total") == 1);
    CHECK(read.value("rheo_redone_attempts_total") == 1);
    CHECK(read.value("rheo_energy_joules_total") == 400);
    CHECK(read.value("rheo_recoveries_total") == 1);
    CHECK(read.value("rheo_recovery_seconds_total") == 0.75);
    CHECK(read.value("rheo_lost_ranks_total") == 2);
    CHECK(read.value("rheo_checkpoints_total") == 1);
    CHECK(read.value("rheo_checkpoint_seconds_total") == 2);

    gauges.add(stamped(to_json(final_record{.exit_code = 75, .message = "stopped", .steps = step_id{3}}, {}), 1006, 3));
    exposition_reader const ended{gauges.text()};
    CHECK(ended.value("rheo_running") == 0);
    CHECK(ended.value("rheo_exit_code") == 75);
}

TEST_CASE("prometheus: any run folder is a label")
{
    CHECK(escaped_label("a\\b\"c\nd") == "a\\\\b\\\"c\\nd");
    CHECK(escaped_label("\xc3\xa4\xff\xe2\x82") == "\xc3\xa4???");
    std::mt19937 random{3};
    for (int round = 0; round < 2000; ++round) {
        std::string name;
        for (auto size = random() % 12; size > 0; --size) {
            name += static_cast<char>(random() % 2 == 0 ? 1 + random() % 127 : "\\\"\n{}"[random() % 5]);
        }
        exposition_reader const read{run_gauges{name, 1}.text()};
        CHECK(read.metrics.at("rheo_running").samples.contains(name));
    }
}

TEST_CASE("prometheus: no counter falls, whatever is repeated")
{
    std::mt19937 random{5};
    run_gauges gauges{"r", 100};
    std::map<std::string, double> before;
    std::int64_t at = 0;
    for (int round = 0; round < 500; ++round) {
        switch (random() % 5) {
        case 0:
            at = static_cast<std::int64_t>(random() % static_cast<unsigned>(at + 1));
            gauges.add(stamped(to_json(start_record{generation_id{round}, step_id{at}, 3}), round, at));
            break;
        case 1: gauges.add(recovery()); break;
        default: gauges.add(step(at++, static_cast<double>(random() % 100))); break;
        }
        exposition_reader const read{gauges.text()};
        for (auto const& [name, metric] : read.metrics) {
            if (metric.type == "counter") {
                CHECK(read.value(name) >= before[name]);
                before[name] = read.value(name);
            }
        }
    }
}

TEST_CASE("prometheus: a job replaces the file as a whole")
{
    temporary_folder folder;
    run_config config;
    config.run.folder = (folder.path / "run").string();
    config.run.trace = false;
    config.run.prometheus = (folder.path / "rheo.prom").string();
    config.train.steps = 2;
    records reporter(config, rank_id{0}, true);
    records other(config, rank_id{1}, true);
    for (auto* r : {&reporter, &other}) {
        r->start({generation_id{0}, step_id{0}, 2}, r == &reporter);
        r->step({.step = step_id{0}, .of_steps = 2, .attempt = {}, .loss = 2, .tokens = 64, .duration = seconds{1}, .ranks = 2});
    }
    std::filesystem::remove(config.run.prometheus);
    reporter.set_reporter(false);
    reporter.note("nothing");
    CHECK_FALSE(std::filesystem::exists(config.run.prometheus));
    other.set_reporter(true);
    other.finish({.exit_code = 0, .message = "done", .steps = step_id{1}});
    exposition_reader const read{folder.read("rheo.prom")};
    CHECK(read.value("rheo_steps_total") == 1);  // which the other rank had counted, too
    CHECK(read.value("rheo_exit_code") == 0);
    CHECK(read.metrics.at("rheo_exit_code").samples.contains(config.run.folder));
    CHECK_FALSE(std::filesystem::exists(config.run.prometheus + ".partial"));
}

TEST_CASE("prometheus: a file that cannot be written ends nothing")
{
    temporary_folder folder;
    prometheus_file file{(folder.path / "missing/rheo.prom").string(), "r", 10};
    file.add(step(0), true);
    std::filesystem::create_directory(folder.path / "missing");
    file.add(recovery(), true);
    CHECK(exposition_reader{folder.read("missing/rheo.prom")}.value("rheo_recoveries_total") == 1);
}
