// SPDX-License-Identifier: Apache-2.0
// The assignment against all permutations, its ties too.
#include <algorithm>
#include <numeric>
#include <optional>
#include <random>
#include <tuple>

#include "rheo/reshard/assignment.hpp"
#include "rheo/reshard/detail/heaviest_assignment.hpp"
#include "rheo/reshard/detail/transportation.hpp"
#include "support/catch.hpp"

using namespace rheo;

namespace {

static_assert(cheapest_assignment({2, 2, {1, 2, 1, 5}}) == assignment{{1, 0}, 3});
static_assert(cheapest_assignment({2, 3, {0, 0, 0, 0, 0, 0}}) == assignment{{0, 1}, 0});
static_assert(cheapest_assignment({2, 3, {0, 0, 0, 0, 9, 9}}) == assignment{{1, 0}, 0});
static_assert(cheapest_assignment({0, 3, {}}) == assignment{{}, 0});
static_assert(cheapest_assignment({0, 0, {}}) == assignment{{}, 0});

assignment best_of_all(assignment_costs const& costs)
{
    std::vector<int> columns(static_cast<std::size_t>(costs.columns));
    std::iota(columns.begin(), columns.end(), 0);
    std::optional<std::tuple<std::int64_t, std::vector<int>>> best;
    do {
        std::int64_t sum = 0;
        for (int r = 0; r < costs.rows; ++r) {
            sum += costs.values[static_cast<std::size_t>(r * costs.columns + columns[static_cast<std::size_t>(r)])];
        }
        std::tuple const answer{sum, std::vector<int>(columns.begin(), columns.begin() + costs.rows)};
        best = !best || answer < *best ? answer : *best;
    } while (std::next_permutation(columns.begin(), columns.end()));
    return {std::get<1>(*best), std::get<0>(*best)};
}

}  // namespace

TEST_CASE("assignment: cheapest, lexicographic ties")
{
    std::mt19937 draw{6};
    for (int round = 0; round < 4000; ++round) {
        auto const columns = 1 + static_cast<int>(draw() % 6);
        auto const rows = static_cast<int>(draw() % static_cast<unsigned>(columns + 1));
        auto const largest = 1 + draw() % 5;  // small numbers tie often
        assignment_costs costs{rows, columns, {}};
        for (int i = 0; i < rows * columns; ++i) {
            costs.values.push_back(static_cast<std::int64_t>(draw() % largest));
        }
        CAPTURE(rows, columns, costs.values);
        REQUIRE(cheapest_assignment(costs) == best_of_all(costs));
        REQUIRE(cheapest_assignment_cost(costs) == best_of_all(costs).cost);
    }
}

TEST_CASE("assignment: initial prices change no result")
{
    std::mt19937 draw{8};
    for (int round = 0; round < 400; ++round) {
        auto const columns = 1 + static_cast<int>(draw() % 6);
        std::vector<std::int64_t> prices;
        for (int k = 0; k < 4; ++k) {
            assignment_costs costs{static_cast<int>(draw() % static_cast<unsigned>(columns + 1)), columns, {}};
            for (int i = 0; i < costs.rows * columns; ++i) {
                costs.values.push_back(static_cast<std::int64_t>(draw() % 4));
            }
            CAPTURE(costs.rows, columns, costs.values, prices);
            REQUIRE(cheapest_assignment(costs, prices) == best_of_all(costs));
        }
    }
    std::vector<std::int64_t> too_few{1};
    CHECK_THROWS_AS(cheapest_assignment({1, 2, {0, 0}}, too_few), precondition_error);
}

TEST_CASE("assignment: prices prove a large assignment cheapest")
{
    std::mt19937 draw{7};
    assignment_costs costs{40, 50, {}};
    for (int i = 0; i < 40 * 50; ++i) {
        costs.values.push_back(static_cast<std::int64_t>(draw() % 100000));
    }
    auto const found = detail::cheapest_matching(costs);
    std::int64_t dual = 0;
    for (std::size_t i = 0; i < 50; ++i) {
        dual += found.row_price[i] + found.column_price[i];
        for (std::size_t c = 0; c < 50; ++c) {
            REQUIRE(found.row_price[i] + found.column_price[c] <= detail::cost_at(costs, i, c));
        }
    }
    CHECK(dual == cheapest_assignment(costs).cost);
}

TEST_CASE("assignment: too few columns or costs are rejected")
{
    CHECK_THROWS_AS(cheapest_assignment({2, 1, {0, 0}}), precondition_error);
    CHECK_THROWS_AS(cheapest_assignment({1, 2, {0}}), precondition_error);
}

TEST_CASE("assignment: listed pairs are as good as all pairs")
{
    std::mt19937 draw{99};
    for (int round = 0; round < 600; ++round) {
        detail::heaviest_problem listed;
        detail::transportation all;
        for (auto rows = 1 + draw() % 7; rows > 0; --rows) {
            listed.places.push_back(static_cast<std::int64_t>(1 + draw() % 4));
        }
        for (auto columns = 1 + draw() % 7; columns > 0; --columns) {
            listed.ranks.push_back(static_cast<std::int64_t>(draw() % 4));
        }
        all.places = listed.places;
        all.ranks = listed.ranks;
        all.ranks.push_back(100);  // a place may stay without a rank
        constexpr std::int64_t most = 50;
        for (std::size_t r = 0; r < listed.places.size(); ++r) {
            for (std::size_t c = 0; c < listed.ranks.size(); ++c) {
                auto const weight = draw() % 3 == 0 ? static_cast<std::int64_t>(draw() % most) : 0;
                if (weight > 0) {
                    listed.pairs.push_back({r, c, weight});
                }
                all.cost.push_back(most - weight);
            }
            all.cost.push_back(most);
        }
        auto const answer = detail::heaviest_assignment(listed);
        auto const weight = detail::weight_of(listed, answer);
        auto const places = std::accumulate(listed.places.begin(), listed.places.end(), std::int64_t{0});
        CAPTURE(round);
        REQUIRE(weight == most * places - detail::cheapest_transportation(all).cost);
        REQUIRE(weight == detail::dual_value(listed, answer));
        auto row_left = listed.places;
        auto column_left = listed.ranks;
        for (std::size_t p = 0; p < listed.pairs.size(); ++p) {
            auto const& pair = listed.pairs[p];
            REQUIRE(answer.row_price[pair.row] + answer.column_price[pair.column] >= pair.weight);
            REQUIRE(answer.taken[p] >= 0);
            REQUIRE((row_left[pair.row] -= answer.taken[p]) >= 0);
            REQUIRE((column_left[pair.column] -= answer.taken[p]) >= 0);
        }
        REQUIRE(std::all_of(answer.row_price.begin(), answer.row_price.end(), [](std::int64_t price) { return price >= 0; }));
        REQUIRE(std::all_of(answer.column_price.begin(), answer.column_price.end(), [](std::int64_t price) { return price >= 0; }));
    }
}
