// SPDX-License-Identifier: Apache-2.0
// The planner as a library call. What it plans for a config, tests/unit/executor/plan/planning.cpp says.
#include "rheo/planner/make_plan.hpp"

#include <string>
#include <vector>

#include "rheo/model/gpt.hpp"
#include "rheo/planner/contingency_plans.hpp"
#include "rheo/planner/make_forecast.hpp"
#include "rheo/schedule/families/families.hpp"
#include "rheo/schedule/families/interleaved.hpp"
#include "rheo/schedule/families/one_f_one_b.hpp"
#include "support/catch.hpp"

using namespace rheo;

namespace {

model_description const gpt = gpt_model({.vocabulary = 256, .context = 64, .width = 64, .heads = 4, .blocks = 6});

/// A schedule of one's own type.
struct mine {
    static constexpr std::string_view name = "mine";
    static constexpr rheo::program program(schedule_shape shape) { return interleaved::program(shape); }
};

}  // namespace

TEST_CASE("make_plan: every family, every number of ranks can run")
{
    for (auto const family : schedule_families()) {
        for (int ranks = 1; ranks <= 6; ++ranks) {
            INFO(name_of(family) << " on " << ranks);
            planning_request const request{.schedule = family, .microbatch = {4, 64, cuts_sequences(family) ? 2 : 1}, .failures = 0};
            auto const made = make_plan(gpt, request, ranks);
            REQUIRE(made);
            CHECK(made->plan.schedule == family);
            CHECK(plan_error(made->plan, gpt, request, ranks).empty());
            CHECK(plan_error(made->plan, gpt, request, ranks + 1) != "");
        }
    }
}

TEST_CASE("make_plan: a schedule without a known name is carried")
{
    planning_request const request{.schedule = mine{}, .failures = 0};
    auto const made = make_plan(gpt, request, 2);
    REQUIRE(made);
    CHECK(made->plan.schedule == mine{});
    CHECK(name_of(made->plan.schedule) == "mine");
    CHECK(plan_error(made->plan, gpt, request, 2).empty());
    auto named = made->plan;
    auto const nothing_known = detail::unknown_family("mine");
    named.schedule = any_schedule{nothing_known};
    CHECK(plan_error(named, gpt, request, 2) == "no schedule is called 'mine'");
    named.schedule = {};
    CHECK(plan_error(named, gpt, request, 2) == "a plan needs a schedule");
}

TEST_CASE("make_plan: the memory limit decides; errors name keys")
{
    planning_request request{.schedule = one_f_one_b{}, .pipelines = {2}, .failures = 0};
    auto const plain = make_plan(gpt, request, 2);
    REQUIRE(plain);
    bytes fullest;
    for (rank_id r{0}; r.value < 2; ++r) {
        fullest = std::max(fullest, needed_bytes(memory_parts_of(plain->plan, gpt, request.microbatch, request.policy, r)));
    }
    request.memory_limit = fullest;
    CHECK(plan_error(plain->plan, gpt, request, 2).empty());
    request.memory_limit = fullest - bytes{1};
    CHECK(plan_error(plain->plan, gpt, request, 2).find("of state and activations, but plan.memory_mib is ") != std::string::npos);
    request.memory_limit = bytes{104857};  // what 0.1 MiB is in whole bytes
    CHECK(make_plan(gpt, request, 2).error() == "no pipeline of 2 ranks keeps within plan.memory_mib = 0.1");
    request.memory_limit = mebibytes(2);
    CHECK(make_plan(gpt, request, 2).error() == "no pipeline of 2 ranks keeps within plan.memory_mib = 2");
}

TEST_CASE("make_plan: times are of the described machine")
{
    planning_request request{.schedule = one_f_one_b{}, .pipelines = {4}, .failures = 0};
    auto const slow = make_plan(gpt, request, 4);
    request.machine.between_nodes = {{1.0}, {1.0}};  // a message takes longer than all layers
    auto const slower = make_plan(gpt, request, 4);
    REQUIRE(slow);
    REQUIRE(slower);
    CHECK(slow->time < slower->time);
    request.pipelines.clear();
    auto const apart = make_plan(gpt, request, 4);
    REQUIRE(apart);
    CHECK(apart->plan.pipelines.size() == 4);  // so no rank sends any
}

TEST_CASE("make_forecast: a loss leads to what replanning makes")
{
    planning_request const request{.schedule = one_f_one_b{}, .pipelines = {2, 3}, .shares = {3, 5}, .failures = 1};
    auto const made = make_plan(gpt, request, 5);
    REQUIRE(made);
    auto const forecast = make_forecast(made->plan, gpt, request);
    REQUIRE(forecast.ranks.size() == 5);
    CHECK(forecast.as_it_stands.ranks == 1);
    auto const known = make_replanning(gpt, request, 5);
    for (auto const& outcome : forecast.ranks) {
        CHECK_FALSE(outcome.only_copy);
        CHECK(outcome.next.pipelines == outcome_of(outcome.lost, made->plan, known, membership_rules_of(request)).next.pipelines);
    }
    for (auto const& rank : forecast.memory) {
        CHECK(rank.parts == memory_parts_of(made->plan, gpt, request.microbatch, request.policy, rank.rank));
    }
    CHECK(forecast.instantiations.size() == 5);
    CHECK(forecast.step == made->time);
}
