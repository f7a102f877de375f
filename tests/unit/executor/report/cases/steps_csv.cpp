// SPDX-License-Identifier: Apache-2.0
// The steps of a run as a table.
#include "executor/report/steps_csv.hpp"

#include <sstream>
#include <string>

#include "report_of.hpp"
#include "support/catch.hpp"

using namespace rheo;

TEST_CASE("steps_csv: a row per step, empty where nothing is known")
{
    run_folder run;
    run.metrics = {
        nlohmann::json::parse(R"({"kind":"start","step":0,"unix_time_s":5.5,"steps":0})"),
        nlohmann::json::parse(
            R"({"kind":"step","step":0,"attempt":1,"loss":2.5,"tokens":64,"skipped":false,"unix_time_s":6.25,"steps":1,"model_flops_per_s":8.5,"mfu":0.375})"),
        nlohmann::json::parse(R"({"kind":"undone","was":"step","step":1,"loss":9})"),
        nlohmann::json::parse(R"({"kind":"step","step":1,"attempt":0,"loss":null,"tokens":64,"skipped":true,"energy_J":1.5,"steps":2})"),
        nlohmann::json::parse(R"({"kind":"evaluation","step":2,"loss":3.25,"steps":2})")};
    CHECK(steps_csv(run) ==
          "steps,validation_loss,unix_time_s,attempt,loss,gradient_norm,learning_rate,tokens,duration_s,ranks,tokens_per_s,recoveries,skipped,pairs_computed,"
          "energy_J,planned_duration_s,planned_energy_J,memory_bytes,state_and_activation_bytes,model_flops_per_s,mfu\n"
          "1,,6.25,1,2.5,,,64,,,,,0,,,,,,,8.5,0.375\n"
          "2,3.25,,0,nan,,,64,,,,,1,,1.5,,,,,,\n");
}

TEST_CASE("steps_csv: rheo report --csv writes those of one run")
{
    folder_with_run const folder{"run"};
    auto const written = folder.rheo("report run --csv steps.csv");
    CHECK(written.exit_code == 0);
    CHECK(written.out == "steps.csv\n");
    std::istringstream lines{folder.read("steps.csv")};
    std::string line;
    std::getline(lines, line);
    std::int64_t steps = 0;
    double before = 0;
    while (std::getline(lines, line)) {
        std::istringstream cells{line};
        std::string validation;
        std::int64_t number = 0;
        char comma = ' ';
        double time = 0;
        cells >> number >> comma;
        std::getline(cells, validation, ',');
        cells >> time;
        CHECK(number == ++steps);
        CHECK(time >= before);
        before = time;
    }
    CHECK(steps == 4);
    CHECK(before > 1.7e9);  // seconds since 1970
    auto const several = folder.rheo("report run run2 --csv steps.csv");
    CHECK(several.exit_code == 2);
    CHECK(several.err == "rheo: --csv writes the steps of one run, but there are 2: name one run folder\n");
}

TEST_CASE("steps_csv: a described cluster gives the utilization")
{
    trained_folder const folder;
    folder.write("cluster.toml",
                 "schema = 1\n[device]\ncompute_tflops = 0.5\nmemory_rate_gb_per_s = 10.0\nmemory_gib = 1.0\n"
                 "[[level]]\nname = \"node\"\nmembers = 1\ntopology = \"switch\"\nlatency_us = 0.0\nrate_gb_per_s = 1.0\n");
    folder.train("described", "--set plan.cluster='\"cluster.toml\"'");
    std::istringstream lines{folder.read("described/metrics.jsonl")};
    int steps = 0;
    for (std::string line; std::getline(lines, line);) {
        auto const record = nlohmann::json::parse(line);
        if (record["kind"] == "step") {
            ++steps;
            auto const rate = record["model_flops_per_s"].get<double>();
            // 16 tokens of 8: four products of 8 x 8, two of 8 x 32 and the logits of 256, in both directions; an attention of 8 x 8
            CHECK(rate * record["duration_s"].get<double>() == Approx(16.0 * (6 * (4 * 64 + 2 * 256 + 8 * 256) + 12 * 64)));
            CHECK(record["mfu"].get<double>() == Approx(rate / 0.5e12));
        }
    }
    CHECK(steps == 4);
}
