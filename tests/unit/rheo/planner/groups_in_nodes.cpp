// SPDX-License-Identifier: Apache-2.0
// Each group lies in one node, also after losses and changes, when the numbers of the ranks have gaps. Small clusters are tried with all their losses.
#include <algorithm>
#include <optional>

#include "rheo/model/gpt.hpp"
#include "rheo/plan/holdings_under.hpp"
#include "rheo/plan/rank_memory.hpp"
#include "rheo/planner/make_plan_on.hpp"
#include "rheo/planner/make_replanning.hpp"
#include "rheo/planner/plan_error.hpp"
#include "rheo/planner/tensor_degrees.hpp"
#include "rheo/schedule/families/families.hpp"
#include "rheo/schedule/families/one_f_one_b.hpp"
#include "support/catch.hpp"

using namespace rheo;

namespace {

constexpr int grid = 4;
model_description const gpt = on_grid(gpt_model({.vocabulary = 64, .context = 16, .width = 64, .heads = 4, .blocks = 2}), grid);

struct cluster_of {
    int ranks;
    int node_size;
};

planning_request request_for(cluster_of cluster, std::vector<int> tensor, std::vector<int> pipelines = {}, int failures = 1)
{
    return {.schedule = one_f_one_b{},
            .microbatches = 4,
            .microbatch = {2, 16},
            .pipelines = std::move(pipelines),
            .tensor = {std::move(tensor)},
            .failures = failures,
            .node_size = cluster.node_size};
}

std::vector<rank_id> ranks_in(unsigned set, int ranks)
{
    std::vector<rank_id> present;
    for (int r = 0; r < ranks; ++r) {
        if ((set >> r & 1U) != 0) {
            present.push_back(rank_id{r});
        }
    }
    return present;
}

/// The choice of the ranks that are left of the plan.
result<recomposition> regrouped(replanning const& known, plan const& before, std::vector<rank_id> const& left)
{
    auto const held = holdings_under(before, left, known.cells_per_layer, known.optimizer);
    return known.regroup(before.pipelines, held, {});
}

/// Why the pipelines are no plan for the ranks; empty when they are.
std::string fault_of(std::vector<pipeline_instance> const& pipelines, std::vector<rank_id> const& spares, std::vector<rank_id> const& present, int node_size)
{
    auto seen = spares;
    for (auto const& pipeline : pipelines) {
        if (auto error = detail::group_error(pipeline, grid, node_size); !error.empty()) {
            return error;
        }
        auto const ranks = ranks_of(pipeline);
        seen.insert(seen.end(), ranks.begin(), ranks.end());
    }
    std::sort(seen.begin(), seen.end());
    return pipelines.empty() ? "no pipeline" : seen != present ? "a rank has two places or none" : std::string{};
}

/// Whether the groups can be dealt to nodes with so many ranks, all ways tried.
bool can_be_dealt(std::vector<int> const& degrees, std::vector<int> room, std::size_t next = 0)
{
    if (next == degrees.size()) {
        return true;
    }
    for (auto& node : room) {
        if (node >= degrees[next]) {
            node -= degrees[next];
            if (can_be_dealt(degrees, room, next + 1)) {
                return true;
            }
            node += degrees[next];
        }
    }
    return false;
}

std::vector<int> ranks_of_nodes(std::vector<rank_id> const& present, cluster_of cluster)
{
    std::vector<int> room(static_cast<std::size_t>(cluster.node_size > 1 ? cluster.ranks / cluster.node_size + 1 : 1));
    for (auto const rank : present) {
        ++room[static_cast<std::size_t>(cluster.node_size > 1 ? rank.value / cluster.node_size : 0)];
    }
    return room;
}

}  // namespace

TEST_CASE("groups_in_nodes: a spare of another node joins no group")
{
    auto const request = request_for({5, 2}, {2}, {2, 2});
    auto with_spare = request;
    with_spare.spares = 1;
    auto const first = make_plan(gpt, with_spare, 5);
    REQUIRE(first);
    auto const known = make_replanning(gpt, with_spare, 5);
    auto const next = regrouped(known, first->plan, ranks_in(0b11101, 5));
    REQUIRE(next);
    CHECK(fault_of(next->pipelines, next->spares, ranks_in(0b11101, 5), 2).empty());
    CHECK(next->pipelines.front().stages.front() == std::vector{rank_id{0}});
    CHECK(next->spares == std::vector{rank_id{4}});
    auto const node_lost = regrouped(known, first->plan, ranks_in(0b11100, 5));  // the rank that waits is a group of its own
    REQUIRE(node_lost);
    CHECK(node_lost->pipelines.front().stages.front() == std::vector{rank_id{4}});
}

TEST_CASE("groups_in_nodes: a change looks at the nodes of its ranks")
{
    std::vector const present{rank_id{0}, rank_id{2}, rank_id{3}};
    for (auto const& tensor : {std::vector{1, 2}, std::vector{2, 1}}) {
        auto const request = request_for({4, 2}, tensor, {3}, 0);
        auto const made = make_plan_on(gpt, request, present);
        REQUIRE(made);
        CHECK(fault_of(made->pipelines, made->spares, present, 2).empty());
        for (std::size_t stage = 0; stage < 2; ++stage) {
            CHECK(static_cast<int>(made->pipelines.front().stages[stage].size()) == tensor[stage]);
        }
    }
    auto const twos = make_plan_on(gpt, request_for({4, 2}, {2}, {}, 0), present);
    REQUIRE(twos);
    CHECK(twos->pipelines.front().stages == std::vector<std::vector<rank_id>>{{rank_id{2}, rank_id{3}}});
    CHECK(twos->spares == std::vector{rank_id{0}});
}

TEST_CASE("groups_in_nodes: after all losses of small clusters")
{
    for (auto const cluster : {cluster_of{4, 1}, {4, 2}, {5, 2}, {6, 2}, {6, 3}, {7, 3}, {7, 4}}) {
        for (auto const degree : {2, 3}) {
            for (auto const failures : {0, 1}) {
                auto const request = request_for(cluster, {degree}, {}, failures);
                auto const first = make_plan(gpt, request, cluster.ranks);
                if (!first) {
                    CHECK(cluster.node_size > 1);
                    CHECK(degree > cluster.node_size);
                    continue;
                }
                auto const known = make_replanning(gpt, request, cluster.ranks);
                for (auto set = 1U; set < 1U << cluster.ranks; ++set) {
                    INFO(cluster.ranks << " ranks on nodes of " << cluster.node_size << ", groups of " << degree << ", left: " << set);
                    auto const present = ranks_in(set, cluster.ranks);
                    auto const next = regrouped(known, first->plan, present);
                    REQUIRE(next);
                    CHECK(fault_of(next->pipelines, next->spares, present, cluster.node_size) == "");
                }
            }
        }
    }
}

TEST_CASE("groups_in_nodes: little memory: found if there is a plan")
{
    for (auto const cluster : {cluster_of{5, 2}, {6, 2}, {6, 3}}) {
        auto request = request_for(cluster, {2}, {}, 1);
        auto const first = make_plan(gpt, request, cluster.ranks);
        REQUIRE(first);
        bytes fullest;
        for (auto const rank : ranks_of(first->plan)) {
            fullest = std::max(fullest, needed_bytes(memory_parts_of(first->plan, gpt, request.microbatch, request.policy, rank)));
        }
        int found = 0, none = 0;
        for (auto const part : {1.0, 1.2, 1.6}) {
            request.memory_limit = bytes{static_cast<std::int64_t>(static_cast<double>(fullest.count) * part)};
            auto const known = make_replanning(gpt, request, cluster.ranks);
            for (auto set = 1U; set < 1U << cluster.ranks; ++set) {
                INFO(cluster.ranks << " ranks on nodes of " << cluster.node_size << ", memory x " << part << ", left: " << set);
                auto const present = ranks_in(set, cluster.ranks);
                auto const next = regrouped(known, first->plan, present);
                bool is_possible = false, is_whole = false;
                for (auto const degree : {1, 2}) {
                    auto wanted = request;
                    wanted.tensor.values = {degree};
                    auto const made = make_initial_plan(gpt, wanted, present);
                    is_possible = is_possible || made;
                    is_whole = is_whole || (made && !made->degraded);
                }
                CHECK((next || !is_possible));
                CHECK((!is_whole || !next->degraded));
                ++(next ? found : none);
                if (next) {
                    CHECK(fault_of(next->pipelines, next->spares, present, cluster.node_size) == "");
                    auto const p = detail::plan_of(next->pipelines, next->shares, gpt, request);
                    CHECK(detail::memory_error(p, gpt, request, cluster.ranks) == "");
                }
            }
        }
        CHECK(found > 0);
        CHECK(none > 0);
    }
}

TEST_CASE("groups_in_nodes: f + 1 pipelines come before large groups")
{
    auto const request = request_for({4, 2}, {2}, {2, 2});
    auto const first = make_plan(gpt, request, 4);
    REQUIRE(first);
    auto const next = regrouped(make_replanning(gpt, request, 4), first->plan, ranks_in(0b0011, 4));
    REQUIRE(next);
    CHECK(next->pipelines.size() == 2);
    CHECK_FALSE(next->degraded);
}

TEST_CASE("groups_in_nodes: changes have plans if groups have nodes")
{
    for (auto const cluster : {cluster_of{5, 2}, {6, 3}, {7, 3}}) {
        for (auto set = 1U; set < 1U << cluster.ranks; ++set) {
            auto const present = ranks_in(set, cluster.ranks);
            auto const room = ranks_of_nodes(present, cluster);
            for (auto const& tensor : std::vector<std::vector<int>>{{1, 2}, {2, 1}, {2, 2}, {1, 1, 2}, {3, 2}, {2, 3}, {1, 3}, {2, 2, 1}, {2, 3, 2}}) {
                int wanted = 0;
                for (auto const degree : tensor) {
                    wanted += degree;
                }
                if (wanted > static_cast<int>(present.size())) {
                    continue;
                }
                auto request = request_for(cluster, tensor, {wanted}, 0);
                request.spares = static_cast<int>(present.size()) - wanted;
                auto const made = make_plan_on(gpt, request, present);
                INFO(set << " of " << cluster.ranks << " ranks on nodes of " << cluster.node_size << ": " << made.error());
                REQUIRE(static_cast<bool>(made) == can_be_dealt(tensor, room));
                if (made) {
                    CHECK(fault_of(made->pipelines, made->spares, present, cluster.node_size) == "");
                    for (std::size_t stage = 0; stage < tensor.size(); ++stage) {
                        CHECK(static_cast<int>(made->pipelines.front().stages[stage].size()) == tensor[stage]);
                    }
                }
            }
            for (auto const degree : {2, 3}) {  // the planner chooses how many groups there are
                auto const made = make_plan_on(gpt, request_for(cluster, {degree}, {}, 0), present);
                REQUIRE(static_cast<bool>(made) == can_be_dealt({degree}, room));
                if (made) {
                    CHECK(fault_of(made->pipelines, made->spares, present, cluster.node_size) == "");
                }
            }
        }
    }
}
