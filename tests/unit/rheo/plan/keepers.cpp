// SPDX-License-Identifier: Apache-2.0
// Who keeps moments with optimizer shards: properties over random pipelines, and the collection of a recovery against the job's.
#include "rheo/plan/keepers.hpp"

#include <algorithm>
#include <random>
#include <set>

#include "rheo/model/state.hpp"
#include "support/catch.hpp"
#include "support/grouped_pipelines.hpp"

using namespace rheo;

namespace {

constexpr int layers = 4;

/// Pipelines of one to three stages with groups of one to three ranks.
std::vector<pipeline_instance> random_pipelines(std::mt19937& random, int count)
{
    auto const between = [&](int least, int most) { return std::uniform_int_distribution<int>{least, most}(random); };
    std::vector<pipeline_instance> pipelines;
    rank_id next{0};
    for (int i = 0; i < count; ++i) {
        auto& pipeline = pipelines.emplace_back();
        std::set<int> cuts{0, layers};
        for (auto stages = between(1, 3); static_cast<int>(cuts.size()) <= stages;) {
            cuts.insert(between(1, layers - 1));
        }
        for (auto const cut : cuts) {
            pipeline.cuts.push_back(layer_id{cut});
        }
        for (std::size_t s = 0; s + 1 < cuts.size(); ++s) {
            auto& stage = pipeline.stages.emplace_back();
            for (auto degree = between(1, 3); degree > 0; --degree, ++next) {
                stage.push_back(next);
            }
        }
    }
    return pipelines;
}

std::vector<rank_id> ranks_in(std::vector<pipeline_instance> const& pipelines)
{
    std::vector<rank_id> ranks;
    for (auto const& pipeline : pipelines) {
        auto const here = ranks_of(pipeline);
        ranks.insert(ranks.end(), here.begin(), here.end());
    }
    std::sort(ranks.begin(), ranks.end());
    return ranks;
}

std::size_t nodes_in(std::vector<rank_id> const& ranks, int node_size)
{
    std::set<int> nodes;
    for (auto const rank : ranks) {
        nodes.insert(rank.value / node_size);
    }
    return nodes.size();
}

}  // namespace

TEST_CASE("keepers: as many holders as asked for, on different nodes")
{
    std::mt19937 random{7};
    auto const state = state_of(grouped::model());
    auto const sizes = elements_of_cells(state, grouped::grid);
    for (int round = 0; round < 300; ++round) {
        auto const pipelines = random_pipelines(random, 1 + round % 5);
        optimizer_shards const shards{1 + round % 3, 1 + round / 3 % 3};
        auto const keepers = keepers_of_cells(pipelines, sizes, grouped::grid, shards);
        REQUIRE(keepers.size() == static_cast<std::size_t>(layers * grouped::grid));
        for (std::size_t c = 0; c < keepers.size(); ++c) {
            std::vector<rank_id> holders;
            for (auto const& pipeline : pipelines) {
                for (auto const rank : ranks_of(pipeline)) {
                    auto const cells = cells_of(pipeline, rank, grouped::grid);
                    if (std::binary_search(cells.begin(), cells.end(), layer_id{static_cast<int>(c)})) {
                        holders.push_back(rank);
                    }
                }
            }
            std::sort(holders.begin(), holders.end());
            REQUIRE(std::includes(holders.begin(), holders.end(), keepers[c].begin(), keepers[c].end()));
            REQUIRE(keepers[c].size() == std::min(static_cast<std::size_t>(shards.copies), holders.size()));
            REQUIRE(nodes_in(keepers[c], shards.node_size) == std::min(keepers[c].size(), nodes_in(holders, shards.node_size)));
        }
    }
}

TEST_CASE("keepers: ranks keep alike, but for one cell")
{
    auto const sizes = elements_of_cells(state_of(grouped::model()), grouped::grid);
    auto const largest = *std::max_element(sizes.begin(), sizes.end());
    for (int count = 2; count <= 8; ++count) {
        std::vector<pipeline_instance> pipelines;
        for (int rank = 0; rank < count; ++rank) {
            pipelines.push_back({{layer_id{0}, layer_id{layers}}, {{rank_id{rank}}}});
        }
        for (int copies = 1; copies <= count; ++copies) {
            auto const keepers = keepers_of_cells(pipelines, sizes, grouped::grid, {copies, 1});
            std::vector<std::int64_t> kept(static_cast<std::size_t>(count));
            for (std::size_t c = 0; c < keepers.size(); ++c) {
                for (auto const rank : keepers[c]) {
                    kept[at(rank)] += sizes[c];
                }
            }
            auto const [least, most] = std::minmax_element(kept.begin(), kept.end());
            CHECK(*most - *least <= largest);
        }
    }
}

TEST_CASE("keepers: cells of moments say who keeps a tensor")
{
    std::mt19937 random{8};
    auto const state = state_of(grouped::model());
    bool const stores_apart = GENERATE(false, true);
    auto const recovery = with_moment_cells(state, grouped::grid, stores_apart);
    auto const count = state.tensors.size();
    REQUIRE(recovery.tensors.size() == 2 * count);
    REQUIRE(recovery.uses.size() == state.uses.size());
    std::set<std::string> names;
    for (tensor_id t{0}; at(t) < recovery.tensors.size(); ++t) {
        CHECK(names.insert(recovery.tensors[at(t)].name).second);
        CHECK(at(tensor_of(recovery, t)) == at(t) % count);
        CHECK(recovery.tensors[at(t)].shape == state.tensors[at(t) % count].shape);
        auto const roles = recovery.tensors[at(t)].committed;
        CHECK(are_of_keepers(roles) == (at(t) >= count));
        CHECK(has_role(roles, tensor_role::parameter) == (stores_apart || at(t) < count));
        CHECK(has_role(roles, tensor_role::second_moment) == (at(t) >= count));
    }
    optimizer_cells const optimizer{{2, 1}, elements_of_cells(state, grouped::grid)};
    for (int round = 0; round < 100; ++round) {
        auto const pipelines = random_pipelines(random, 1 + round % 4);
        auto const ranks = ranks_in(pipelines);
        auto const cells = cells_by_rank(pipelines, ranks, 2 * grouped::grid, optimizer);
        auto const holders = holders_by_tensor(pipelines, state, grouped::grid);
        auto const keepers = keepers_by_tensor(pipelines, state, grouped::grid, optimizer.shards);
        for (std::size_t t = 0; t < recovery.tensors.size(); ++t) {
            if (!recovery.tensors[t].is_parameter) {
                continue;
            }
            std::vector<rank_id> with_a_cell;
            for (std::size_t r = 0; r < ranks.size(); ++r) {
                if (std::any_of(recovery.tensors[t].layers.begin(), recovery.tensors[t].layers.end(),
                                [&](layer_id cell) { return std::binary_search(cells[r].begin(), cells[r].end(), cell); })) {
                    with_a_cell.push_back(ranks[r]);
                }
            }
            REQUIRE(with_a_cell == (t < count ? holders[t] : keepers[t - count]));
        }
        for (std::size_t r = 0; r < ranks.size(); ++r) {
            std::vector<layer_id> whole;
            for (auto const& pipeline : pipelines) {
                auto const here = cells_of(pipeline, ranks[r], grouped::grid);
                whole.insert(whole.end(), here.begin(), here.end());
            }
            REQUIRE(without_moments(cells[r], grouped::grid) == whole);
        }
    }
}

TEST_CASE("keepers: without optimizer shards all holders keep")
{
    auto const state = state_of(grouped::model());
    CHECK(keepers_by_tensor(grouped::pipelines(), state, grouped::grid, {}) == holders_by_tensor(grouped::pipelines(), state, grouped::grid));
}
