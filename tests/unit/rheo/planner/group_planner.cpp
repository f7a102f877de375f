// SPDX-License-Identifier: Apache-2.0
// Which way to continue is taken with groups of ranks: hand-made cases, and laws over all losses of small clusters.
#include "rheo/planner/group_planner.hpp"

#include <algorithm>

#include "rheo/model/gpt.hpp"
#include "rheo/planner/make_replanning.hpp"
#include "rheo/schedule/families/families.hpp"
#include "rheo/schedule/families/one_f_one_b.hpp"
#include "support/catch.hpp"

using namespace rheo;

namespace {

model_description const gpt = on_grid(gpt_model({.vocabulary = 64, .context = 16, .width = 64, .heads = 4, .blocks = 3}), 4);

struct small_job {
    planning_request request;
    plan first;
    replanning known;
};

small_job job_of(int ranks, planning_request request)
{
    request.microbatches = 8;
    request.microbatch = {2, 16};
    auto made = make_plan(gpt, request, ranks);
    REQUIRE(made);
    auto known = make_replanning(gpt, request, ranks);
    return {std::move(request), std::move(made->plan), std::move(known)};
}

std::vector<rank_id> ranks(std::vector<int> const& values)
{
    std::vector<rank_id> all;
    for (auto const value : values) {
        all.push_back(rank_id{value});
    }
    return all;
}

/// What ranks hold of a plan; ranks without a place hold nothing.
std::vector<rank_holdings> held(small_job const& job, plan const& p, std::vector<rank_id> const& members)
{
    return holdings_under(p, members, job.known.cells_per_layer, job.known.optimizer);
}

recomposition continued(small_job const& job, plan const& before, std::vector<rank_id> const& members)
{
    auto next = job.known.regroup(before.pipelines, held(job, before, members), {});
    REQUIRE(next);
    return *std::move(next);
}

plan plan_with(small_job const& job, recomposition const& next) { return detail::plan_of(next.pipelines, next.shares, gpt, job.request); }

std::vector<std::vector<rank_id>> groups(recomposition const& next)
{
    std::vector<std::vector<rank_id>> all;
    for (auto const& pipeline : next.pipelines) {
        for (auto& group : groups_of(pipeline)) {
            all.push_back(std::move(group));
        }
    }
    return all;
}

constexpr seconds rarely{1e9};    ///< a longer step costs more than any copies
constexpr seconds at_once{1e-9};  ///< copies cost more than any step

}  // namespace

TEST_CASE("group_planner: never worse than the repair")
{
    for (auto const node_size : {1, 2, 3}) {
        for (auto const mtbf : {rarely, seconds{10.0}, at_once}) {
            auto const job = job_of(6, {.schedule = one_f_one_b{}, .tensor = {{2}}, .node_size = node_size, .mtbf = mtbf});
            auto const all = ranks_of(job.first);
            for (auto set = 1U; set < 1U << 6; ++set) {
                std::vector<rank_id> left;
                std::copy_if(all.begin(), all.end(), std::back_inserter(left), [&](rank_id rank) { return (set >> rank.value & 1U) != 0; });
                auto const now = held(job, job.first, left);
                auto const repaired = repair_groups(job.first.pipelines, left, {8, 1, node_size}, [](auto const&) { return true; });
                if (!repaired) {
                    continue;
                }
                INFO("nodes of " << node_size << ", left: " << set << ", " << mtbf.count << " s between losses");
                auto const next = continued(job, job.first, left);
                auto const tensors = tensor_bytes_of(job.known.state, job.known.formats);
                auto const survived = [&](recomposition const& choice) {
                    auto const after = held(job, plan_with(job, choice), left);
                    auto const can_lose = survivability_of(after, tensors, nodes_of(after, node_size));
                    return std::pair{std::min(can_lose.nodes, 1), std::min(can_lose.ranks, 1)};
                };
                CHECK(survived(next) >= survived(*repaired));
                CHECK(next.time == time_of_step(plan_with(job, next), gpt, job.request));
                CHECK(next.degraded == (next.pipelines.size() < 2));
                if (survived(next) == survived(*repaired)) {
                    auto const longer = time_of_step(plan_with(job, *repaired), gpt, job.request);
                    recovery_price const price{mtbf / static_cast<double>(left.size()), job.known.wanted.losses.copy_rate, std::min(longer, next.time), true};
                    CHECK(price(next.time, next.moved) <= price(longer, missing_bytes(now, held(job, plan_with(job, *repaired), left), tensors)));
                }
            }
        }
    }
}

TEST_CASE("group_planner: bytes that move are those of the copies")
{
    for (auto const shards : {false, true}) {
        auto const job = job_of(6, {.schedule = one_f_one_b{}, .tensor = {{2}}, .shard_optimizer = shards});
        for (int lost = 0; lost < 6; ++lost) {
            auto left = ranks_of(job.first);
            left.erase(left.begin() + lost);
            auto const now = held(job, job.first, left);
            auto const planned = plan_membership(now, job.first.pipelines, {}, job.known, membership_rules_of(job.request));
            REQUIRE(planned.error.empty());
            CHECK(continued(job, job.first, left).moved == planned.copies.certificate.needed.value);
        }
    }
}

TEST_CASE("group_planner: copies against a longer step")
{
    auto const lost_one = ranks({1, 2, 3, 4, 5, 6, 7});
    auto const next_of = [&](seconds mtbf) {
        auto const job = job_of(8, {.schedule = one_f_one_b{}, .pipelines = {4, 4}, .tensor = {{2}}, .mtbf = mtbf});
        return continued(job, job.first, lost_one);
    };
    auto const quick = next_of(rarely);
    auto const cheap = next_of(at_once);
    CHECK(quick.time < cheap.time);
    CHECK(cheap.moved < quick.moved);
    CHECK(quick.rebuilt);
    CHECK_FALSE(cheap.rebuilt);
}

TEST_CASE("group_planner: rebuilt groups keep the degree asked for")
{
    auto const left = ranks({1, 2, 3, 4, 5});
    auto const largest = [](recomposition const& next) {
        std::size_t most = 0;
        for (auto const& group : groups(next)) {
            most = std::max(most, group.size());
        }
        return most;
    };
    auto const asked = job_of(6, {.schedule = one_f_one_b{}, .tensor = {{2}}, .mtbf = rarely});
    CHECK(largest(continued(asked, asked.first, left)) == 2);
    auto const chosen = job_of(6, {.schedule = one_f_one_b{}, .tensor = {.values = {2}, .is_chosen = true}, .mtbf = rarely});
    auto const next = continued(chosen, chosen.first, left);
    CHECK(largest(next) == 1);  // without exchanges, where memory is not limited
    CHECK(next.time < continued(asked, asked.first, left).time);
    auto const needed = job_of(4, {.schedule = one_f_one_b{}, .pipelines = {2, 2}, .tensor = {{2}}, .node_size = 2});
    auto const two = continued(needed, needed.first, ranks({0, 1}));  // a node is lost: two copies need single ranks
    CHECK(groups(two).size() == 2);
    CHECK(largest(two) == 1);
}

TEST_CASE("group_planner: a rank that returns joins its group")
{
    auto const job = job_of(4, {.schedule = one_f_one_b{}, .pipelines = {2, 2}, .tensor = {{2}}, .node_size = 2});
    auto const shared = continued(job, job.first, ranks({0, 2, 3}));
    CHECK(groups(shared) == std::vector{ranks({0}), ranks({2, 3})});
    auto const p = plan_with(job, shared);
    auto const whole = continued(job, p, ranks({0, 1, 2, 3}));
    CHECK(groups(whole) == std::vector{ranks({0, 1}), ranks({2, 3})});
    CHECK(whole.spares.empty());
    auto reserved = job;
    reserved.request.spares = 1;
    reserved.known = make_replanning(gpt, reserved.request, 4);
    CHECK(continued(reserved, p, ranks({0, 1, 2, 3})).spares == ranks({1}));
}

TEST_CASE("group_planner: ranks that return make a pipeline")
{
    auto const job = job_of(6, {.schedule = one_f_one_b{}, .pipelines = {2, 2, 2}, .tensor = {{2}}, .node_size = 2});
    auto const two = continued(job, job.first, ranks({0, 1, 2, 3}));
    CHECK(groups(two) == std::vector{ranks({0, 1}), ranks({2, 3})});
    auto const in_force = plan_as_chosen(held(job, plan_with(job, two), ranks({0, 1, 2, 3, 4, 5})), job.known, membership_rules_of(job.request),
                                         recomposition{.pipelines = two.pipelines, .shares = two.shares, .spares = ranks({4, 5})});
    CHECK(would_regroup(in_force, job.known, membership_rules_of(job.request)));
    auto const next = plan_membership(in_force.salvage.after, in_force.pipelines, {}, job.known, membership_rules_of(job.request));
    REQUIRE(next.pipelines.size() == 3);
    CHECK(next.pipelines[2].stages == std::vector<std::vector<rank_id>>{ranks({4, 5})});
    CHECK(next.pipelines[0] == two.pipelines[0]);
    CHECK_FALSE(would_regroup(next, job.known, membership_rules_of(job.request)));
}

TEST_CASE("group_planner: one node holds all: copies on another")
{
    auto const job = job_of(4, {.schedule = one_f_one_b{}, .pipelines = {4}, .tensor = {{2}}, .node_size = 2});
    auto const rules = membership_rules_of(job.request);
    auto const chosen = recomposition_of(job.first);
    auto const now = plan_as_chosen(held(job, job.first, ranks({0, 1, 2, 3})), job.known, rules, chosen);
    CHECK_FALSE(now.safety_copies.empty());
    auto with_copies = now.salvage.after;
    for (auto const& copy : now.safety_copies) {
        CHECK(copy.from.value / 2 != copy.to.value / 2);
        auto& layers = with_copies[at(copy.to)].layers;
        layers.insert(std::upper_bound(layers.begin(), layers.end(), copy.layer), copy.layer);
    }
    CHECK(survivability_of(with_copies, tensor_bytes_of(job.known.state, job.known.formats), nodes_of(with_copies, 2)).nodes == 1);
}
