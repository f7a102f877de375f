// SPDX-License-Identifier: Apache-2.0
// Who holds a tensor: against a count of the uses, shard by shard.
#include "rheo/plan/tensor_holders.hpp"

#include <set>

#include "rheo/model/gpt.hpp"
#include "rheo/model/grid.hpp"
#include "rheo/model/state.hpp"
#include "support/catch.hpp"

using namespace rheo;

namespace {

std::vector<layer_id> cuts_of(std::vector<int> const& values)
{
    std::vector<layer_id> cuts;
    for (auto const value : values) {
        cuts.push_back(layer_id{value});
    }
    return cuts;
}

}  // namespace

TEST_CASE("tensor_holders: a rank holds what its shards use")
{
    auto const model = on_grid(gpt_model({.vocabulary = 96, .context = 16, .width = 64, .heads = 4, .blocks = 2}), 4);
    auto const state = state_of(model);
    // Degrees 3 and 1 in one pipeline, 2 in the other.
    std::vector<pipeline_instance> const pipelines{{cuts_of({0, 2, 4}), {{rank_id{0}, rank_id{1}, rank_id{2}}, {rank_id{3}}}},
                                                   {cuts_of({0, 4}), {{rank_id{4}, rank_id{5}}}}};
    std::vector<std::vector<int>> const shards_of_rank{{0}, {1}, {2, 3}, {0, 1, 2, 3}, {0, 1}, {2, 3}};
    std::vector<layer_span> const layers_of_rank{{layer_id{0}, layer_id{2}}, {layer_id{0}, layer_id{2}}, {layer_id{0}, layer_id{2}},
                                                 {layer_id{2}, layer_id{4}}, {layer_id{0}, layer_id{4}}, {layer_id{0}, layer_id{4}}};
    for (tensor_id t{0}; at(t) < state.tensors.size(); ++t) {
        if (!state.tensors[at(t)].is_parameter) {
            continue;
        }
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
        CHECK(holders_of(array_view{pipelines}, state, t, 4) == expected);
    }
}

TEST_CASE("tensor_holders: each shard makes uses of its own")
{
    auto const model = on_grid(gpt_model({.vocabulary = 96, .context = 16, .width = 64, .heads = 4, .blocks = 1}), 2);
    auto const state = state_of(model);
    std::vector const all{layer_span{layer_id{0}, layer_id{3}}};
    int losses = 0;
    for (auto const& use : state.uses) {
        losses += use.parameter < 0 ? 1 : 0;
        CHECK(makes_use(use, all, {0, 2}));
        CHECK(makes_use(use, all, {1, 2}) == (use.shard == 1));
        CHECK_FALSE(makes_use(use, std::vector{layer_span{layer_id{use.layer.value + 1}, layer_id{4}}}, {0, 2}));
    }
    CHECK(losses == 2);
}
