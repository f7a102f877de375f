// SPDX-License-Identifier: Apache-2.0
// Who stands where in a pipeline and holds what: of one stage per rank, of chunks, of two copies of the model.
#include "rheo/pipeline/instance.hpp"

#include <set>
#include <vector>

#include "rheo/pipeline/shares.hpp"
#include "rheo/pipeline/template.hpp"
#include "rheo/schedule/check/complete.hpp"
#include "rheo/schedule/check/deadlock.hpp"
#include "rheo/schedule/families/families.hpp"
#include "rheo/schedule/families/schedule_form.hpp"
#include "rheo/schedule/transform/lowering.hpp"
#include "support/catch.hpp"

using namespace rheo;

namespace {

constexpr std::vector<layer_id> cuts_of(std::initializer_list<int> values)
{
    std::vector<layer_id> result;
    for (auto const v : values) {
        result.push_back(layer_id{v});
    }
    return result;
}

constexpr pipeline_instance make(std::initializer_list<int> cuts, std::initializer_list<int> ranks)
{
    pipeline_instance result{cuts_of(cuts), {}};
    for (auto const r : ranks) {
        result.stages.push_back({rank_id{r}});
    }
    return result;
}

constexpr layer_span span(int begin, int end) { return {layer_id{begin}, layer_id{end}}; }

// A V of two chunks: the ends meet on rank 5, the middle on rank 3.
static_assert(ranks_of(make({0, 1, 3, 4, 7}, {5, 3, 3, 5})) == std::vector{rank_id{5}, rank_id{3}});
static_assert(placement_of(make({0, 1, 3, 4, 7}, {5, 3, 3, 5})) == stage_placement{{0, 1, 1, 0}, 1});
static_assert(layers_of(make({0, 1, 3, 4, 7}, {5, 3, 3, 5}), rank_id{5}) == std::vector{span(0, 1), span(4, 7)});
static_assert(layers_of(make({0, 1, 3, 4, 7}, {5, 3, 3, 5}), rank_id{3}) == std::vector{span(1, 4)});
static_assert(layers_of(make({0, 1, 3, 4, 7}, {5, 3, 3, 5}), rank_id{4}).empty());

// The model twice, in opposite directions: both ranks hold all of it.
static_assert(placement_of(make({0, 2, 7}, {0, 1, 1, 0})) == stage_placement{{0, 1, 1, 0}, 2});
static_assert(layers_of(make({0, 2, 7}, {0, 1, 1, 0}), rank_id{1}) == std::vector{span(0, 7)});
static_assert(layers_of(make({0, 2, 7}, {0, 1, 1, 0}), stage_id{3}) == span(2, 7));
static_assert(holders_of(make({0, 2, 7}, {0, 1, 1, 0}), std::vector{layer_id{0}}) == std::vector{rank_id{0}, rank_id{1}});

}  // namespace

TEST_CASE("instance: placement and holders per family form")
{
    for (auto const name : schedule_names()) {
        auto const family = *parse_schedule(name);
        for (int ranks = 1; ranks <= 5; ++ranks) {
            auto const form = form_of(family, ranks);
            if (!form) {
                continue;
            }
            INFO(name << " on " << ranks);
            auto const stages = stages_per_copy(form->where);
            std::vector<layer_id> cuts{layer_id{0}};
            std::vector<rank_id> by_position;
            for (int s = 0; s < stages; ++s) {
                cuts.push_back(layer_id{cuts.back().value + 1 + s % 3});
            }
            for (int r = 0; r < ranks; ++r) {
                by_position.push_back(rank_id{(3 * r + 1) % 16});
            }
            template_value const shape{cuts, {}, form->where};
            REQUIRE(size(shape) == ranks);
            auto const pipeline = make_instance(shape, by_position);
            REQUIRE(ranks_of(pipeline) == by_position);
            REQUIRE(placement_of(pipeline) == form->where);
            for (int position = 0; position < ranks; ++position) {
                REQUIRE(layers_by_position(shape)[static_cast<std::size_t>(position)] == layers_of(pipeline, by_position[static_cast<std::size_t>(position)]));
            }
            for (layer_id layer{0}; layer < cuts.back(); ++layer) {
                std::set<int> running;  // read off the stages, one by one
                for (std::size_t s = 0; s < pipeline.stages.size(); ++s) {
                    if (contains(layers_of(cuts, stage_id{static_cast<int>(s) % stages}), layer)) {
                        running.insert(pipeline.stages[s].front().value);
                    }
                }
                std::set<int> holding;
                for (auto const rank : holders_of(pipeline, std::vector{layer})) {
                    holding.insert(rank.value);
                    REQUIRE(contains(layers_of(pipeline, rank), layer));
                }
                REQUIRE(holding == running);
                REQUIRE(static_cast<int>(holding.size()) == form->where.copies);
            }
        }
    }
}

TEST_CASE("instance: listed order is complete and never hangs")
{
    for (auto const name : schedule_names()) {
        auto const family = *parse_schedule(name);
        for (int ranks = 1; ranks <= 4; ++ranks) {
            for (int m = 0; m <= 5; ++m) {
                if (auto const form = form_of(family, ranks)) {
                    INFO(name << " on " << ranks << " ranks, " << m << " microbatches");
                    std::vector<stage_work> work;
                    for (int k = 0; k < m; ++k) {
                        work.push_back({microbatch_id{2 * k + 1}, stage_id{k * k % (stages_per_copy(form->where) + 1)}});
                    }
                    auto const p = listed_program(*form, work);
                    REQUIRE(placement_of(p) == form->where);
                    REQUIRE(complete(p, work).ok);
                    REQUIRE(deadlock_free<rendezvous>(lower(p)).ok);
                }
            }
        }
    }
}

TEST_CASE("instance: a position has a group for all of its stages")
{
    pipeline_instance const pipeline{{layer_id{0}, layer_id{2}, layer_id{3}, layer_id{5}, layer_id{6}},
                                     {{rank_id{4}, rank_id{5}}, {rank_id{1}}, {rank_id{4}, rank_id{5}}, {rank_id{1}}}};
    CHECK(groups_of(pipeline) == std::vector<std::vector<rank_id>>{{rank_id{4}, rank_id{5}}, {rank_id{1}}});
    CHECK(ranks_of(pipeline) == std::vector{rank_id{4}, rank_id{5}, rank_id{1}});
    CHECK(placement_of(pipeline).positions == std::vector{0, 1, 0, 1});
    for (auto const rank : {4, 5}) {
        CHECK(layers_of(pipeline, rank_id{rank}) == std::vector{layer_span{layer_id{0}, layer_id{2}}, layer_span{layer_id{3}, layer_id{5}}});
    }
    CHECK(layers_of(pipeline, rank_id{7}).empty());
    CHECK(holders_of(pipeline, std::vector{layer_id{4}}) == std::vector{rank_id{4}, rank_id{5}});
}

TEST_CASE("instance: shares are as even as can be, the last the largest")
{
    for (int grid = 1; grid <= most_shards; ++grid) {
        for (int degree = 1; degree <= grid; ++degree) {
            for (int member = 0; member < degree; ++member) {
                auto const group = even_group(grid, degree, member);
                REQUIRE(covers_grid(group, grid));
                REQUIRE(group.is_alone() == (degree == 1));
                REQUIRE(group.run(grid).count() >= grid / degree);
                REQUIRE(group.run(grid).count() <= even_group(grid, degree, degree - 1).run(grid).count());
            }
        }
    }
    CHECK_THROWS_AS(even_group(2, 3, 0), precondition_error);
}

TEST_CASE("instance: shares that a pipeline names")
{
    pipeline_instance pipeline{{layer_id{0}, layer_id{2}, layer_id{3}, layer_id{5}, layer_id{6}},
                               {{rank_id{1}}, {rank_id{4}, rank_id{5}, rank_id{6}}, {rank_id{1}}, {rank_id{4}, rank_id{5}, rank_id{6}}}};
    auto const even = pipeline;
    for (auto const& stage : pipeline.stages) {
        pipeline.shares.push_back(even_shares(8, static_cast<int>(stage.size())));
    }
    for (int stage = 0; stage < 4; ++stage) {
        for (int member = -1; member < 4; ++member) {
            CHECK(group_of(pipeline, stage_id{stage}, 8, member) == group_of(even, stage_id{stage}, 8, member));
            CHECK(group_at(pipeline, stage % 2, 8, member) == group_at(even, stage % 2, 8, member));
        }
    }
    pipeline.shares = {{8}, {1, 5, 2}, {8}, {1, 5, 2}};
    CHECK(group_at(pipeline, 1, 8).run(8) == shard_range{1, 6});
    CHECK(group_at(pipeline, 1, 8, 0).run(8) == shard_range{0, 1});
    CHECK(group_of(pipeline, stage_id{3}, 8, 2).run(8) == shard_range{6, 8});
    CHECK(covers_grid(group_at(pipeline, 1, 8), 8));
    CHECK(group_at(pipeline, 0, 8).is_alone());
    CHECK(group_at(pipeline, 0, 8).run(8) == shard_range{0, 8});
}
