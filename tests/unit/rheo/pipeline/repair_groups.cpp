// SPDX-License-Identifier: Apache-2.0
// Repairs of pipelines of groups: hand-made cases, and properties over random losses.
#include "rheo/pipeline/repair_groups.hpp"

#include <random>
#include <set>

#include "support/catch.hpp"

using namespace rheo;

namespace {

auto const always = [](pipeline_instance const&) { return true; };

std::vector<rank_id> ranks(std::vector<int> const& values)
{
    std::vector<rank_id> all;
    for (auto const value : values) {
        all.push_back(rank_id{value});
    }
    return all;
}

pipeline_instance pipeline_of(std::vector<int> const& cuts, std::vector<std::vector<int>> const& groups)
{
    pipeline_instance made;
    for (auto const cut : cuts) {
        made.cuts.push_back(layer_id{cut});
    }
    for (auto const& group : groups) {
        made.stages.push_back(ranks(group));
    }
    return made;
}

}  // namespace

TEST_CASE("repair_groups: a spare takes the shards of a lost rank")
{
    std::vector const before{pipeline_of({0, 3, 6}, {{0, 1}, {2, 3}}), pipeline_of({0, 6}, {{4, 5}})};
    auto const next = repair_groups(before, ranks({0, 2, 3, 4, 5, 6}), {8, 1}, always);
    REQUIRE(next);
    CHECK(next->pipelines[0].stages == std::vector{ranks({0, 6}), ranks({2, 3})});
    CHECK(next->pipelines[1] == before[1]);
    CHECK(next->spares.empty());
    CHECK_FALSE(next->degraded);
}

TEST_CASE("repair_groups: the rest of a group share its shards")
{
    std::vector const before{pipeline_of({0, 3, 6}, {{0, 1, 2}, {3}}), pipeline_of({0, 6}, {{4, 5}})};
    auto const next = repair_groups(before, ranks({0, 2, 3, 4, 5}), {8, 1}, always);
    REQUIRE(next);
    CHECK(next->pipelines[0].stages == std::vector{ranks({0, 2}), ranks({3})});
    CHECK(next->pipelines[1] == before[1]);
}

TEST_CASE("repair_groups: named shares stay with a whole group")
{
    auto first = pipeline_of({0, 3, 6}, {{0, 1, 2}, {3}});
    first.shares = {{1, 2, 1}, {4}};
    auto second = pipeline_of({0, 6}, {{4, 5}});
    second.shares = {{1, 3}};
    std::vector const before{first, second};
    auto const shared = repair_groups(before, ranks({0, 2, 3, 4, 5}), {8, 1}, always);
    REQUIRE(shared);
    CHECK(shared->pipelines[0].shares == std::vector<std::vector<int>>{{2, 2}, {4}});
    CHECK(shared->pipelines[1] == second);
    auto const filled = repair_groups(before, ranks({0, 2, 3, 4, 5, 6}), {8, 1}, always);
    REQUIRE(filled);
    CHECK(filled->pipelines[0].stages == std::vector{ranks({0, 6, 2}), ranks({3})});
    CHECK(filled->pipelines[0].shares == first.shares);
}

TEST_CASE("repair_groups: an empty position borrows a rank")
{
    std::vector const before{pipeline_of({0, 3, 6}, {{0, 1, 2}, {3}})};
    auto const next = repair_groups(before, ranks({0, 1, 2}), {4, 0}, always);
    REQUIRE(next);
    CHECK(next->pipelines[0].stages == std::vector{ranks({0, 1}), ranks({2})});
}

TEST_CASE("repair_groups: a lost pipeline gives its ranks away")
{
    std::vector const before{pipeline_of({0, 3, 6}, {{0}, {1}}), pipeline_of({0, 6}, {{2, 3}})};
    auto const next = repair_groups(before, ranks({1, 2}), {4, 1}, always);
    REQUIRE(next);
    CHECK(next->pipelines == std::vector{pipeline_of({0, 6}, {{2, 1}})});
    CHECK(next->shares == std::vector{4});
    CHECK(next->degraded);
    auto const large = [](pipeline_instance const& pipeline) { return pipeline.stages.front().size() > 1; };
    CHECK(repair_groups(before, ranks({0, 1, 2, 3}), {4, 1}, large)->pipelines.size() == 1);
    CHECK(repair_groups(before, ranks({0, 1}), {4, 1}, large)->pipelines == std::vector{pipeline_of({0, 6}, {{0, 1}})});
    auto const none = [](pipeline_instance const&) { return false; };
    CHECK(repair_groups(before, ranks({0, 1}), {4, 1}, none).error() == "no pipeline of groups can be kept with the 2 ranks that are left");
}

TEST_CASE("repair_groups: a spare of another node joins no group")
{
    std::vector const before{pipeline_of({0, 3, 6}, {{0, 1}, {2, 3}})};
    group_repair const on_twos{4, 0, 2};
    auto const shared = repair_groups(before, ranks({0, 2, 3, 4, 5}), on_twos, always);
    REQUIRE(shared);
    CHECK(shared->pipelines[0].stages == std::vector{ranks({0}), ranks({2, 3})});
    CHECK(shared->spares == ranks({4, 5}));
    auto const moved = repair_groups(before, ranks({2, 3, 4, 6, 7}), on_twos, always);  // to the node with most ranks that wait
    REQUIRE(moved);
    CHECK(moved->pipelines[0].stages == std::vector{ranks({6, 7}), ranks({2, 3})});
    std::vector const wide{pipeline_of({0, 3, 6}, {{0, 1}, {3, 4}})};
    auto const kept = repair_groups(wide, ranks({2, 3, 5, 6}), {4, 0, 3}, always);  // not the one that another group misses
    REQUIRE(kept);
    CHECK(kept->pipelines[0].stages == std::vector{ranks({2}), ranks({3, 5})});
}

TEST_CASE("repair_groups: each rank has one place, each position a rank")
{
    std::mt19937 draw{5};
    for (int round = 0; round < 3000; ++round) {
        int const node_size = 1 + round % 5;  // 1: groups are any ranks
        std::vector<pipeline_instance> before;
        int next_rank = 0;
        for (int p = 0, count = 1 + static_cast<int>(draw() % 3); p < count; ++p) {
            std::vector<int> cuts{0};
            std::vector<std::vector<int>> groups;
            for (int s = 0, stages = 1 + static_cast<int>(draw() % 3); s < stages; ++s) {
                cuts.push_back(cuts.back() + 1 + static_cast<int>(draw() % 3));
                auto& group = groups.emplace_back();
                int const degree = 1 + static_cast<int>(draw() % (node_size > 1 ? static_cast<unsigned>(node_size) : 4U));
                if (node_size > 1 && next_rank % node_size + degree > node_size) {
                    next_rank += node_size - next_rank % node_size;  // what is left of a node waits
                }
                for (int m = 0; m < degree; ++m) {
                    group.push_back(next_rank++);
                }
            }
            before.push_back(pipeline_of(cuts, groups));
        }
        next_rank += static_cast<int>(draw() % 3);  // that wait
        std::vector<rank_id> staying;
        for (int r = 0; r < next_rank; ++r) {
            if (draw() % 4 != 0) {
                staying.push_back(rank_id{r});
            }
        }
        int const microbatches = 1 + static_cast<int>(draw() % 9);
        auto const next = repair_groups(before, staying, {microbatches, 1, node_size}, always);
        std::size_t fewest = 99;
        for (auto const& pipeline : before) {
            fewest = std::min(fewest, groups_of(pipeline).size());
        }
        if (!next) {
            REQUIRE(staying.size() < fewest);
            continue;
        }
        std::set<int> seen;
        for (auto const& pipeline : next->pipelines) {
            for (auto const& group : groups_of(pipeline)) {
                REQUIRE_FALSE(group.empty());
                for (auto const rank : group) {
                    REQUIRE((node_size == 1 || rank.value / node_size == group.front().value / node_size));
                    REQUIRE(seen.insert(rank.value).second);
                    REQUIRE(std::binary_search(staying.begin(), staying.end(), rank));
                }
            }
        }
        for (auto const rank : next->spares) {
            REQUIRE(seen.insert(rank.value).second);
        }
        REQUIRE(seen.size() == staying.size());
        int dealt = 0;
        for (auto const share : next->shares) {
            dealt += share;
        }
        REQUIRE(dealt == microbatches);
        for (std::size_t p = 0; p < before.size(); ++p) {  // what was not hit stays
            bool hit = false;
            for (auto const rank : ranks_of(before[p])) {
                hit = hit || !std::binary_search(staying.begin(), staying.end(), rank);
            }
            REQUIRE((hit || std::find(next->pipelines.begin(), next->pipelines.end(), before[p]) != next->pipelines.end()));
        }
    }
}
