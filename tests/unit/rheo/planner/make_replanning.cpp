// SPDX-License-Identifier: Apache-2.0
// On a grid of several shards, ranks replan in cells. The decisions are the same as in layers.
#include "rheo/planner/make_replanning.hpp"

#include "rheo/model/gpt.hpp"
#include "rheo/planner/changed_plan.hpp"
#include "rheo/schedule/families/families.hpp"
#include "rheo/schedule/families/one_f_one_b.hpp"
#include "support/catch.hpp"

using namespace rheo;

namespace {

model_description const gpt = on_grid(gpt_model({.vocabulary = 96, .context = 16, .width = 64, .heads = 4, .blocks = 4}), 4);

std::vector<rank_holdings> without(std::vector<rank_holdings> holdings, rank_id lost)
{
    std::erase_if(holdings, [&](auto const& holds) { return holds.rank == lost; });
    return holdings;
}

std::vector<layer_id> in_cells(std::vector<layer_id> const& layers)
{
    std::vector<layer_id> cells;
    for (auto const layer : layers) {
        for (int shard = 0; shard < 4; ++shard) {
            cells.push_back(cell_of(layer, shard, 4));
        }
    }
    return cells;
}

}  // namespace

TEST_CASE("make_replanning: cells are decided on as layers are")
{
    planning_request const request{.schedule = one_f_one_b{}, .microbatches = 4, .pipelines = {2, 3}, .failures = 1};
    auto const first = make_plan(gpt, request, 5);
    REQUIRE(first);
    auto const cells = make_replanning(gpt, request, 5);
    REQUIRE(cells.cells_per_layer == 4);
    auto layers = cells;
    layers.state = by_layers(cells.state, 4);
    layers.layers = cells.layers / 4;
    layers.cells_per_layer = 1;
    auto const held_cells = holdings_under(first->plan, ranks_of(first->plan), 4);
    auto const held_layers = holdings_under(first->plan, ranks_of(first->plan), 1);
    for (int node_size : {1, 2}) {
        membership_rules const rules{.node_size = node_size};
        for (rank_id lost{0}; lost.value < 5; ++lost) {
            auto const by_cell = plan_membership(without(held_cells, lost), first->plan.pipelines, {}, cells, rules);
            auto const by_layer = plan_membership(without(held_layers, lost), first->plan.pipelines, {}, layers, rules);
            CHECK(by_cell.error == by_layer.error);
            CHECK(by_cell.pipelines == by_layer.pipelines);
            CHECK(by_cell.shares == by_layer.shares);
            CHECK(by_cell.spares == by_layer.spares);
            CHECK(by_cell.message == by_layer.message);
            CHECK(by_cell.salvage.work == by_layer.salvage.work);
            CHECK(by_cell.copies.certificate.moved == by_layer.copies.certificate.moved);
            CHECK(by_cell.safety_copies.size() == 4 * by_layer.safety_copies.size());
            for (std::size_t i = 0; i < by_cell.safety_copies.size() && by_layer.safety_copies.size() * 4 == by_cell.safety_copies.size(); ++i) {
                auto const& copy = by_layer.safety_copies[i / 4];
                CHECK(by_cell.safety_copies[i].layer == cell_of(copy.layer, static_cast<std::int64_t>(i % 4), 4));
                CHECK(by_cell.safety_copies[i].to == copy.to);
            }
            for (std::size_t r = 0; r < by_cell.salvage.after.size(); ++r) {
                CHECK(by_cell.salvage.after[r].layers == in_cells(by_layer.salvage.after[r].layers));
            }
            CHECK(would_regroup(by_cell, cells, rules) == would_regroup(by_layer, layers, rules));
        }
    }
}
