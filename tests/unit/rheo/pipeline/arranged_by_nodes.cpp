// SPDX-License-Identifier: Apache-2.0
// Ranks exchange places until copies of a layer stand on different nodes, against all permutations.
#include "rheo/pipeline/arranged_by_nodes.hpp"

#include <algorithm>
#include <random>
#include <vector>

#include "support/catch.hpp"

using namespace rheo;

namespace {

/// Pipelines of these sizes over so many layers, ranks in their order, layers as evenly as they go.
constexpr std::vector<pipeline_instance> in_order(std::vector<int> const& sizes, int layers)
{
    std::vector<pipeline_instance> pipelines;
    int rank = 0;
    for (auto const n : sizes) {
        pipelines.push_back({{layer_id{0}}, {}});
        for (int s = 0; s < n; ++s, ++rank) {
            pipelines.back().cuts.push_back(layer_id{layers * (s + 1) / n});
            pipelines.back().stages.push_back({rank_id{rank}});
        }
    }
    return pipelines;
}

std::vector<pipeline_instance> renamed(std::vector<pipeline_instance> pipelines, std::vector<int> const& ranks)
{
    for (auto& pipeline : pipelines) {
        for (auto& stage : pipeline.stages) {
            stage.front() = rank_id{ranks[static_cast<std::size_t>(stage.front().value)]};
        }
    }
    return pipelines;
}

// Two and four ranks on nodes of three: in their order node 0 has both copies of layer 0.
constexpr int missing_in_order() { return missing_nodes(in_order({2, 4}, 4), 3, 2); }
constexpr int missing_arranged() { return missing_nodes(arranged_by_nodes(in_order({2, 4}, 4), 3, 2), 3, 2); }
static_assert(missing_in_order() == 1 and missing_arranged() == 0);

}  // namespace

TEST_CASE("arranged_by_nodes: swaps never worsen, mostly reach optimum")
{
    std::mt19937 draw{41};
    int helped = 0;
    int missed = 0;
    for (int round = 0; round < 300; ++round) {
        std::vector<int> sizes;
        int ranks = 0;
        while (ranks < 6) {
            sizes.push_back(std::min(6 - ranks, 1 + static_cast<int>(draw() % 4)));
            ranks += sizes.back();
        }
        auto const node_size = 1 + static_cast<int>(draw() % 3);
        auto const wanted = 1 + static_cast<int>(draw() % 3);
        auto const before = in_order(sizes, 4 + static_cast<int>(draw() % 4));
        auto const after = arranged_by_nodes(before, node_size, wanted);
        CAPTURE(sizes, node_size, wanted);
        std::vector<int> names(6);
        for (std::size_t p = 0; p < before.size(); ++p) {
            REQUIRE(after[p].cuts == before[p].cuts);
            REQUIRE(after[p].stages.size() == before[p].stages.size());
            for (auto const& stage : after[p].stages) {
                ++names[static_cast<std::size_t>(stage.front().value)];
            }
        }
        REQUIRE(names == std::vector<int>(6, 1));
        auto const start = missing_nodes(before, node_size, wanted);
        auto const reached = missing_nodes(after, node_size, wanted);
        REQUIRE(reached <= start);
        if (start == 0) {
            REQUIRE(after == before);
        }
        auto best = start;
        std::vector<int> order{0, 1, 2, 3, 4, 5};
        do {
            best = std::min(best, missing_nodes(renamed(before, order), node_size, wanted));
        } while (best > 0 && std::next_permutation(order.begin(), order.end()));
        REQUIRE(reached >= best);
        helped += reached < start ? 1 : 0;
        missed += reached > best ? 1 : 0;
    }
    CAPTURE(helped, missed);
    CHECK(helped > 20);
    CHECK(missed <= helped / 10);
}

TEST_CASE("arranged_by_nodes: whole-node pipelines stay as they are")
{
    auto const whole = in_order({2, 4}, 8);
    CHECK(arranged_by_nodes(whole, 2, 2) == whole);
    CHECK(arranged_by_nodes({}, 2, 2).empty());
    CHECK(missing_nodes({}, 2, 2) == 0);
    CHECK_THROWS_AS(arranged_by_nodes(whole, 0, 2), precondition_error);
}
