// SPDX-License-Identifier: Apache-2.0
// The exact optimum of the estimate against the exhaustive search, and the values known by number.
#include <functional>
#include <optional>
#include <random>

#include "rheo/partition/optimal_estimate.hpp"
#include "rheo/schedule/check/timeline.hpp"
#include "rheo/schedule/families/one_f_one_b.hpp"
#include "support/catch.hpp"

using namespace rheo;

namespace {

constexpr std::int64_t w8[] = {11, 15, 4, 4, 12, 15, 15, 14};
constexpr std::int64_t even[] = {2, 4, 6, 8, 10, 12};

constexpr std::vector<std::int64_t> stage_times(array_view<std::int64_t const> costs, array_view<layer_id const> bounds)
{
    std::vector<std::int64_t> times;
    for (int s = 0; s < stage_count(bounds); ++s) {
        std::int64_t sum = 0;
        auto const span = layers_of(bounds, stage_id{s});
        for (auto l = span.begin; l < span.end; ++l) {
            sum += costs[at(l)];
        }
        times.push_back(sum);
    }
    return times;
}

constexpr std::vector<layer_id> cuts_at(std::initializer_list<int> values)
{
    std::vector<layer_id> bounds;
    for (auto const v : values) {
        bounds.push_back(layer_id{v});
    }
    return bounds;
}

/// Whether the optimum at 4 S microbatches has these cuts and this time.
constexpr bool planned(array_view<std::int64_t const> costs, std::initializer_list<int> cuts, std::int64_t time)
{
    auto const stages = static_cast<int>(cuts.size()) - 1;
    auto const found = estimate_optimal_cuts(costs, stages, usual_microbatches(stages));
    return found == cuts_at(cuts) && pipeline_estimate(stage_times(costs, found), usual_microbatches(stages)) == time;
}

static_assert(planned(w8, {0, 3, 4, 6, 8}, 510));  // divide and conquer finds 522
static_assert(planned(even, {0, 6}, 168));
static_assert(planned(even, {0, 4, 6}, 196));
static_assert(planned(even, {0, 3, 5, 6}, 234));
static_assert(planned(even, {0, 3, 4, 5, 6}, 222));
static_assert(planned(even, {0, 1, 3, 4, 5, 6}, 270));
static_assert(planned(even, {0, 1, 2, 3, 4, 5, 6}, 318));
constexpr std::int64_t three[] = {2, 3, 4};
static_assert(planned(three, {0, 2, 3}, 43));  // stages 5 and 4

constexpr std::int64_t front[] = {8, 2};
static_assert(pipeline_estimate(front, 8) == 60);
constexpr stage_cost stage_of(double work) { return {{work / 2}, {work / 2}, {work / 4}, {work / 4}, {}, {}}; }
static_assert(makespan(one_f_one_b::program({.ranks = 2, .microbatches = 8}), {stage_of(8), stage_of(2)}) == seconds{64});  // really

/// The best of all cuts, which are visited in lexicographic order.
std::vector<layer_id> best_of_all(std::vector<std::int64_t> const& costs, int stages, int microbatches)
{
    std::optional<std::int64_t> least;
    std::vector<layer_id> best;
    std::vector<layer_id> bounds{layer_id{0}};
    auto const layers = static_cast<int>(costs.size());
    std::function<void(int)> const visit = [&](int left) {
        if (left == 1) {
            bounds.push_back(layer_id{layers});
            if (are_cuts(bounds)) {
                auto const time = pipeline_estimate(stage_times(costs, bounds), microbatches);
                if (!least || time < *least) {
                    least = time;
                    best = bounds;
                }
            }
            bounds.pop_back();
            return;
        }
        for (int end = bounds.back().value + 1; end < layers; ++end) {
            bounds.push_back(layer_id{end});
            visit(left - 1);
            bounds.pop_back();
        }
    };
    visit(stages);
    return best;
}

}  // namespace

TEST_CASE("optimal_estimate: exact for equal stages and one stage")
{
    for (int stages = 1; stages <= 9; ++stages) {
        for (int microbatches = 1; microbatches <= 20; ++microbatches) {
            std::vector<std::int64_t> const times(static_cast<std::size_t>(stages), 7);
            REQUIRE(pipeline_estimate(times, microbatches) == (microbatches + stages - 1) * 7);
        }
    }
    CHECK(pipeline_estimate(std::vector<std::int64_t>{9}, 5) == 45);
}

TEST_CASE("optimal_estimate: equals exhaustive search with ties")
{
    std::mt19937 draw{7};
    for (int round = 0; round < 700; ++round) {
        auto const layers = 1 + static_cast<int>(draw() % 9);
        auto const largest = 1 + draw() % 9;
        std::vector<std::int64_t> costs;
        for (int l = 0; l < layers; ++l) {
            costs.push_back(static_cast<std::int64_t>(draw() % (largest + 1)));
        }
        for (int stages = 1; stages <= layers + 1; ++stages) {
            for (auto const microbatches : {usual_microbatches(stages), 1 + static_cast<int>(draw() % 12)}) {
                CAPTURE(costs, stages, microbatches);
                REQUIRE(estimate_optimal_cuts(costs, stages, microbatches) == best_of_all(costs, stages, microbatches));
            }
        }
    }
}

TEST_CASE("optimal_estimate: all numbers of stages from the same tables")
{
    std::vector<seconds> times;
    for (int l = 0; l < 24; ++l) {
        times.push_back(milliseconds(1.0 + 0.37 * (l % 5)));
    }
    auto const all = estimate_optimal_cuts_up_to(times, 30);
    REQUIRE(all.size() == 30);
    for (int stages = 1; stages <= 30; ++stages) {
        REQUIRE(all[static_cast<std::size_t>(stages) - 1] == estimate_optimal_cuts(times, stages, usual_microbatches(stages)));
    }
    CHECK(all[23].size() == 25);
    CHECK(all[24].empty());
}

TEST_CASE("optimal_estimate: an estimate needs stages and microbatches")
{
    CHECK_THROWS_AS(pipeline_estimate({}, 1), precondition_error);
    CHECK_THROWS_AS(estimate_optimal_cuts(even, 2, 0), precondition_error);
    CHECK_THROWS_AS(estimate_optimal_cuts(even, 0, 4), precondition_error);
}
