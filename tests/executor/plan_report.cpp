// SPDX-License-Identifier: Apache-2.0
#include "runtime/plan_report.hpp"

#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "catch.hpp"
#include "executor/temporary_folder.hpp"
#include "runtime/plan_file.hpp"
#include "runtime/plan_json.hpp"
#include "runtime/job_templates.hpp"
#include "runtime/planning.hpp"

using namespace rheo;

namespace {

run_config five_ranks()
{
    run_config config;
    config.model.blocks = 4;
    config.train.microbatches = 5;
    config.plan.pipelines = {2, 3};
    config.plan.shares = {2, 3};
    config.plan.min_ranks = 2;
    return config;
}

}  // namespace

TEST_CASE("the plan of five ranks, as people see it")
{
    auto const config = five_ranks();
    auto const model = gpt_model(config.model);
    auto const p = make_first_plan(model, config, 5).what;
    CHECK(drawing_of(p) == R"(pipeline 0
0 | F0 F1 .  .  B0 =  .  B1 =
1 | .  F0 B0 =  F1 B1 =  .  .
pipeline 1
0 | F2 F3 F4 .  .  .  .  B2 =  .  B3 =  .  B4 =
1 | .  F2 F3 .  .  B2 =  F4 B3 =  .  B4 =  .  .
2 | .  .  F2 B2 =  F3 B3 =  F4 B4 =  .  .  .  .
)");
    auto const text = plan_for_people(p, model, config, foresee(p, model, config));
    CHECK(text.find("checked: with all transfers and reductions, no rank waits for ever") != std::string::npos);
    CHECK(text.find("pipeline 1: 3 of 5 microbatches") != std::string::npos);
    for (int r = 0; r < 5; ++r) {
        CHECK(after_loss_of(rank_id{r}, p, model, config).find("2 pipelines of 2 + 2 ranks, shares 3 + 2") == 0);
    }
}

TEST_CASE("templates, what every number of ranks runs, and what losses lead to are all printed")
{
    auto const config = five_ranks();
    auto const model = gpt_model(config.model);
    auto const first = make_first_plan(model, config, 5);
    auto const what = foresee(first.what, model, config, {.node_size = 3, .device_memory = mebibytes(64)});
    auto const text = plan_for_people(first.what, model, config, what);
    auto const has = [&](std::string const& line) {
        CAPTURE(line, text);
        CHECK(text.find(line) != std::string::npos);
    };
    has("templates (as modelled, at 3 microbatches)\n  ranks       makespan   optimum        fullest    fit   cuts before layers\n  2 ");
    has("proved");
    has("templates of whole nodes of 3 devices (planned and priced; ranks do not share stages yet)\n");
    has("; devices per stage ");
    has("what ranks run (2 pipelines wanted)\n");
    has("  5      2 + 3  ");
    has("  4      2 + 2  ");
    has(", fewer pipelines than wanted\n");
    has("  1      1 rank is too few: the smallest pipeline template takes 2\n");
    has("as it stands, any 1 rank can be lost, but the loss of node 0 would lose state");  // rank 2 stands beside rank 0, which has the other copy
    has("  node 0   the only copy of layer 0 is lost");
    has("  node 1   1 pipeline of 3 ranks");
    has("  any two   of 10 pairs, ");
    for (auto const& [rank, parts] : what.memory) {
        has(fmt::format("    rank {:<4}{:>9.2f} MiB   layers ", rank.value, in_mebibytes(memory_of(first.what, model, config, rank))));
        has(fmt::format("\n                            {:.2f} master parameters, {:.2f} moments, {:.2f} accumulators, {:.2f} reduced gradients, {:.2f} activations, {:.2f} to work in besides\n",
                        in_mebibytes(parts.state.master), in_mebibytes(parts.state.moments), in_mebibytes(parts.state.accumulators), in_mebibytes(parts.state.reduced),
                        in_mebibytes(parts.activations), in_mebibytes(parts.workspace)));
    }
    has(" lose the last copy of a layer");

    auto measured = modelled_layers(model, config);
    measured[5].backward = seconds{1.0};
    auto const profiled = plan_for_people(first.what, model, config, foresee(first.what, model, config, {.layers = measured}));
    CHECK(profiled.find("templates (as profiled, at 3 microbatches)\n") != std::string::npos);
    CHECK(profiled.find("  2        30") != std::string::npos);  // three microbatches of at least a second each

    auto const tight = plan_for_people(first.what, model, config, foresee(first.what, model, config, {.device_memory = mebibytes(1)}));
    CHECK(tight.find("  2      no cuts found whose stages fit into the memory of their devices") != std::string::npos);
    auto limited = config;
    limited.plan.memory_mib = 64;
    CHECK(foresee(first.what, model, limited, {}).templates == foresee(first.what, model, config, {.device_memory = mebibytes(64)}).templates);
    CHECK(foresee(first.what, model, limited, {.device_memory = mebibytes(1)}).templates == foresee(first.what, model, config, {.device_memory = mebibytes(1)}).templates);
    limited.plan.recompute = recomputing::by_layers;
    CHECK(plan_for_people(first.what, model, limited, foresee(first.what, model, limited, {})).find("; the fullest where all is made again that can be)") != std::string::npos);
}

TEST_CASE("the same as JSON, in the file that training reads")
{
    auto const config = five_ranks();
    auto const model = gpt_model(config.model);
    auto const p = make_first_plan(model, config, 5).what;
    auto const what = foresee(p, model, config, {.node_size = 2, .device_memory = mebibytes(64)});
    temporary_folder const folder;
    folder.write("plan.json", plan_as_json(p, what));
    CHECK(read_plan_file((folder.path / "plan.json").string()) == p);

    auto const whole = nlohmann::json::parse(folder.read("plan.json"));
    CHECK(whole["kind"] == "rheo plan");
    auto const& told = whole["foreseen"];
    REQUIRE(told["templates"].size() == what.templates.size());
    for (std::size_t i = 0; i < what.templates.size(); ++i) {
        auto const& split = what.templates[i].split;
        auto const& object = told["templates"][i];
        CHECK(object["ranks"] == what.templates[i].nodes);
        CHECK(object["makespan_s"] == split.makespan.count);
        CHECK(object["bound_s"] <= object["makespan_s"]);
        CHECK(object["proved"] == split.is_optimal());
        CHECK(object["cuts"].size() == split.cuts.size());
        CHECK(object["fullest_bytes"] == what.templates[i].fullest.count);
        CHECK(object["fitting_microbatches"] == what.templates[i].most_microbatches);
    }
    CHECK(told["node_templates"].size() == what.node_templates.size());
    CHECK(told["node_templates"][0]["devices"] == what.node_templates[0].split.devices);
    REQUIRE(told["instantiations"].size() == 5);
    CHECK(told["instantiations"][0]["ranks"] == 5);
    CHECK(told["instantiations"][0]["pipelines"] == std::vector{2, 3});
    CHECK(told["instantiations"][0]["microbatches"] == what.instantiations[0].shares);
    CHECK(told["instantiations"][3]["degraded"] == true);
    CHECK(told["instantiations"][4] == nlohmann::json{{"ranks", 1}, {"cannot", what.instantiations[4].cannot}});
    REQUIRE(told["memory"].size() == 5);
    for (int r = 0; r < 5; ++r) {
        auto const& memory = told["memory"][static_cast<std::size_t>(r)];
        CHECK(memory["rank"] == r);
        std::int64_t sum = 0;
        for (auto const& [key, value] : memory.items()) {
            sum += key == "rank" || key == "needed_bytes" || key == "workspace_bytes" ? 0 : value.get<std::int64_t>();
        }
        CHECK(memory["needed_bytes"] == sum);
        CHECK(sum == memory_of(p, model, config, rank_id{r}).count);
        CHECK(memory["workspace_bytes"] > 0);
    }
    CHECK(told["survivable"]["ranks"] == 1);
    CHECK(told["survivable"]["sentence"] == to_string(what.as_it_stands));
    REQUIRE(told["after_loss_of_rank"].size() == 5);
    for (int r = 0; r < 5; ++r) {
        auto const& loss = told["after_loss_of_rank"][static_cast<std::size_t>(r)];
        CHECK(loss["lost"] == std::vector{r});
        CHECK(loss["microbatches"] == std::vector{3, 2});
        CHECK(loss["pipelines"].size() == 2);
        CHECK(loss["copied_bytes"] == what.ranks[static_cast<std::size_t>(r)].next.moved.count);
        CHECK(loss["copied_bytes"] >= 0);
    }
    REQUIRE(told["after_loss_of_node"].size() == 3);
    CHECK(told["after_loss_of_node"][0]["lost"] == std::vector{0, 1});
    CHECK(told["after_loss_of_node"][0]["degraded"] == true);
    auto const& pairs = told["after_loss_of_two_ranks"];
    CHECK(pairs["pairs"] == 10);
    CHECK(pairs["as_wanted"].get<int>() + pairs["fewer_pipelines"].get<int>() + pairs["too_few_ranks"].get<int>() + pairs["state_lost"].get<int>() == 10);
    CHECK(pairs["state_lost"] > 0);
}

TEST_CASE("the loss of an only copy is said before it happens")
{
    auto config = five_ranks();
    config.plan.pipelines = {3};
    config.plan.shares = {};
    auto const model = gpt_model(config.model);
    auto const p = make_first_plan(model, config, 3).what;
    CHECK(after_loss_of(rank_id{0}, p, model, config) == "the only copy of layer 0 is lost; without a checkpoint the run ends with exit code 6");
}

TEST_CASE("a rank's memory is its state and what is in flight; a tied tensor of one rank counts once, but for its two accumulators")
{
    auto config = five_ranks();
    config.plan.pipelines = {1};
    config.plan.min_ranks = 1;
    config.plan.shares = {};
    auto const model = gpt_model(config.model);
    auto const p = make_first_plan(model, config, 1).what;
    auto untied_shape = config.model;
    untied_shape.tied = false;
    auto const untied = gpt_model(untied_shape);
    auto const table = bytes{std::int64_t{256} * 64 * 16};
    CHECK(memory_of(p, untied, config, rank_id{0}) - memory_of(p, model, config, rank_id{0}) == table);
    CHECK(memory_of(p, model, config, rank_id{1}) == bytes{0});
    auto const parts = memory_parts_of(p, model, config, rank_id{0});
    CHECK(total(parts.state) == state_bytes_of(p, model, config, rank_id{0}));
    CHECK(parts.activations + parts.kept_gradients == activations_of(p, model, config, rank_id{0}));
    CHECK(total(parts) - parts.workspace == memory_of(p, model, config, rank_id{0}));
    auto gpipe = p;
    gpipe.schedule = "gpipe";  // all five microbatches in flight instead of one
    auto const state = state_bytes_of(p, model, config, rank_id{0});
    CHECK((memory_of(gpipe, model, config, rank_id{0}) - state) / (memory_of(p, model, config, rank_id{0}) - state) == 5);
}
