// SPDX-License-Identifier: Apache-2.0
// The plan as a value: who is where, how work is dealt, and a digest that tells any two plans apart.
#include "rheo/plan/plan.hpp"

#include <set>

#include "examples.hpp"
#include "rheo/schedule/families/gpipe.hpp"
#include "support/catch.hpp"

using namespace rheo;
using test::example;

namespace {

static_assert(position_of(example(), rank_id{2}) == plan_position{true, pipeline_id{0}, 0});
static_assert(position_of(example(), rank_id{4}) == plan_position{true, pipeline_id{1}, 2});
static_assert(!position_of(example(), rank_id{3}).found && !position_of(example(), rank_id{9}).found);
static_assert(layers_of(example(), rank_id{1}) == std::vector{layer_span{layer_id{1}, layer_id{3}}});
static_assert(layers_of(example(), rank_id{3}).empty());

constexpr bool deals_everything_in_order(std::initializer_list<int> shares)
{
    std::vector<int> const list{shares};
    auto const work = deal(list);
    int next = 0;
    for (std::size_t i = 0; i < work.size(); ++i) {
        if (static_cast<int>(work[i].size()) != list[i]) {
            return false;
        }
        for (auto const& w : work[i]) {
            if (w != microbatch_work{microbatch_id{next++}, layer_id{0}}) {
                return false;
            }
        }
    }
    return work.size() == list.size();
}
static_assert(deals_everything_in_order({}) && deals_everything_in_order({8}) && deals_everything_in_order({3, 5}) && deals_everything_in_order({4, 0, 1}));

// The compiler computes the digest that run time computes.
constexpr auto at_compile_time = digest_of(example());

}  // namespace

TEST_CASE("plan: every field changes the digest")
{
    CHECK(digest_of(example()) == at_compile_time);
    std::set<std::string> seen{to_string(at_compile_time)};
    std::size_t expected = 1;
    auto const differs = [&](auto change) {
        auto p = example();
        change(p);
        REQUIRE_FALSE(p == example());
        seen.insert(to_string(digest_of(p)));
        REQUIRE(seen.size() == ++expected);
    };
    differs([](plan& p) { p.schedule = gpipe{}; });
    differs([](plan& p) { p.schedule = {}; });
    for (std::size_t i = 0; i < 2; ++i) {
        for (std::size_t c = 0; c < example().pipelines[i].cuts.size(); ++c) {
            differs([&](plan& p) { ++p.pipelines[i].cuts[c]; });
        }
        differs([&](plan& p) { p.pipelines[i].cuts.pop_back(); });
        for (std::size_t s = 0; s < example().pipelines[i].stages.size(); ++s) {
            differs([&](plan& p) { p.pipelines[i].stages[s][0] = rank_id{7}; });
            differs([&](plan& p) { p.pipelines[i].stages[s].push_back(rank_id{7}); });
            differs([&](plan& p) { p.pipelines[i].stages[s].clear(); });
        }
        for (std::size_t m = 0; m < example().work[i].size(); ++m) {
            differs([&](plan& p) { p.work[i][m].microbatch = microbatch_id{9}; });
            differs([&](plan& p) { p.work[i][m].deepest = layer_id{4}; });
            differs([&](plan& p) { p.work[i][m].deepest = no_backward; });
        }
        differs([&](plan& p) { p.work[i].pop_back(); });
        differs([&](plan& p) { p.work[i].clear(); });
    }
    differs([](plan& p) { std::swap(p.pipelines[0], p.pipelines[1]); });
    differs([](plan& p) { std::swap(p.work[0], p.work[1]); });
    differs([](plan& p) { std::swap(p.work[0][0], p.work[0][1]); });
    differs([](plan& p) { std::swap(p.pipelines[0].stages[0], p.pipelines[0].stages[1]); });
    differs([](plan& p) { p.work[1].insert(p.work[1].begin(), p.work[0].back()), p.work[0].pop_back(); });  // one goes to the neighbour
    differs([](plan& p) { p.pipelines.pop_back(); });
    differs([](plan& p) { p.work.pop_back(); });
    differs([](plan& p) { p.work.emplace_back(); });
    differs([](plan& p) { p.spares.clear(); });
    differs([](plan& p) { p.spares[0] = rank_id{6}; });
    differs([](plan& p) { p.spares.push_back(rank_id{6}); });
    CHECK(digest_of(plan{}) == digest_of(plan{}));
    CHECK_FALSE(digest_of(plan{}) == state_digest{});
}

TEST_CASE("plan: random plans that differ have digests that differ")
{
    std::mt19937 draw{4};
    std::vector<plan> plans;
    std::set<std::string> digests;
    for (int i = 0; i < 1500; ++i) {
        auto p = test::random_plan(draw, i % 2 == 0 ? any_schedule{one_f_one_b{}} : any_schedule{gpipe{}}, 3, static_cast<int>(draw() % 3), i % 3 == 0);
        digests.insert(to_string(digest_of(p)));
        if (std::find(plans.begin(), plans.end(), p) == plans.end()) {
            plans.push_back(std::move(p));
        }
    }
    CHECK(plans.size() > 300);
    CHECK(digests.size() == plans.size());
}
