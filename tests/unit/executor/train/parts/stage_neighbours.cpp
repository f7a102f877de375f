// SPDX-License-Identifier: Apache-2.0
// What ranks of neighbouring stages exchange: both ends agree, and name each other where the rows of both go to one rank.
#include "executor/train/parts/stage_neighbours.hpp"

#include <map>
#include <utility>

#include "support/catch.hpp"
#include "support/grouped_pipelines.hpp"

using namespace rheo;

namespace {

constexpr std::int64_t rows = 16;
constexpr std::size_t matrix = 16 * 256;  // bytes

stage_boundary boundary_of(pipeline_instance const& pipeline, int stage, int member, int other)
{
    auto group = group_of(pipeline, stage_id{stage}, grouped::grid);
    group.self = member;
    return boundary_between(pipeline, stage_id{stage}, stage_id{other}, rows_of(group.run(grouped::grid), rows, grouped::grid), rows, grouped::grid, matrix);
}

pipeline_instance two_stages(std::vector<rank_id> first, std::vector<rank_id> second)
{
    return {{layer_id{0}, layer_id{2}, layer_id{4}}, {std::move(first), std::move(second)}};
}

}  // namespace

TEST_CASE("stage_neighbours: two ranks exchange whole matrices")
{
    auto const pipeline = two_stages({rank_id{3}}, {rank_id{1}});
    CHECK(boundary_of(pipeline, 0, 0, 1) == stage_boundary{rank_id{1}, bytes{16 * 256}});
    CHECK(boundary_of(pipeline, 1, 0, 0) == stage_boundary{rank_id{3}, bytes{16 * 256}});
}

TEST_CASE("stage_neighbours: equal groups exchange rank by rank")
{
    auto const pipeline = two_stages({rank_id{3}, rank_id{4}}, {rank_id{1}, rank_id{0}});
    for (int member = 0; member < 2; ++member) {
        CHECK(boundary_of(pipeline, 0, member, 1) == stage_boundary{rank_id{1 - member}, bytes{8 * 256}});
        CHECK(boundary_of(pipeline, 1, member, 0) == stage_boundary{rank_id{3 + member}, bytes{8 * 256}});
    }
}

TEST_CASE("stage_neighbours: no single peer where several share rows")
{
    auto const pipeline = grouped::pipelines().front();  // three ranks, then one
    bytes sum{};
    for (int member = 0; member < 3; ++member) {
        auto const boundary = boundary_of(pipeline, 0, member, 1);
        CHECK(boundary.peer == no_rank);  // the one beside it has rows of others, too
        sum += boundary.size;
    }
    CHECK(sum == bytes{16 * 256});
    CHECK(boundary_of(pipeline, 1, 0, 0) == stage_boundary{no_rank, bytes{16 * 256}});
}

TEST_CASE("stage_neighbours: a peer names its peer, for any groups")
{
    for (int a = 1; a <= 4; ++a) {
        for (int b = 1; b <= 4; ++b) {
            std::vector<rank_id> first;
            std::vector<rank_id> second;
            for (int r = 0; r < a; ++r) {
                first.push_back(rank_id{r});
            }
            for (int r = 0; r < b; ++r) {
                second.push_back(rank_id{10 + r});
            }
            auto const pipeline = two_stages(first, second);
            std::map<rank_id, stage_boundary> there;
            for (int member = 0; member < b; ++member) {
                there[second[static_cast<std::size_t>(member)]] = boundary_of(pipeline, 1, member, 0);
            }
            INFO(a << " ranks, then " << b);
            int named = 0;
            for (int member = 0; member < a; ++member) {
                auto const here = boundary_of(pipeline, 0, member, 1);
                if (here.peer != no_rank) {
                    CHECK(there.at(here.peer) == stage_boundary{first[static_cast<std::size_t>(member)], here.size});
                    ++named;
                }
            }
            CHECK(named == std::count_if(there.begin(), there.end(), [](auto const& other) { return other.second.peer != no_rank; }));
            CHECK((a != b || named == a));
        }
    }
}
