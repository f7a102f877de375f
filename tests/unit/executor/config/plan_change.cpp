// SPDX-License-Identifier: Apache-2.0
// Changes of the plan of a running job: their text, the config after them, and their errors.
#include "executor/config/plan_change.hpp"

#include "executor/config/toml.hpp"
#include "rheo/units/exit_error.hpp"
#include "support/catch.hpp"

using namespace rheo;

namespace {

run_config four_shards()
{
    return read_config("schema = 1\ntrain.shards = 4\nmodel.width = 64\nmodel.heads = 4\nplan.pipelines = [2, 2]\n", "job.toml").config;
}

std::string refusal(std::string const& text) { return plan_change_of(text).error(); }

std::string refusal_of_schedule(std::vector<std::string> changes)
{
    auto config = four_shards();
    config.plan.changes = std::move(changes);
    return error_of_changes(config);
}

}  // namespace

TEST_CASE("plan_change: a step and its settings")
{
    auto const change = plan_change_of("100: tensor=2 plan.pipelines=[4, 4]");
    REQUIRE(change);
    CHECK(change->step == 100);
    CHECK(change->settings == std::vector<std::string>{"plan.tensor=2", "plan.pipelines=[4, 4]"});
    CHECK(text_of(change->settings) == "tensor=2 pipelines=[4, 4]");
}

TEST_CASE("plan_change: what is no change is refused")
{
    CHECK(refusal("tensor=2").starts_with("'tensor=2' is no change; expected the number of steps after which it is made"));
    CHECK(refusal("0: tensor=2").find("is no change") != std::string::npos);
    CHECK(refusal("5:") == "'5:': a change sets at least one of plan.pipelines, plan.tensor, plan.layers, plan.shares, plan.spares");
    CHECK(refusal("5: tensor") == "'5: tensor': 'tensor' is no setting; expected key=value, for example tensor=2");
    CHECK(refusal("5: train.seed=3") ==
          "'5: train.seed=3': train.seed cannot change while a job runs; plan.pipelines, plan.tensor, plan.layers, plan.shares, plan.spares can");
    CHECK(refusal("5: tenso=2") ==
          "'5: tenso=2': unknown key plan.tenso; the nearest known one is plan.tensor; a change can set plan.pipelines, plan.tensor, "
          "plan.layers, plan.shares, plan.spares");
    CHECK(refusal("5: train.sed=2").find("unknown key train.sed; the nearest known one is train.seed; a change can set plan.pipelines, ") != std::string::npos);
    CHECK(refusal("5: tensor=2 tensor=4") == "'5: tensor=2 tensor=4': plan.tensor is set twice in one change");
}

TEST_CASE("plan_change: cuts and shares follow new pipelines")
{
    auto config = four_shards();
    config.plan.layers = {1, 5, 3, 3};
    config.plan.shares = {3, 5};
    std::vector<std::string> settings{"plan.tensor=2"};
    auto changed = changed_config(config, settings);
    REQUIRE(changed);
    CHECK(changed->plan.tensor.values == std::vector{2});
    CHECK(changed->plan.layers.empty());
    CHECK(changed->plan.shares == config.plan.shares);
    settings = {"plan.pipelines=[1,3]", "plan.shares=[1,7]"};
    changed = changed_config(config, settings);
    REQUIRE(changed);
    CHECK(changed->plan.pipelines == std::vector{1, 3});
    CHECK(changed->plan.layers.empty());
    CHECK(changed->plan.shares == std::vector{1, 7});
    settings = {"plan.pipelines=2"};
    CHECK(changed_config(config, settings).error() == "plan.pipelines=2: plan.pipelines must be a list of whole numbers, not a whole number");
}

TEST_CASE("plan_change: a schedule of changes is checked as a whole")
{
    CHECK(refusal_of_schedule({"3: tensor=2", "5: pipelines=[4]"}).empty());
    CHECK(refusal_of_schedule({"5: tensor=2", "5: tensor=1"}) == "plan.changes: the steps of the changes must ascend, but 5 follows 5");
    CHECK(refusal_of_schedule({"100: tensor=2"}) == "plan.changes: '100: tensor=2' comes after the last of train.steps = 100 has begun; expected at most 99");
    CHECK(refusal_of_schedule({"5: shares=[1,2,3]"}) ==
          "plan.changes: '5: shares=[1,2,3]': plan.shares = [1, 2, 3] must name as many shares as plan.pipelines = [2, 2] names pipelines");
    CHECK_THROWS_AS(read_config("schema = 1\nplan.changes = [\"x\"]\n", "job.toml"), exit_error);
}
