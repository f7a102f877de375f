// SPDX-License-Identifier: Apache-2.0
// Frontiers that are kept: the clocks are those of the library, whether a frontier was precomputed, on another thread, or when it was needed.
#include "executor/clocks/frontier_cache.hpp"

#include "rheo/schedule/families/one_f_one_b.hpp"
#include "support/catch.hpp"

using namespace rheo;

namespace {

profile four_layers()
{
    profile measured;
    for (int layer = 0; layer < 4; ++layer) {
        for (auto const kind : {instruction_kind::forward, instruction_kind::backward}) {
            double const work = kind == instruction_kind::forward ? 1.0 : 2.0;
            measured.rows.push_back({rank_id{-1}, stage_id{layer}, kind, {1400.0}, milliseconds(10.0 * work), {4.0 * work}});
            measured.rows.push_back({rank_id{-1}, stage_id{layer}, kind, {1000.0}, milliseconds(13.0 * work), {2.9 * work}});
        }
    }
    return measured;
}

/// 1F1B on pipelines of so many ranks, three microbatches each.
plan plan_of(std::vector<int> const& sizes)
{
    plan p;
    p.schedule = one_f_one_b{};
    std::int32_t rank = 0;
    for (auto const n : sizes) {
        auto& pipeline = p.pipelines.emplace_back();
        for (int s = 0; s <= n; ++s) {
            pipeline.cuts.push_back(layer_id{s == n ? 4 : s});
            if (s < n) {
                pipeline.stages.push_back({rank_id{rank++}});
            }
        }
    }
    p.work = deal(std::vector<int>(sizes.size(), 3));
    return p;
}

clock_request const request{.costs = {.blocking = {80.0}}};

chosen_clocks by_the_library(plan const& p, std::vector<slow_rank> const& slow)
{
    std::vector<pipeline_frontier> made;
    std::vector<pipeline_frontier const*> all;
    for (std::size_t i = 0; i < p.pipelines.size(); ++i) {
        made.push_back(*make_pipeline_frontier(p, i, four_layers(), request, slow));
    }
    for (auto const& f : made) {
        all.push_back(&f);
    }
    return *choose_clocks(all, request);
}

}  // namespace

TEST_CASE("frontier_cache: gives the library's clocks, made once")
{
    frontier_cache book{four_layers(), request};
    std::vector<slow_rank> const slow{{rank_id{1}, 1.3}};
    for (int again = 0; again < 2; ++again) {
        CHECK(book.choose(plan_of({2, 3}), {})->clocks == by_the_library(plan_of({2, 3}), {}).clocks);
        CHECK(book.made() == (again == 0 ? 2 : 5));
        CHECK(book.choose(plan_of({2, 2}), slow)->clocks == by_the_library(plan_of({2, 2}), slow).clocks);
        CHECK(book.made() == (again == 0 ? 3 : 5));  // the other one is like one of those before
        CHECK(book.choose(plan_of({1, 4}), {})->clocks == by_the_library(plan_of({1, 4}), {}).clocks);
        CHECK(book.made() == 5);
    }
}

namespace {

/// Returns the plans one after the other.
std::function<std::optional<plan>()> one_by_one(std::vector<plan> plans)
{
    return [plans = std::move(plans), at = std::size_t{0}]() mutable { return at < plans.size() ? std::optional{plans[at++]} : std::nullopt; };
}

}  // namespace

TEST_CASE("frontier_cache: precomputed frontiers are identical")
{
    frontier_cache book{four_layers(), request};
    CHECK_FALSE(book.take_precomputed());
    book.precompute(one_by_one({plan_of({1, 2}), plan_of({3}), plan_of({2, 1})}));
    CHECK(book.made() == 3);
    auto const done = book.take_precomputed();
    REQUIRE(done);
    CHECK(done->plans == 3);
    CHECK(done->frontiers == 3);
    CHECK(done->took > seconds{});
    CHECK_FALSE(book.take_precomputed());  // reported once
    CHECK(book.choose(plan_of({1, 3}), {})->clocks == by_the_library(plan_of({1, 3}), {}).clocks);
    CHECK(book.made() == 3);
    CHECK(book.made_at_once() == 0);
    CHECK(book.searched_at_once() == 1);  // their frontiers were there, but not this plan's clocks
    CHECK(book.choose(plan_of({2, 1}), {})->clocks == by_the_library(plan_of({2, 1}), {}).clocks);
    CHECK(book.searched_at_once() == 1);  // these were
    CHECK(book.choose(plan_of({4}), {})->clocks == by_the_library(plan_of({4}), {}).clocks);
    CHECK(book.made_at_once() == 1);
    for (int round = 0; round < 20; ++round) {  // given up, begun again, ended in the middle
        book.precompute(one_by_one({plan_of({4, 4}), plan_of({2})}));
        CHECK(book.choose(plan_of({2}), {})->clocks == by_the_library(plan_of({2}), {}).clocks);
    }
}
