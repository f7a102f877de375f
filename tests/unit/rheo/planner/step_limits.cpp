// SPDX-License-Identifier: Apache-2.0
// What bounds a step: cases in which one limit is the only one, and no limit that makes a step longer when it is gone.
#include "rheo/planner/step_limits.hpp"

#include <algorithm>

#include "rheo/model/gpt.hpp"
#include "rheo/model/grid.hpp"
#include "rheo/plan/rank_memory.hpp"
#include "rheo/planner/make_plan.hpp"
#include "rheo/schedule/families/gpipe.hpp"
#include "rheo/schedule/families/one_f_one_b.hpp"
#include "support/catch.hpp"

using namespace rheo;

namespace {

model_description const gpt = on_grid(gpt_model({.vocabulary = 256, .context = 64, .width = 64, .heads = 4, .blocks = 6}), 2);

step_limits limits_for(planning_request const& request, int ranks)
{
    auto const made = make_plan(gpt, request, ranks);
    REQUIRE(made);
    auto const limits = limits_of_step(made->plan, gpt, request, ranks);
    CHECK(limits.step == time_of_step(made->plan, gpt, request));
    CHECK(limits.without_link_time <= limits.step);
    CHECK(limits.without_waiting <= limits.step);
    CHECK(limits.without_memory_limit.has_value() == request.memory_limit.has_value());
    CHECK(limits.without_memory_limit.value_or(limits.step) <= limits.step);
    return limits;
}

}  // namespace

TEST_CASE("step_limits: a rank alone computes")
{
    auto const limits = limits_for({.schedule = one_f_one_b{}, .pipelines = {1}, .failures = 0}, 1);
    CHECK(binding_limit(limits) == step_limit::computation);
    CHECK(limits.without_waiting.count == Approx(limits.step.count).epsilon(1e-4));  // whole nanoseconds
}

TEST_CASE("step_limits: few microbatches wait")
{
    planning_request request{.schedule = gpipe{}, .microbatches = 2, .pipelines = {4}, .failures = 0};
    CHECK(binding_limit(limits_for(request, 4)) == step_limit::waiting);
    request.recompute = recompute_policy::always;  // is computation
    auto const limits = limits_for(request, 4);
    CHECK(binding_limit(limits) == step_limit::waiting);
    double computed = 0;
    for (auto const& layer : planned_layers(gpt, request)) {
        computed += 2 * (2 * layer.forward + layer.backward).count / 4;
    }
    CHECK(limits.without_waiting.count == Approx(computed).epsilon(1e-3));
}

TEST_CASE("step_limits: recomputing layers count, in slices, too")
{
    for (int const slices : {1, 2}) {
        planning_request request{.schedule = gpipe{}, .microbatch = {4, 64, slices}, .pipelines = {2}, .failures = 0};
        auto const whole = make_plan(gpt, request, 2);
        REQUIRE(whole);
        bytes fullest;
        for (auto const rank : ranks_of(whole->plan)) {
            fullest = std::max(fullest, needed_bytes(memory_parts_of(whole->plan, gpt, request.microbatch, request.policy, rank)));
        }
        request.recompute = recompute_policy::selective;
        request.memory_limit = bytes{fullest.count * (slices == 1 ? 6 : 9) / 10};
        auto const less = make_plan(gpt, request, 2);
        REQUIRE(less);
        REQUIRE_FALSE(less->plan.recompute.levels.empty());
        auto const limits = limits_for(request, 2);
        if (slices == 1) {  // slices drop only what costs nothing to recompute
            CHECK(limits.step > time_of_step(whole->plan, gpt, request));
        }
    }
}

TEST_CASE("step_limits: slow links bind, of messages and of exchanges")
{
    for (int const degree : {1, 2}) {
        planning_request request{.schedule = one_f_one_b{}, .microbatches = 32, .pipelines = {2}, .tensor = {{degree}}, .failures = 0};
        request.machine.between_nodes = {{0.0}, {1e6}};
        auto const limits = limits_for(request, 2);
        CHECK((degree == 1 ? limits.without_link_time < limits.step * 0.6 : binding_limit(limits) == step_limit::links));
        request.machine.between_nodes = {{0.0}, {1e15}};
        auto const quick = limits_for(request, 2);
        CHECK(quick.without_link_time.count == Approx(quick.step.count).epsilon(1e-3));
    }
}

TEST_CASE("step_limits: a memory limit binds where all is recomputed")
{
    planning_request request{.schedule = gpipe{}, .microbatches = 32, .pipelines = {2}, .failures = 0};
    request.recompute = recompute_policy::always;
    auto const smallest = make_plan(gpt, request, 2);
    REQUIRE(smallest);
    request.recompute = recompute_policy::automatic;
    for (auto const rank : ranks_of(smallest->plan)) {
        auto const needed = needed_bytes(memory_parts_of(smallest->plan, gpt, request.microbatch, request.policy, rank));
        request.memory_limit = std::max(request.memory_limit.value_or(needed), needed);
    }
    auto const limits = limits_for(request, 2);
    CHECK(binding_limit(limits) == step_limit::memory);
    CHECK(*limits.without_memory_limit < limits.step * 0.8);
}
