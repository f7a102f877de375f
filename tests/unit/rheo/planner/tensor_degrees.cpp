// SPDX-License-Identifier: Apache-2.0
// Groups of ranks: which ranks share stages, what is refused, and plans of groups.
#include "rheo/planner/tensor_degrees.hpp"

#include "rheo/model/gpt.hpp"
#include "rheo/planner/make_forecast.hpp"
#include "rheo/planner/make_plan.hpp"
#include "rheo/planner/plan_error.hpp"
#include "rheo/schedule/families/families.hpp"
#include "rheo/schedule/families/one_f_one_b.hpp"
#include "support/catch.hpp"

using namespace rheo;

namespace {

model_description const wide = on_grid(gpt_model({.vocabulary = 256, .context = 64, .width = 64, .heads = 4, .blocks = 6}), 4);

std::vector<int> sizes_of_groups(ranks_in_groups const& made)
{
    std::vector<int> sizes;
    for (auto const& group : made.groups) {
        sizes.push_back(static_cast<int>(group.size()));
    }
    return sizes;
}

}  // namespace

TEST_CASE("tensor_degrees: ranks are grouped in their order")
{
    auto const even = group_ranks({{2}}, {}, numbered_ranks(7), 1, 1);
    REQUIRE(even);
    CHECK(sizes_of_groups(*even) == std::vector{2, 2, 2});
    CHECK(even->spares == std::vector{rank_id{6}});
    CHECK(even->pipelines.empty());
    auto const listed = group_ranks({{3, 1, 2}}, {4, 2}, numbered_ranks(6), 0, 1);
    REQUIRE(listed);
    CHECK(sizes_of_groups(*listed) == std::vector{3, 1, 2});
    CHECK(listed->pipelines == std::vector{2, 1});
    CHECK(listed->groups[2] == std::vector{rank_id{4}, rank_id{5}});
    auto const nodes = group_ranks({{3}}, {}, numbered_ranks(8), 0, 4);  // what is left of a node waits
    REQUIRE(nodes);
    CHECK(nodes->groups == std::vector<std::vector<rank_id>>{{rank_id{0}, rank_id{1}, rank_id{2}}, {rank_id{4}, rank_id{5}, rank_id{6}}});
    CHECK(nodes->spares == std::vector{rank_id{3}, rank_id{7}});
}

TEST_CASE("tensor_degrees: what cannot be grouped is refused")
{
    auto const refusal = [](tensor_degrees const& degrees, std::vector<int> const& pipelines, int ranks, int node_size = 1) {
        return group_ranks(degrees, pipelines, numbered_ranks(ranks), 0, node_size).error();
    };
    CHECK(refusal({{2}}, {3, 2}, 5) == "plan.pipelines = [3, 2] gives pipeline 0 3 ranks, which are no whole groups of plan.tensor = 2");
    CHECK(refusal({{2, 1}}, {3, 2}, 5) == "plan.pipelines = [3, 2] gives pipeline 1 2 ranks, which are no whole groups of plan.tensor = [2, 1]");
    CHECK(refusal({{2, 1, 2, 2}}, {3, 2}, 5) == "plan.tensor = [2, 1, 2, 2] must name the ranks of 3 positions, as plan.pipelines = [3, 2] has them, not of 4");
    CHECK(refusal({{2, 1}}, {}, 5) == "plan.tensor = [2, 1] names positions, so plan.pipelines must say how many ranks each pipeline has");
    CHECK(refusal({{2, 2, 1}}, {5}, 5, 3).empty());
    CHECK(refusal({{2, 2, 2}}, {6}, 6, 3) ==
          "plan.tensor = [2, 2, 2]: 3 groups do not fit into nodes of 3, 3 ranks; a group lies in one node of plan.node_size = 3");
    CHECK(refusal({{2, 3}}, {5}, 5, 4) == "plan.tensor = [2, 3]: 2 groups do not fit into nodes of 4, 1 ranks; a group lies in one node of plan.node_size = 4");
    CHECK(refusal({{3}}, {}, 4, 2) == "plan.tensor = 3: 1 group does not fit into nodes of 2, 2 ranks; a group lies in one node of plan.node_size = 2");
    CHECK(refusal({{2, 0}}, {2}, 2) == "plan.tensor = [2, 0] must name at least one rank for each position");
    CHECK(refusal({{4}}, {}, 3) == "plan.tensor = 4 needs more than 3 ranks");
    auto const on_two = on_grid(wide, 2);
    planning_request const four{.schedule = one_f_one_b{}, .tensor = {{4}}, .failures = 0};
    CHECK(make_plan(on_two, four, 4).error() == "plan.tensor = 4 needs train.shards of 4 or more; it is 2 and decides the bits");
}

TEST_CASE("tensor_degrees: every family has plans of groups")
{
    for (auto const family : schedule_families()) {
        for (auto const degree : {2, 3, 4}) {
            for (int ranks = degree; ranks <= 9; ranks += 2) {
                INFO(name_of(family) << " with " << degree << " ranks a stage on " << ranks);
                planning_request const request{
                    .schedule = family, .microbatch = {4, 64, cuts_sequences(family) ? 2 : 1}, .tensor = {{degree}}, .failures = 0, .node_size = 1};
                auto const made = make_plan(wide, request, ranks);
                REQUIRE(made);
                CHECK(plan_error(made->plan, wide, request, ranks).empty());
                CHECK(static_cast<int>(made->plan.spares.size()) == ranks % degree);
                for (auto const& pipeline : made->plan.pipelines) {
                    for (auto const& group : groups_of(pipeline)) {
                        CHECK(static_cast<int>(group.size()) == degree);
                    }
                }
            }
        }
    }
}

TEST_CASE("tensor_degrees: a member needs less memory than one rank")
{
    auto const parts_on = [&](int degree, rank_id rank) {
        planning_request const request{.schedule = one_f_one_b{}, .pipelines = {degree}, .tensor = {{degree}}, .failures = 0};
        auto const made = make_plan(wide, request, degree);
        REQUIRE(made);
        return memory_parts_of(made->plan, wide, request.microbatch, request.policy, rank);
    };
    auto const alone = parts_on(1, rank_id{0});
    for (auto const degree : {2, 3, 4}) {
        bytes together;
        for (rank_id r{0}; r.value < degree; ++r) {
            auto const mine = parts_on(degree, r);
            CHECK(total(mine.state) < total(alone.state));
            CHECK(mine.activations < alone.activations);
            together += total(mine.state);
        }
        CHECK(together > total(alone.state));  // what shards share
    }
}

TEST_CASE("tensor_degrees: a group on two nodes is refused")
{
    planning_request request{.schedule = one_f_one_b{}, .pipelines = {4}, .tensor = {{2}}, .failures = 0};
    auto const good = make_plan(wide, request, 4);
    REQUIRE(good);
    auto mixed = good->plan;
    mixed.pipelines[0].stages[0] = {rank_id{0}, rank_id{3}};
    mixed.pipelines[0].stages[1] = {rank_id{2}, rank_id{1}};
    CHECK(plan_error(mixed, wide, request, 4).empty());
    request.node_size = 2;
    CHECK(plan_error(mixed, wide, request, 4) == "ranks 0 and 3 share a stage, but lie on two nodes of plan.node_size = 2");
    auto twice = good->plan;
    twice.pipelines[0].stages[1] = {rank_id{0}, rank_id{3}};
    CHECK(plan_error(twice, wide, request, 4) == "rank 0 runs stages with different ranks; a position has one group for all of its stages");
}

TEST_CASE("tensor_degrees: any rank of a group can be lost")
{
    planning_request const request{.schedule = one_f_one_b{}, .pipelines = {4, 3}, .tensor = {{2, 2, 3}}, .failures = 1};
    auto const made = make_plan(wide, request, 7);
    REQUIRE(made);
    auto const f = make_forecast(made->plan, wide, request);
    CHECK(to_string(f.as_it_stands).starts_with("any 1 rank"));
    REQUIRE(f.ranks.size() == 7);
    for (auto const& outcome : f.ranks) {
        CHECK_FALSE(outcome.only_copy);
        CHECK(outcome.next.error.empty());
        CHECK(outcome.next.pipelines.size() == 2);
        auto p = made->plan;
        p.pipelines = outcome.next.pipelines;
        for (auto const& pipeline : p.pipelines) {
            CHECK(detail::group_error(pipeline, 4, 1).empty());
            for (auto const rank : ranks_of(pipeline)) {
                CHECK(rank != outcome.lost.front());
            }
        }
    }
    REQUIRE(f.pairs);
    CHECK(f.pairs->state_lost > 0);  // both holders of a shard
    CHECK(f.pairs->as_wanted > 0);
    auto alone = request;
    alone.pipelines = {2};
    alone.tensor = {{2}};
    auto const single = make_plan(wide, alone, 2);
    REQUIRE(single);
    CHECK(make_forecast(single->plan, wide, alone).ranks.front().only_copy);
}

TEST_CASE("tensor_degrees: the planner takes the shortest step")
{
    planning_request request{.schedule = one_f_one_b{}, .microbatches = 8, .tensor = {{0}}, .failures = 0};
    auto const chosen = make_plan(wide, request, 4);
    REQUIRE(chosen);
    REQUIRE(chosen->compared.size() == 4);
    auto shortest = chosen->time;
    for (auto const& one : chosen->compared) {
        if (one.error.empty()) {
            shortest = std::min(shortest, one.time);
        }
    }
    CHECK(chosen->time == shortest);
    CHECK(time_of_step(chosen->plan, wide, request) == shortest);

    request.pipelines = {4};  // of single ranks it has a bubble
    request.machine.between_nodes = {{1e-9}, {1e15}};
    auto const free = make_plan(wide, request, 4);
    REQUIRE(free);
    CHECK(largest_group(free->plan) == 4);
    request.machine.between_nodes = {{1.0}, {1e3}};
    auto const dear = make_plan(wide, request, 4);
    REQUIRE(dear);
    CHECK(largest_group(dear->plan) == 1);
}

TEST_CASE("tensor_degrees: memory binds before time")
{
    planning_request request{.schedule = one_f_one_b{}, .microbatches = 8, .tensor = {{0}}, .failures = 0};
    request.machine.between_nodes = {{1.0}, {1e3}};
    auto const needed = [&](plan const& p) {
        bytes most;
        for (auto const rank : ranks_of(p)) {
            auto parts = memory_parts_of(p, wide, request.microbatch, request.policy, rank);
            parts.workspace = {};
            most = std::max(most, needed_bytes(parts));
        }
        return most;
    };
    request.pipelines = {4};
    request.tensor = {{4}};
    auto const shared = make_plan(wide, request, 4);
    request.tensor = {{1}};
    auto const single = make_plan(wide, request, 4);
    REQUIRE(shared);
    REQUIRE(single);
    REQUIRE(needed(shared->plan) < needed(single->plan));
    request.tensor = {{0}};
    request.memory_limit = needed(shared->plan);
    auto const chosen = make_plan(wide, request, 4);
    REQUIRE(chosen);
    CHECK(largest_group(chosen->plan) > 1);
    CHECK(std::any_of(chosen->compared.begin(), chosen->compared.end(), [](compared_plan const& one) { return one.degree == 1 && !one.error.empty(); }));
    request.memory_limit = bytes{10000};
    CHECK(make_plan(wide, request, 4).error().starts_with("plan.tensor = 0: no number of ranks can share stages, 1 to 4; alone, "));
}

TEST_CASE("tensor_degrees: cuts that fit are found")
{
    auto const embedded = on_grid(gpt_model({.vocabulary = 1024, .context = 64, .width = 64, .heads = 4, .blocks = 6}), 4);  // parameters without work
    auto const layers = static_cast<int>(embedded.layers.size());
    for (auto const policy : {recompute_policy::never, recompute_policy::selective}) {
        planning_request request{
            .schedule = one_f_one_b{}, .microbatches = 8, .microbatch = {2, 64}, .pipelines = {4, 4}, .tensor = {{2}}, .recompute = policy};
        auto const quickest = make_plan(embedded, request, 8);
        REQUIRE(quickest);
        bytes fullest;
        for (auto const rank : ranks_of(quickest->plan)) {
            fullest = std::max(fullest, needed_bytes(memory_parts_of(quickest->plan, embedded, request.microbatch, request.policy, rank)));
        }
        int found = 0, others = 0;
        for (int percent = 50; percent <= 110; percent += 3) {
            request.memory_limit = bytes{fullest.count * percent / 100};
            bool fits = false;
            for (int cut = 1; cut < layers; ++cut) {  // both pipelines alike, as templates are
                auto by_hand = request;
                by_hand.layers = {cut, layers - cut, cut, layers - cut};
                fits = fits || make_plan(embedded, by_hand, 8);
            }
            auto const made = make_plan(embedded, request, 8);
            INFO(percent << " % of what the quickest cut needs: " << made.error());
            CHECK(static_cast<bool>(made) == fits);
            found += made ? 1 : 0;
            others += made && made->plan.pipelines != quickest->plan.pipelines ? 1 : 0;
        }
        CHECK(found > 0);
        CHECK(found < 21);
        CHECK((others > 0 || policy != recompute_policy::never));
    }
}

TEST_CASE("tensor_degrees: uneven shares cost time and memory")
{
    planning_request const request{.schedule = one_f_one_b{}, .microbatches = 8, .pipelines = {4}, .tensor = {{2}}, .failures = 0};
    auto const made = make_plan(wide, request, 4);
    REQUIRE(made);
    auto const grid = grid_of(wide);
    auto p = made->plan;
    p.pipelines[0].shares = {even_shares(grid, 2), even_shares(grid, 2)};
    CHECK(time_of_step(p, wide, request) == made->time);
    auto const needs = [&](int rank) {
        return needed_bytes(memory_parts_of(p, wide, request.microbatch, request.policy, p.pipelines[0].stages[0][static_cast<std::size_t>(rank)]));
    };
    auto const even = needs(1);
    p.pipelines[0].shares[0] = {1, grid - 1};
    CHECK(plan_error(p, wide, request, 4).empty());
    CHECK(time_of_step(p, wide, request) > made->time);
    CHECK(needs(0) < even);
    CHECK(needs(1) > even);
}

TEST_CASE("tensor_degrees: parts of a step add up")
{
    for (std::vector<int> const& tensor : {std::vector{2}, std::vector{3, 1}, std::vector{1, 1, 2}}) {
        planning_request const request{.schedule = one_f_one_b{}, .microbatches = 8, .pipelines = {4}, .tensor = {tensor}, .failures = 0};
        auto const made = make_plan(wide, request, 4);
        REQUIRE(made);
        CHECK(made->time == time_of_step(made->plan, wide, request));
        auto const parts = parts_of_step(made->plan, wide, request, made->time);
        CHECK(parts.computing > 0);
        CHECK(parts.exchanging > 0);
        CHECK(parts.waiting > 0);
        CHECK(parts.computing + parts.exchanging + parts.waiting == Approx(1.0));
        auto const forecast = make_forecast(made->plan, wide, request);
        CHECK(forecast.step == made->time);
        for (auto const& outcome : forecast.ranks) {
            CHECK((outcome.only_copy || outcome.step > seconds{}));
        }
    }
}
