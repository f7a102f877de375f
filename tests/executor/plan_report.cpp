// SPDX-License-Identifier: Apache-2.0
#include "runtime/plan_report.hpp"

#include <string>

#include "catch.hpp"
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
    auto const text = plan_for_people(p, model, config);
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
    auto const text = plan_for_people(first.what, model, config, {.node_size = 3, .device_memory = mebibytes(64)});
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
    has(" lose the last copy of a layer");

    auto measured = modelled_layers(model, config);
    measured[5].backward = seconds{1.0};
    auto const profiled = plan_for_people(first.what, model, config, {.layers = measured});
    CHECK(profiled.find("templates (as profiled, at 3 microbatches)\n") != std::string::npos);
    CHECK(profiled.find("  2        30") != std::string::npos);  // three microbatches of at least a second each

    auto const tight = plan_for_people(first.what, model, config, {.device_memory = mebibytes(1)});
    CHECK(tight.find("  2      no cuts found whose stages fit into the memory of their devices") != std::string::npos);
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

TEST_CASE("a rank's memory is its state and what is in flight; a tied tensor of one rank counts once")
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
    auto const shape = config.train.microbatch;
    auto const table = bytes{std::int64_t{256} * 64 * 24};
    CHECK(memory_of(p, untied, shape, rank_id{0}) - memory_of(p, model, shape, rank_id{0}) == table);
    CHECK(memory_of(p, model, shape, rank_id{1}) == bytes{0});
    auto gpipe = p;
    gpipe.schedule = "gpipe";  // all five microbatches in flight instead of one
    auto const state = memory_of(p, model, {0, 0}, rank_id{0});
    CHECK((memory_of(gpipe, model, shape, rank_id{0}) - state) / (memory_of(p, model, shape, rank_id{0}) - state) == 5);
}
