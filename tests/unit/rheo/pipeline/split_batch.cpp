// SPDX-License-Identifier: Apache-2.0
// The batch split against all splits, and the cases known by number.
#include <algorithm>
#include <functional>
#include <random>

#include "rheo/pipeline/split_batch.hpp"
#include "support/catch.hpp"

using namespace rheo;

namespace {

constexpr pipeline_cost unit_time(double time) { return {seconds{0}, seconds{time}}; }

constexpr std::vector<int> shares_of(std::initializer_list<pipeline_cost> pipelines, int microbatches)
{
    std::vector<pipeline_cost> const costs(pipelines);
    return split_batch(costs, microbatches).shares;
}

static_assert(shares_of({unit_time(1), unit_time(1), unit_time(1), unit_time(1)}, 513) == std::vector<int>{129, 128, 128, 128});
static_assert(shares_of({unit_time(1), unit_time(1)}, 8) == std::vector<int>{4, 4});
static_assert(shares_of({unit_time(1), unit_time(1), unit_time(1)}, 2) == std::vector<int>{1, 1, 0});
static_assert(shares_of({unit_time(100), unit_time(1)}, 8) == std::vector<int>{1, 7});  // one at least
static_assert(shares_of({unit_time(10), unit_time(5)}, 4) == std::vector<int>{1, 3});
static_assert(shares_of({unit_time(10), unit_time(5)}, 5) == std::vector<int>{1, 4});  // 10, 20 and not 20, 15

/// Times of the shares in nanoseconds, the slowest first: what is minimised.
std::vector<std::int64_t> times_of(std::vector<pipeline_cost> const& costs, std::vector<int> const& shares)
{
    std::vector<std::int64_t> times;
    for (std::size_t p = 0; p < costs.size(); ++p) {
        times.push_back(in_whole_nanoseconds(time_of(costs[p], shares[p])));
    }
    std::sort(times.rbegin(), times.rend());
    return times;
}

std::vector<int> best_of_all(std::vector<pipeline_cost> const& costs, int microbatches)
{
    auto const least = microbatches >= static_cast<int>(costs.size()) ? 1 : 0;
    std::vector<int> best;
    std::vector<int> shares;
    std::function<void(int)> const visit = [&](int left) {
        if (shares.size() + 1 == costs.size()) {
            if (left > costs.back().most_microbatches) {
                return;
            }
            shares.push_back(left);
            auto const better =
                best.empty() || times_of(costs, shares) < times_of(costs, best) || (times_of(costs, shares) == times_of(costs, best) && shares > best);
            best = better ? shares : best;
            shares.pop_back();
            return;
        }
        auto const others = static_cast<int>(costs.size() - shares.size()) - 1;
        auto const room = std::min(costs[shares.size()].most_microbatches, left - others * least);
        for (int share = least; share <= room; ++share) {
            shares.push_back(share);
            visit(left - share);
            shares.pop_back();
        }
    };
    visit(microbatches);
    return best;
}

}  // namespace

TEST_CASE("split_batch: best split, slowest first, stable ties")
{
    std::mt19937 draw{3};
    int full = 0;
    for (int round = 0; round < 1500; ++round) {
        std::vector<pipeline_cost> costs(1 + draw() % 4);
        auto const largest = 1 + draw() % 6;  // small numbers tie often
        for (auto& cost : costs) {
            cost = {seconds{static_cast<double>(draw() % (2 * largest))}, seconds{static_cast<double>(1 + draw() % largest)}};
            if (round % 3 == 0) {
                cost.most_microbatches = 1 + static_cast<int>(draw() % 6);
            }
        }
        auto const microbatches = static_cast<int>(draw() % 12);
        auto const split = split_batch(costs, microbatches);
        CAPTURE(split.shares, microbatches);
        auto const best = best_of_all(costs, microbatches);
        REQUIRE(split.shares == best);
        REQUIRE((split.unplaced > 0) == best.empty());
        if (best.empty()) {
            ++full;
            continue;
        }
        REQUIRE(in_whole_nanoseconds(split.time) == times_of(costs, split.shares).front());
        REQUIRE(split.without_work == static_cast<int>(std::count(split.shares.begin(), split.shares.end(), 0)));
    }
    CHECK(full > 50);
}

TEST_CASE("split_batch: 4 x 3 nodes + 4 + 5 with 4096 microbatches")
{
    auto const three = unit_time(6.1263973);
    std::vector<pipeline_cost> const costs{three, three, three, three, unit_time(4.7951451), unit_time(3.7795114)};
    CHECK(split_batch(costs, 4096).shares == std::vector<int>{594, 594, 594, 594, 758, 962});
}

TEST_CASE("split_batch: idle pipelines are named; any batch works")
{
    std::vector<pipeline_cost> const costs{unit_time(3), unit_time(1), unit_time(1)};
    CHECK(split_batch(costs, 0).without_work == 3);
    CHECK(split_batch(costs, 2).shares == std::vector<int>{0, 1, 1});
    CHECK(split_batch(costs, 2).without_work == 1);
    CHECK(split_batch(costs, 1'000'000'000).without_work == 0);
    CHECK(split_batch(std::vector<pipeline_cost>{{seconds{0}, seconds{1}, 2}, {seconds{0}, seconds{1}, 3}}, 8).unplaced == 3);
    CHECK_THROWS_AS(split_batch(std::vector<pipeline_cost>{{seconds{0}, seconds{1}, 0}}, 0), precondition_error);
    CHECK_THROWS_AS(split_batch(std::vector<pipeline_cost>{}, 3), precondition_error);
    CHECK_THROWS_AS(split_batch(costs, -1), precondition_error);
}
