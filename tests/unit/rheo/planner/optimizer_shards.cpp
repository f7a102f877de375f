// SPDX-License-Identifier: Apache-2.0
// Plans with optimizer shards: what ranks keep, what losses lose, and what the planner counts.
#include "rheo/plan/optimizer_shards.hpp"

#include <algorithm>

#include "rheo/model/gpt.hpp"
#include "rheo/planner/changed_plan.hpp"
#include "rheo/planner/make_forecast.hpp"
#include "rheo/planner/make_plan.hpp"
#include "rheo/planner/make_replanning.hpp"
#include "rheo/planner/plan_error.hpp"
#include "rheo/reshard/verify_reshard.hpp"
#include "rheo/schedule/families/families.hpp"
#include "rheo/schedule/families/one_f_one_b.hpp"
#include "support/catch.hpp"

using namespace rheo;

namespace {

model_description model_on(int grid)
{
    auto model = gpt_model({.vocabulary = 96, .context = 16, .width = 64, .heads = 4, .blocks = 4, .tied = false});
    return grid == 1 ? model : on_grid(model, grid);
}

planning_request request_for(std::vector<int> pipelines, int failures = 1)
{
    return {.schedule = one_f_one_b{}, .microbatches = 12, .pipelines = std::move(pipelines), .failures = failures, .shard_optimizer = true};
}

}  // namespace

TEST_CASE("optimizer_shards: f + 1 ranks keep each moment")
{
    for (int const grid : {1, 4}) {
        auto const model = model_on(grid);
        for (int failures : {0, 1, 2}) {
            auto request = request_for({2, 2, 1, 3}, failures);
            if (grid > 1) {
                request.pipelines = {3, 1, 2, 3};
                request.tensor = {{2, 1, 1, 2, 1, 2}};
            }
            int ranks = 0;
            for (auto const n : request.pipelines) {
                ranks += n;
            }
            auto const made = make_plan(model, request, ranks);
            INFO(made.error());
            REQUIRE(made);
            CHECK(made->plan.optimizer == optimizer_shards{failures + 1, 1});
            auto whole = made->plan;
            whole.optimizer = {};
            bytes kept, all, others, others_whole;
            for (rank_id r{0}; r.value < ranks; ++r) {
                auto const mine = memory_parts_of(made->plan, model, request.microbatch, request.policy, r).state;
                auto const before = memory_parts_of(whole, model, request.microbatch, request.policy, r).state;
                kept += mine.moments;
                all += before.moments;
                others += total(mine) - mine.moments;
                others_whole += total(before) - before.moments;
            }
            bytes once;
            for (auto const& tensor : state_of(model).tensors) {
                once += tensor.is_parameter ? bytes{8 * elements(tensor.shape)} : bytes{};
            }
            CHECK(kept < all);
            CHECK(others == others_whole);
            CHECK(kept == once * (failures + 1));
        }
    }
}

TEST_CASE("optimizer_shards: the master goes with the moments")
{
    auto const model = model_on(1);
    auto request = request_for({2, 2, 1, 3});
    for (auto const& policy : {fp32, bf16, bf16_state}) {
        request.policy = policy;
        auto const made = make_plan(model, request, 8);
        REQUIRE(made);
        parameter_bytes kept{}, whole{};
        std::int64_t elements_of_all = 0;
        for (rank_id r{0}; r.value < 8; ++r) {
            auto const mine = memory_parts_of(made->plan, model, request.microbatch, request.policy, r).state;
            kept += mine;
            auto all = made->plan;
            all.optimizer = {};
            whole += memory_parts_of(all, model, request.microbatch, request.policy, r).state;
        }
        for (auto const& tensor : state_of(model).tensors) {
            elements_of_all += tensor.is_parameter ? elements(tensor.shape) : 0;
        }
        auto const twice = 2 * elements_of_all * size_of(policy.master);  // f + 1 keepers
        CHECK(kept.moments == bytes{2 * twice});
        CHECK(kept.master == (policy == bf16 ? bytes{twice} : whole.master));
        CHECK(kept.stored == whole.stored);

        auto const known = make_replanning(model, request, 8);
        auto const memory = make_in_place_memory(known.state, request);
        bytes committed;
        for (auto const size : memory.committed) {
            committed += size;
        }
        CHECK(committed == bytes{elements_of_all * (3 * size_of(policy.master) + (policy.stores_apart() ? size_of(policy.storage) : 0))});
    }
}

TEST_CASE("optimizer_shards: f losses lose nothing, f + 1 may")
{
    for (int const grid : {1, 4}) {
        auto const model = model_on(grid);
        auto request = request_for({2, 2, 2, 2});
        if (grid > 1) {
            request.tensor = {{2}};
        }
        auto const made = make_plan(model, request, 8);
        REQUIRE(made);
        auto const known = make_replanning(model, request, 8);
        auto const held = holdings_under(made->plan, ranks_of(made->plan), known.cells_per_layer, known.optimizer);
        bool some_are_lost = false;
        for (rank_id a{0}; a.value < 8; ++a) {
            for (rank_id b = a; b.value < 8; ++b) {
                auto left = held;
                std::erase_if(left, [&](rank_holdings const& holds) { return holds.rank == a || holds.rank == b; });
                auto const plan = plan_membership(left, made->plan.pipelines, {}, known, membership_rules_of(request));
                if (a != b) {
                    some_are_lost = some_are_lost || !plan.salvage.lost.empty();
                    continue;
                }
                REQUIRE(plan.salvage.lost.empty());
                REQUIRE(plan.error.empty());
                CHECK(plan.copies.certificate.moved.value == plan.copies.certificate.needed.value);
                std::vector<int> keepers(static_cast<std::size_t>(known.layers));
                for (auto const& holds : plan.salvage.after) {
                    for (auto const cell : holds.layers) {
                        ++keepers[at(cell)];
                    }
                }
                for (std::size_t c = 0; c < keepers.size(); ++c) {
                    bool const moments = static_cast<int>(c) % known.cells_per_layer >= grid_of(known);
                    CHECK((moments ? keepers[c] == 2 : keepers[c] >= 3));
                }
                CHECK(plan.safety_copies.empty());
                CHECK(plan.message.starts_with("any 1 rank"));
            }
        }
        CHECK(some_are_lost);
        auto const f = make_forecast(made->plan, model, request);
        CHECK(to_string(f.as_it_stands).starts_with("any 1 rank"));
        CHECK(f.pairs->state_lost > 0);
    }
}

TEST_CASE("optimizer_shards: keepers are on different nodes")
{
    auto const model = model_on(1);
    auto request = request_for({2, 2, 2, 2});
    request.node_size = 2;
    auto const made = make_plan(model, request, 8);
    REQUIRE(made);
    auto const f = make_forecast(made->plan, model, request);
    CHECK(f.as_it_stands.nodes == 1);
    for (auto const& outcome : f.nodes) {
        CHECK_FALSE(outcome.only_copy);
    }
}

TEST_CASE("optimizer_shards: memory counts what is kept")
{
    auto const model = model_on(1);
    auto request = request_for({1, 1, 1, 1, 1});
    auto const made = make_plan(model, request, 5);
    REQUIRE(made);
    bytes most;
    for (rank_id r{0}; r.value < 5; ++r) {
        most = std::max(most, needed_bytes(memory_parts_of(made->plan, model, request.microbatch, request.policy, r)));
    }
    request.memory_limit = most + bytes{most.count / 20};
    auto whole = request;
    whole.shard_optimizer = false;
    CHECK(optimizer_share(request) == 0.5);  // two of the four pipelines that a loss leaves
    CHECK(make_plan(model, whole, 5).error().find("plan.memory_mib") != std::string::npos);
    request.memory_limit = needed_bytes(memory_parts_of(made->plan, model, request.microbatch, request.policy, rank_id{0})) * 2;
    CHECK(make_plan(model, request, 5));
    request.memory_limit.reset();
    auto p = made->plan;
    CHECK(plan_error(p, model, request, 5).empty());
    p.optimizer = {};
    CHECK(plan_error(p, model, request, 5) ==
          "in the plan all holders keep moments, but by plan.optimizer_shards, plan.failures and plan.node_size 2 ranks keep each moment on nodes of 1 rank");
}
