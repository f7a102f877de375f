// SPDX-License-Identifier: Apache-2.0
// Cells in place of layers: a collection by cells says of each tensor who holds it, and salvage counts uses by cells.
#include "rheo/plan/cells.hpp"

#include "rheo/model/grid.hpp"
#include "rheo/model/state.hpp"
#include "rheo/plan/tensor_holders.hpp"
#include "rheo/recover/salvage.hpp"
#include "support/catch.hpp"
#include "support/grouped_pipelines.hpp"

using namespace rheo;

namespace {

std::vector<rank_holdings> holdings_of(collection const& cells)
{
    std::vector<rank_holdings> all;
    for (rank_id r{0}; r.value < grouped::ranks; ++r) {
        rank_holdings holds{r, step_id{3}, {}, {}};
        for (auto const& pipeline : grouped::pipelines()) {
            auto const here = cells_of(pipeline, r, 4);
            holds.layers.insert(holds.layers.end(), here.begin(), here.end());
        }
        for (use_id u{0}; at(u) < cells.uses.size(); ++u) {
            if (std::binary_search(holds.layers.begin(), holds.layers.end(), cells.uses[at(u)].layer)) {
                holds.uses.push_back({u, {}});
            }
        }
        all.push_back(std::move(holds));
    }
    return all;
}

}  // namespace

TEST_CASE("cells: a tensor is held by who has one of its cells")
{
    auto const state = state_of(grouped::model());
    auto const cells = by_cells(state, 4);
    auto const holdings = holdings_of(cells);
    auto const expected = holders_by_tensor(grouped::pipelines(), state, grouped::grid);
    for (tensor_id t{0}; at(t) < state.tensors.size(); ++t) {
        std::vector<rank_id> holders;
        for (auto const& holds : holdings) {
            if (std::any_of(cells.tensors[at(t)].layers.begin(), cells.tensors[at(t)].layers.end(),
                            [&](layer_id cell) { return std::binary_search(holds.layers.begin(), holds.layers.end(), cell); })) {
                holders.push_back(holds.rank);
            }
        }
        CHECK(holders == expected[at(t)]);
    }
    CHECK(by_cells(state_of(on_grid(grouped::model(), 1)), 1) == state_of(on_grid(grouped::model(), 1)));
}

TEST_CASE("cells: layers come back")
{
    auto const state = state_of(grouped::model());
    CHECK(by_layers(by_cells(state, 4), 4) == state);
    std::vector<layer_id> const cells{layer_id{0}, layer_id{4}, layer_id{5}, layer_id{6}, layer_id{7}, layer_id{9}, layer_id{10}, layer_id{11}};
    CHECK(whole_layers(cells, 4) == std::vector{layer_id{1}});
    CHECK(whole_layers(cells, 1) == cells);
}

TEST_CASE("cells: a lost member misses its own uses, no others")
{
    auto const cells = by_cells(state_of(grouped::model()), 4);
    auto holdings = holdings_of(cells);
    for (auto& holds : holdings) {  // microbatch 0 was done by the first pipeline, 1 by the second
        for (auto& use : holds.uses) {
            use.done.insert(microbatch_id{holds.rank.value < 4 ? 0 : 1});
        }
    }
    holdings.erase(holdings.begin() + 1);
    auto repaired = grouped::pipelines();
    repaired[0].stages[0] = {rank_id{0}, rank_id{2}};
    auto const plan = salvage({holdings, &cells, repaired, std::vector{1, 1}, 16, 2, 1, 4});
    CHECK(plan.lost.empty());
    for (auto const& missing : plan.missing) {
        auto const cell = cells.uses[at(missing.use)].layer;
        bool const of_lost = cell.value % 4 == 1 && layer_of_cell(cell, 4) < layer_id{2};
        CHECK(missing.done.contains(microbatch_id{0}) == of_lost);
        CHECK_FALSE(missing.done.contains(microbatch_id{1}));
    }
    CHECK(plan.work[0] == std::vector{microbatch_work{microbatch_id{0}, layer_id{0}}});
    CHECK(plan.work[1].empty());
    for (auto const& move : plan.moves) {  // what ranks 0 and 2 summed stays where its cell stays
        CHECK(cells.uses[at(move.use)].layer != cell_of(layer_id{0}, 0, 4));
    }
    auto later = holdings;  // and of layer 0 nothing is missing: the item runs down to layer 1
    for (auto& holds : later) {
        if (holds.rank == rank_id{4} || holds.rank == rank_id{5}) {
            for (auto& use : holds.uses) {
                if (layer_of_cell(cells.uses[at(use.use)].layer, 4) == layer_id{0} && cells.uses[at(use.use)].shard == 1) {
                    use.done.insert(microbatch_id{0});
                }
            }
        }
    }
    CHECK(salvage({later, &cells, repaired, std::vector{1, 1}, 16, 2, 1, 4}).work[0] == std::vector{microbatch_work{microbatch_id{0}, layer_id{1}}});
    auto without = holdings;
    std::erase_if(without, [](rank_holdings const& holds) { return holds.rank >= rank_id{4}; });
    auto const gone = salvage({without, &cells, {}, {}, 16, 2, 1, 4});
    CHECK(gone.lost == std::vector{cell_of(layer_id{1}, 1, 4)});  // the rows of the token table live in the classifier, positions with the other shards
}
