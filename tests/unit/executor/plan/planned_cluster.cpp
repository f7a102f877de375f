// SPDX-License-Identifier: Apache-2.0
// Plans for a described cluster: its device, nodes and memory count, and a cluster that cannot be is a sentence.
#include <string>

#include "executor/plan/planning.hpp"
#include "support/catch.hpp"
#include "support/rheo_command.hpp"
#include "support/temporary_folder.hpp"

using namespace rheo;

namespace {

std::string cluster_of(std::string const& compute, std::string const& memory)
{
    return "schema = 1\n[device]\ncompute_tflops = " + compute + "\nmemory_rate_gb_per_s = 1e6\nmemory_gib = " + memory +
           "\n[[level]]\nname = \"node\"\nmembers = 2\ntopology = \"full\"\nlatency_us = 0.0\nrate_gb_per_s = 1e6\n"
           "[[level]]\nname = \"rack\"\nmembers = 2\ntopology = \"switch\"\nlatency_us = 0.0\nrate_gb_per_s = 1e6\n";
}

run_config small_config()
{
    run_config config;
    config.model = {.vocabulary = 256, .context = 64, .width = 64, .heads = 4, .blocks = 6};
    config.plan.pipelines = {2, 2};
    return config;
}

}  // namespace

TEST_CASE("planned_cluster: its device, nodes and memory count")
{
    temporary_folder const folder;
    auto config = small_config();
    auto const model = running_model(config);
    config.plan.cluster = folder.write("slow.toml", cluster_of("0.01", "1.0"));
    auto const slow = make_plan(model, config, 4);
    REQUIRE(slow.error() == "");
    auto const request = *planning_request_of(model, config);
    CHECK(request.node_size == 2);
    CHECK(request.memory_limit == gibibytes(1));
    CHECK(membership_rules_of(config).node_size == 2);
    auto const forecast_of_slow = make_forecast(slow->plan, model, config);
    config.plan.cluster = folder.write("fast.toml", cluster_of("0.02", "1.0"));
    auto const fast = make_plan(model, config, 4);
    REQUIRE(fast.error() == "");
    auto const forecast_of_fast = make_forecast(fast->plan, model, config);
    REQUIRE(forecast_of_slow.step);
    REQUIRE(forecast_of_fast.step);
    CHECK(forecast_of_slow.step->count == Approx(2.0 * forecast_of_fast.step->count).epsilon(1e-3));

    config.plan.memory = mebibytes(700);  // a limit of the config's own stays
    CHECK(planning_request_of(model, config)->memory_limit == mebibytes(700));
    config.plan.memory = {};
    config.plan.cluster = folder.write("small.toml", cluster_of("0.02", "0.0001"));
    CHECK(make_plan(model, config, 4).error() ==
          "no pipeline of 2 ranks keeps within plan.memory_mib = 0.1024, the memory of a device in " + config.plan.cluster);
}

TEST_CASE("planned_cluster: one that cannot be is a sentence")
{
    temporary_folder const folder;
    auto config = small_config();
    auto const model = running_model(config);
    config.plan.cluster = folder.write("four.toml", cluster_of("0.01", "1.0"));
    config.plan.pipelines = {2, 3};
    CHECK(make_plan(model, config, 5).error() == config.plan.cluster + ": a cluster of 4 devices for 5 ranks; expected a device for each rank");
    config.plan.cluster = folder.write("none.toml", "schema = 2\n");
    CHECK(make_plan(model, config, 5).error().find("none.toml:1: schema") != std::string::npos);
    folder.write("job.toml", "schema = 1\nmodel = { width = 64, heads = 4, blocks = 6 }\nplan = { pipelines = [2, 2] }\n");
    auto const shown = run_rheo(folder, "plan job.toml --cluster four.toml");
    CHECK(shown.exit_code == 0);
    auto const refused = run_rheo(folder, "plan job.toml --cluster none.toml");
    CHECK(refused.exit_code == 2);
    CHECK(refused.err.find("none.toml:1: schema") != std::string::npos);
}
