// SPDX-License-Identifier: Apache-2.0
// Pipelines of whole nodes: with one device per node as recompose, with several against all placings, and what survives.
#include "rheo/pipeline/recompose_nodes.hpp"

#include <algorithm>
#include <numeric>
#include <random>
#include <set>

#include "rheo/pipeline/membership.hpp"
#include "support/catch.hpp"
#include "unit/rheo/pipeline/losses.hpp"

using namespace rheo;

namespace {

std::vector<node_id> nodes_of(std::vector<rank_holdings> const& ranks, int devices)
{
    std::vector<node_id> nodes;
    for (auto const& r : ranks) {
        nodes.push_back(node_id{r.rank.value / devices});
    }
    return nodes;
}

rank_holdings random_holder(std::mt19937& draw, int rank, int layers)
{
    auto const begin = static_cast<int>(draw() % static_cast<unsigned>(layers));
    return holder(rank, {layer_id{begin}, layer_id{begin + static_cast<int>(draw() % static_cast<unsigned>(layers - begin + 1))}});
}

}  // namespace

TEST_CASE("recompose_nodes: nodes of one device are ranks")
{
    std::mt19937 draw{31};
    int compared = 0;
    for (int round = 0; round < 200; ++round) {
        auto const model = make_job(6);
        auto const ready = plan_templates(model.times, {1 + static_cast<int>(draw() % 3), 6});
        std::vector<rank_holdings> survivors;
        for (int r = 0; r < 2 + static_cast<int>(draw() % 5); ++r) {
            survivors.push_back(random_holder(draw, 2 * r, 6));
        }
        recomposition_request const request{.failures = static_cast<int>(draw() % 3), .microbatches = 1 + static_cast<int>(draw() % 9)};
        auto const whole = recompose_nodes(survivors, nodes_of(survivors, 1), 1, ready, model.tensors, request);
        auto const ranks = recompose(survivors, ready, model.tensors, request);
        REQUIRE(static_cast<bool>(whole) == static_cast<bool>(ranks));
        if (!whole) {
            continue;
        }
        REQUIRE(whole->moved == ranks->moved);
        REQUIRE(whole->time == ranks->time);
        REQUIRE(whole->pipelines.size() == ranks->pipelines.size());
        REQUIRE(whole->degraded == ranks->degraded);
        ++compared;
    }
    CHECK(compared > 100);
}

TEST_CASE("recompose_nodes: fewest bytes over all placements")
{
    std::mt19937 draw{32};
    for (int round = 0; round < 60; ++round) {
        auto const model = make_job(5);
        auto const ready = plan_templates(model.times, {4, 4});  // two nodes of two
        std::vector<rank_holdings> survivors;
        for (int r = 0; r < 6; ++r) {
            survivors.push_back(random_holder(draw, r, 5));
        }
        auto const answer = recompose_nodes(survivors, nodes_of(survivors, 2), 2, ready, model.tensors, {.failures = 0, .microbatches = 4});
        REQUIRE(answer);
        REQUIRE(answer->pipelines.size() == 1);
        REQUIRE(answer->spares.size() == 2);
        std::vector<int> order(6);
        std::iota(order.begin(), order.end(), 0);
        std::int64_t fewest = 1 << 30;
        do {
            if (order[0] / 2 == order[1] / 2 && order[2] / 2 == order[3] / 2) {
                std::int64_t moved = 0;
                for (int s = 0; s < 4; ++s) {
                    moved += missing(survivors[static_cast<std::size_t>(order[static_cast<std::size_t>(s)])], layers_of(ready.templates[0].cuts, stage_id{s}),
                                     model.tensors);
                }
                fewest = std::min(fewest, moved);
            }
        } while (std::next_permutation(order.begin(), order.end()));
        REQUIRE(answer->moved.count == fewest);
    }
}

TEST_CASE("recompose_nodes: f nodes can be lost; rest of a node waits")
{
    std::mt19937 draw{33};
    auto const model = make_job(12);
    auto const ready = plan_templates(model.times, {2, 12});
    for (int round = 0; round < 40; ++round) {
        auto const devices = 2 + static_cast<int>(draw() % 2);
        auto const nodes = 3 + static_cast<int>(draw() % 4);
        auto const failures = 1 + static_cast<int>(draw() % 2);
        std::vector<rank_holdings> survivors;
        for (int r = 0; r < nodes * devices; ++r) {
            survivors.push_back(holder(r, {layer_id{0}, layer_id{0}}));
        }
        survivors.erase(survivors.begin() + static_cast<std::ptrdiff_t>(draw() % survivors.size()));
        auto const where = nodes_of(survivors, devices);
        auto const answer = recompose_nodes(survivors, where, devices, ready, model.tensors, {.failures = failures, .microbatches = 12});
        REQUIRE(answer);
        CHECK(answer->spares.size() >= static_cast<std::size_t>(devices) - 1);
        CHECK(answer->degraded == (nodes - 1 < failures + 1));
        auto const found = survivability_of(holdings_in(*answer, survivors), model.tensors, where);
        CHECK(found.nodes >= static_cast<int>(answer->pipelines.size()) - 1);
        CHECK(found.nodes >= std::min(failures, nodes - 2));
        for (auto const& pipeline : answer->pipelines) {
            for (std::size_t s = 0; s < pipeline.stages.size(); ++s) {
                CHECK(pipeline.stages[s].front().value / devices == pipeline.stages[s - s % static_cast<std::size_t>(devices)].front().value / devices);
            }
        }
    }
}

TEST_CASE("recompose_nodes: impossible: the reason, or devices")
{
    auto const model = make_job(8);
    std::vector<rank_holdings> ranks;
    for (int r = 0; r < 4; ++r) {
        ranks.push_back(holder(r, {layer_id{0}, layer_id{0}}));
    }
    auto const where = nodes_of(ranks, 2);
    recomposition_request const request{.failures = 1, .microbatches = 8};
    CHECK(recompose_nodes(ranks, where, 2, plan_templates(model.times, {3, 3}), {}, request).error() == "there is no pipeline template that fills whole nodes");
    auto const large = recompose_nodes(ranks, where, 2, plan_templates(model.times, {6, 8}), {}, request);
    CHECK(large.error() == "2 whole nodes are too few: the smallest pipeline template takes 3");

    // Two pipelines of two, laid across two nodes: each node has both copies of some layers.
    auto const ready = plan_templates(model.times, {2, 4});
    auto const& cuts = ready.templates[0].cuts;
    std::vector<pipeline_instance> const across{{cuts, {{rank_id{0}}, {rank_id{2}}}}, {cuts, {{rank_id{1}}, {rank_id{3}}}}};
    std::vector<rank_holdings> const members = holdings_in({.pipelines = across}, ranks);
    membership_request of{across, members, {}, &ready, model.tensors, request, where};
    CHECK(decide_membership(of).message == "any 1 rank can be lost, but the loss of node 0, 1 would lose state until its copies are made");
    of.devices_per_node = 2;
    auto const decision = decide_membership(of);
    CHECK(decision.message == "any 1 rank and any 1 node can be lost");
    CHECK(decision.next->rebuilt);
    for (auto const& pipeline : decision.next->pipelines) {
        CHECK(pipeline.stages[0].front().value / 2 == pipeline.stages[1].front().value / 2);
    }
}
