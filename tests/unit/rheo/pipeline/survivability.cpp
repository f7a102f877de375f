// SPDX-License-Identifier: Apache-2.0
// What can be lost, against all sets of ranks and nodes.
#include "rheo/pipeline/survivability.hpp"

#include <random>

#include "support/catch.hpp"

using namespace rheo;

namespace {

constexpr rank_holdings holder(int rank, std::initializer_list<int> layers)
{
    rank_holdings holds{rank_id{rank}, {}, {}, {}};
    for (auto const l : layers) {
        holds.layers.push_back(layer_id{l});
    }
    return holds;
}

std::vector<tensor_bytes> const tensors{{{layer_id{0}}, bytes{10}}, {{layer_id{1}}, bytes{20}}, {{layer_id{0}, layer_id{2}}, bytes{5}}};

/// By the compiler: two pipelines of two ranks, then one rank of each on a node.
constexpr int nodes_to_lose(std::initializer_list<int> places)
{
    std::vector<rank_holdings> const ranks{holder(0, {0}), holder(1, {1}), holder(2, {0}), holder(3, {1})};
    std::vector<tensor_bytes> const state{{{layer_id{0}}, bytes{1}}, {{layer_id{1}}, bytes{1}}};
    std::vector<node_id> nodes;
    for (auto const n : places) {
        nodes.push_back(node_id{n});
    }
    return survivability_of(ranks, state, nodes).nodes;
}
static_assert(nodes_to_lose({0, 0, 1, 1}) == 1);
static_assert(nodes_to_lose({0, 1, 0, 1}) == 0);  // both copies of a layer on one node

}  // namespace

TEST_CASE("survivability: survivable losses by exhaustive check")
{
    std::mt19937 draw{3};
    for (int round = 0; round < 300; ++round) {
        std::vector<rank_holdings> ranks;
        std::vector<node_id> nodes;
        for (int r = 0; r < 6; ++r) {
            ranks.push_back(holder(r, {}));
            for (int l = 0; l < 3; ++l) {
                if (draw() % 2 == 0 || r == l) {
                    ranks.back().layers.push_back(layer_id{l});
                }
            }
            nodes.push_back(node_id{static_cast<int>(draw() % 4)});
        }
        auto const loses = [&](auto gone) {
            for (auto const& tensor : tensors) {
                bool lives = false;
                for (std::size_t r = 0; r < ranks.size(); ++r) {
                    lives = lives || (!gone(r) && detail::holds_any(ranks[r], tensor.layers));
                }
                if (!lives) {
                    return true;
                }
            }
            return false;
        };
        int fewest_ranks = 7;
        int fewest_nodes = 7;
        for (unsigned set = 0; set < 64; ++set) {
            if (loses([&](std::size_t r) { return (set >> r & 1U) != 0; })) {
                fewest_ranks = std::min(fewest_ranks, std::popcount(set));
            }
            if (set < 16 && loses([&](std::size_t r) { return (set >> nodes[r].value & 1U) != 0; })) {
                fewest_nodes = std::min(fewest_nodes, std::popcount(set));
            }
        }
        auto const found = survivability_of(ranks, tensors, nodes);
        REQUIRE(found.ranks == fewest_ranks - 1);
        REQUIRE(found.nodes == fewest_nodes - 1);
        REQUIRE(found.only_ranks.empty() == (found.ranks > 0));
        REQUIRE(found.only_nodes.empty() == (found.nodes > 0));
        for (auto const only : found.only_nodes) {
            REQUIRE(loses([&](std::size_t r) { return nodes[r] == only; }));
        }

        auto const copies = safety_copies(ranks, tensors, nodes);
        auto safer = ranks;
        for (auto const& c : copies) {
            REQUIRE(detail::holds_any(ranks[at(c.from)], array_view{&c.layer, 1}));
            REQUIRE(nodes[at(c.from)] != nodes[at(c.to)]);
            safer[at(c.to)].layers.push_back(c.layer);
        }
        bool several = false;
        for (auto const node : nodes) {
            several = several || node != nodes.front();
        }
        REQUIRE(copies.empty() == (found.nodes > 0 || !several));
        if (several) {
            REQUIRE(survivability_of(safer, tensors, nodes).nodes >= 1);
        }
    }
}

TEST_CASE("survivability: is reported in one sentence")
{
    std::vector<rank_holdings> const ranks{holder(0, {0, 2}), holder(1, {1}), holder(2, {0, 1, 2})};
    CHECK(to_string(survivability_of(ranks, tensors)) == "any 1 rank and any 1 node can be lost");
    std::vector<node_id> const nodes{node_id{0}, node_id{1}, node_id{1}};
    CHECK(to_string(survivability_of(ranks, tensors, nodes)) == "any 1 rank can be lost, but the loss of node 1 would lose state");
    std::vector<rank_holdings> const alone{ranks[0], ranks[1]};
    CHECK(to_string(survivability_of(alone, tensors)) == "the loss of rank 0, 1 would lose state");
    CHECK(safety_copies(alone, tensors) == std::vector<safety_copy>{{layer_id{0}, rank_id{0}, rank_id{1}, bytes{15}},
                                                                    {layer_id{1}, rank_id{1}, rank_id{0}, bytes{20}},
                                                                    {layer_id{2}, rank_id{0}, rank_id{1}, bytes{5}}});
    std::vector<rank_holdings> const one_of_three{holder(0, {0, 1, 2}), holder(1, {}), holder(2, {})};
    CHECK(safety_copies(one_of_three, tensors) == std::vector<safety_copy>{{layer_id{0}, rank_id{0}, rank_id{1}, bytes{15}},  // spread by bytes
                                                                           {layer_id{1}, rank_id{0}, rank_id{2}, bytes{20}},
                                                                           {layer_id{2}, rank_id{0}, rank_id{1}, bytes{5}}});
    CHECK_THROWS_AS(survivability_of(std::vector<rank_holdings>{ranks[1]}, tensors), precondition_error);
    CHECK_THROWS_AS(survivability_of(ranks, tensors, std::vector<node_id>(2)), precondition_error);
}
