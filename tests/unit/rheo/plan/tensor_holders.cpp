// SPDX-License-Identifier: Apache-2.0
// Who holds a tensor: against a count of the uses, shard by shard.
#include "rheo/plan/tensor_holders.hpp"

#include <algorithm>

#include "rheo/model/state.hpp"
#include "support/catch.hpp"
#include "support/grouped_pipelines.hpp"

using namespace rheo;

namespace {

void check_holders(std::vector<pipeline_instance> const& pipelines, std::vector<std::vector<int>> const& shards_of_rank)
{
    auto const state = state_of(grouped::model());
    std::vector<layer_span> const layers_of_rank{{layer_id{0}, layer_id{2}}, {layer_id{0}, layer_id{2}}, {layer_id{0}, layer_id{2}},
                                                 {layer_id{2}, layer_id{4}}, {layer_id{0}, layer_id{4}}, {layer_id{0}, layer_id{4}}};
    auto const holders = holders_by_tensor(pipelines, state, grouped::grid);
    REQUIRE(holders.size() == state.tensors.size());
    for (tensor_id t{0}; at(t) < state.tensors.size(); ++t) {
        std::vector<rank_id> expected;
        for (std::size_t r = 0; r < shards_of_rank.size(); ++r) {
            for (auto const& use : state.uses) {
                auto const& shards = shards_of_rank[r];
                if (use.tensor == t && contains(layers_of_rank[r], use.layer) && std::find(shards.begin(), shards.end(), use.shard) != shards.end()) {
                    expected.push_back(rank_id{static_cast<int>(r)});
                    break;
                }
            }
        }
        INFO(state.tensors[at(t)].name);
        CHECK(holders[at(t)] == expected);
    }
}

}  // namespace

TEST_CASE("tensor_holders: a rank holds what its shards use")
{
    auto pipelines = grouped::pipelines();
    check_holders(pipelines, {{0}, {1}, {2, 3}, {0, 1, 2, 3}, {0, 1}, {2, 3}});
    pipelines[0].shares = {{2, 1, 1}, {4}};
    pipelines[1].shares = {{1, 3}};
    check_holders(pipelines, {{0, 1}, {2}, {3}, {0, 1, 2, 3}, {0}, {1, 2, 3}});
}

TEST_CASE("tensor_holders: each shard has a use of the loss")
{
    auto const state = state_of(grouped::model());
    std::vector<int> shards;
    for (auto const& use : state.uses) {
        if (use.parameter < 0) {
            shards.push_back(use.shard);
        }
    }
    CHECK(shards == std::vector{0, 1, 2, 3});
}
