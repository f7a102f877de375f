// SPDX-License-Identifier: Apache-2.0
// Plans for a described cluster: its device, nodes and memory count, and a cluster that cannot be is a sentence.
#include <algorithm>
#include <string>

#include "executor/config/files/schedule_file.hpp"
#include "executor/plan/choice_report.hpp"
#include "executor/plan/plan_report.hpp"
#include "executor/plan/planned_cluster.hpp"
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
    auto const error = make_plan(model, config, 4).error();
    CHECK(error.starts_with("no pipeline of 2 ranks keeps within plan.memory_mib = 0.1024; the least that one needs is "));
    CHECK(error.ends_with("; plan.memory_mib is the memory of a device in " + config.plan.cluster));
}

TEST_CASE("planned_cluster: ranks compute as their devices do")
{
    temporary_folder const folder;
    auto const path = folder.write("c.toml", cluster_of("10.0", "1.0") + "[[different]]\nnodes = 1\ncompute_tflops = 4.0\n");
    rank_id const ranks[] = {rank_id{0}, rank_id{1}, rank_id{3}};
    CHECK(compute_of(path, ranks).count == 24e12);
    rank_id const beyond[] = {rank_id{4}};
    CHECK(compute_of(path, beyond).count == 0);
    CHECK(compute_of("", ranks).count == 0);
    CHECK(compute_of((folder.path / "missing.toml").string(), ranks).count == 0);
}

TEST_CASE("planned_cluster: schedule, degree, pipelines are chosen")
{
    temporary_folder const folder;
    auto const cluster_with = [](std::string const& node_latency, std::string const& rack_latency, std::string const& memory) {
        return "schema = 1\n[device]\ncompute_tflops = 0.05\nmemory_rate_gb_per_s = 1e6\nmemory_gib = " + memory +
               "\n[[level]]\nname = \"node\"\nmembers = 2\ntopology = \"full\"\nlatency_us = " + node_latency +
               "\nrate_gb_per_s = 100\n[[level]]\nname = \"rack\"\nmembers = 2\ntopology = \"switch\"\nlatency_us = " + rack_latency +
               "\nrate_gb_per_s = 100\n";
    };
    auto config = small_config();
    config.train.shards = 4;
    config.plan.pipelines.clear();
    config.plan.failures = 0;
    config.plan.schedule = automatic_schedule();
    config.plan.tensor.values = {0};
    auto const model = running_model(config);
    struct one_case {
        std::string name;
        int microbatches;
        std::string cluster;
        int degree;         ///< that is chosen
        std::string binds;  ///< empty: computation
        recompute_policy recompute = recompute_policy::never;
    };
    std::string const exchanges = "time of messages and exchanges";
    for (auto const& [name, microbatches, cluster, degree, binds, recompute] :
         {one_case{"wide", 1, cluster_with("10", "1e5", "1"), 2, exchanges},
          {"narrow", 4, cluster_with("1e5", "1e5", "1"), 1, ""},
          {"shared for memory", 4, cluster_with("10", "0", "0.01"), 2, exchanges},
          {"recomputed for memory", 4, cluster_with("1e5", "1e5", "0.0135"), 1, "plan.memory_mib", recompute_policy::automatic}}) {
        INFO(name);
        config.train.microbatches = microbatches;
        config.plan.recompute = recompute;
        config.plan.cluster = folder.write(name, cluster);
        auto const made = make_plan(model, config, 4);
        REQUIRE(made.error() == "");
        CHECK(largest_group(made->plan) == degree);
        CHECK(ranks_of(made->plan).size() == 4);
        REQUIRE(made->compared.size() > 16);  // each schedule with one and with two ranks, which is what a node has
        CHECK(made->compared.front().degree == degree);
        CHECK(made->compared.front().schedule == made->plan.schedule);
        CHECK(made->compared.front().time == made->time);
        for (auto const& other : made->compared) {
            CHECK(other.degree <= 2);
            CHECK((!other.error.empty() || other.time >= made->time));
        }
        auto const limits = format_limits(limits_of_step(made->plan, model, config, 4), "as modelled");
        INFO(limits);
        CHECK(limits.find("what binds (a step of ") != std::string::npos);
        for (std::string const limit : {std::string{"waiting in the pipeline"}, exchanges, std::string{"plan.memory_mib"}}) {
            auto const line = limits.substr(limits.find(limit));
            CHECK((line.substr(0, line.find('\n')).find("binds") != std::string::npos) == (limit == binds));
        }
        auto const compared = format_comparison(made->compared, "as modelled");
        CHECK(compared.find("chosen") != std::string::npos);
        CHECK(std::count(compared.begin(), compared.end(), '\n') > 8);
    }
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
