// SPDX-License-Identifier: Apache-2.0
// Where there are many ranks, losses that are alike are looked at once: each of them leads to what that one leads to.
#include "rheo/planner/make_forecast.hpp"

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "rheo/model/gpt.hpp"
#include "rheo/planner/make_plan.hpp"
#include "rheo/schedule/families/families.hpp"
#include "support/catch.hpp"

using namespace rheo;

namespace {

model_description const gpt = gpt_model({.vocabulary = 96, .context = 16, .width = 32, .heads = 2, .blocks = 4});

/// What a loss leads to, but for the numbers of ranks.
auto what_follows(loss_outcome const& of)
{
    std::vector<int> sizes;
    for (auto const& pipeline : of.next.pipelines) {
        sizes.push_back(static_cast<int>(ranks_of(pipeline).size()));
    }
    return std::tuple{of.only_copy, of.next.error, sizes, of.next.shares, of.step, of.next.copies.certificate.moved, of.next.spares.size()};
}

}  // namespace

TEST_CASE("make_forecast: losses that are alike lead to the same")
{
    for (int const node_size : {1, 4}) {
        planning_request const request{
            .schedule = one_f_one_b{}, .microbatches = 96, .microbatch = {2, 16}, .failures = 1, .min_ranks = 2, .spares = 2, .node_size = node_size};
        auto const first = make_plan(gpt, request, 74);
        REQUIRE(first);
        auto const f = make_forecast(first->plan, gpt, request, {.node_size = node_size});
        CHECK(f.ranks.size() < 20);
        auto const known = make_replanning(gpt, request, 74);
        auto const places = places_in(first->plan.pipelines);
        std::map<std::vector<int>, std::size_t> kinds;
        int all = 0;
        for (auto const& one : f.ranks) {
            all += one.alike;
            kinds.emplace(detail::kind_of_loss(one.lost, first->plan, places, node_size), kinds.size());
        }
        CHECK(all == 74);
        for (auto const rank : ranks_of(first->plan)) {
            auto const kind = kinds.find(detail::kind_of_loss(array_view{&rank, 1}, first->plan, places, node_size));
            REQUIRE(kind != kinds.end());
            INFO("rank " << rank.value << ", nodes of " << node_size);
            CHECK(what_follows(outcome_of(array_view{&rank, 1}, first->plan, known, membership_rules_of(request))) == what_follows(f.ranks[kind->second]));
        }
    }
}

TEST_CASE("make_forecast: of many ranks, 1, 2, 4, ... less")
{
    planning_request const request{.schedule = one_f_one_b{}, .microbatches = 96, .microbatch = {2, 16}, .failures = 1, .min_ranks = 2};
    auto const ranks_looked_at = [&](int ranks) {
        auto const first = make_plan(gpt, request, ranks);
        REQUIRE(first);
        std::vector<int> numbers;
        for (auto const& one : make_forecast(first->plan, gpt, request).instantiations) {
            numbers.push_back(one.ranks);
        }
        return numbers;
    };
    CHECK(ranks_looked_at(5) == std::vector{5, 4, 3, 2, 1});
    CHECK(ranks_looked_at(most_ranks_looked_at_alone).size() == 64);
    CHECK(ranks_looked_at(100) == std::vector{100, 99, 98, 96, 92, 84, 68, 36});
}
