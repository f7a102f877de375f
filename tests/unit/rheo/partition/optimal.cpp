// SPDX-License-Identifier: Apache-2.0
// The optimum against all cuts, ties and memory rules included.
#include <optional>
#include <random>

#include "rheo/partition/optimal.hpp"
#include "rheo/partition/stage_memory.hpp"
#include "support/catch.hpp"

using namespace rheo;

namespace {

constexpr std::vector<layer_id> bounds(std::initializer_list<int> values)
{
    std::vector<layer_id> result;
    for (auto const v : values) {
        result.push_back(layer_id{v});
    }
    return result;
}

constexpr std::int64_t uneven[] = {2, 4, 6, 8, 10, 12};
static_assert(optimal_cuts(uneven, 1) == bounds({0, 6}));
static_assert(optimal_cuts(uneven, 2) == bounds({0, 4, 6}));     // 20 | 22
static_assert(optimal_cuts(uneven, 3) == bounds({0, 3, 5, 6}));  // 12 | 18 | 12; 0,4,5,6 has 20
static_assert(optimal_cuts(uneven, 6) == bounds({0, 1, 2, 3, 4, 5, 6}));
static_assert(optimal_cuts(uneven, 7).empty());
constexpr std::int64_t equal[] = {1, 1, 1, 1, 1};
static_assert(optimal_cuts(equal, 3) == bounds({0, 1, 3, 5}));  // of 1,2,2 and 2,1,2 and 2,2,1 the first

/// Calls `visit` with all cuts of `layers` into `stages` in lexicographic order.
template <class Visit>
void for_all_cuts(std::vector<layer_id>& path, int layers, int stages, Visit const& visit)
{
    if (stages == 1) {
        path.push_back(layer_id{layers});
        visit(path);
        path.pop_back();
        return;
    }
    for (auto next = path.back().value + 1; next <= layers - stages + 1; ++next) {
        path.push_back(layer_id{next});
        for_all_cuts(path, layers, stages - 1, visit);
        path.pop_back();
    }
}

template <class Rule>
std::vector<layer_id> best_of_all(std::vector<std::int64_t> const& costs, int stages, Rule const& allows)
{
    std::vector<layer_id> best;
    std::optional<std::int64_t> least;
    std::vector<layer_id> path{layer_id{0}};
    if (stages > static_cast<int>(costs.size())) {
        return best;
    }
    for_all_cuts(path, static_cast<int>(costs.size()), stages, [&](std::vector<layer_id> const& candidate) {
        std::int64_t slowest = 0;
        for (int s = 0; s < stages; ++s) {
            auto const span = layers_of(candidate, stage_id{s});
            std::int64_t time = 0;
            for (auto l = span.begin; l < span.end; ++l) {
                time += costs[at(l)];
            }
            slowest = std::max(slowest, time);
            if (!allows(span, stages - s)) {
                return;
            }
        }
        if (!least || slowest < *least) {
            least = slowest;
            best = candidate;
        }
    });
    return best;
}

}  // namespace

TEST_CASE("optimal: optimal cuts are those of the exhaustive search")
{
    std::mt19937 draw{1};
    for (int round = 0; round < 400; ++round) {
        auto const layers = 1 + static_cast<int>(draw() % 9);
        auto const largest = 1 + draw() % 6;  // small numbers tie often; 0 is a cost, too
        std::vector<std::int64_t> costs;
        for (int l = 0; l < layers; ++l) {
            costs.push_back(static_cast<std::int64_t>(draw() % (largest + 1)));
        }
        for (int stages = 1; stages <= layers + 1; ++stages) {
            CAPTURE(costs, stages);
            REQUIRE(optimal_cuts(costs, stages) == best_of_all(costs, stages, any_stage{}));
        }
    }
}

TEST_CASE("optimal: optimal under a memory limit")
{
    std::mt19937 draw{2};
    int refused = 0;
    int changed = 0;
    for (int round = 0; round < 300; ++round) {
        auto const layers = 1 + static_cast<int>(draw() % 8);
        std::vector<std::int64_t> costs;
        std::vector<layer_memory> memory;
        for (int l = 0; l < layers; ++l) {
            costs.push_back(static_cast<std::int64_t>(1 + draw() % 5));
            memory.push_back({{static_cast<std::int64_t>(draw() % 9)}, {static_cast<std::int64_t>(draw() % 4)}});
        }
        auto const microbatches = 1 + static_cast<int>(draw() % 6);
        auto const flight = round % 2 == 0 ? in_flight_one_f_one_b(microbatches) : in_flight_gpipe(microbatches);
        auto const fits = stage_memory_limit(memory, flight, bytes{static_cast<std::int64_t>(8 + draw() % 20)});
        for (int stages = 1; stages <= layers; ++stages) {
            CAPTURE(costs, stages);
            auto const found = optimal_cuts(costs, stages, fits);
            REQUIRE(found == best_of_all(costs, stages, fits));
            refused += found.empty() ? 1 : 0;
            changed += !found.empty() && found != optimal_cuts(costs, stages) ? 1 : 0;
        }
    }
    CHECK(refused > 50);
    CHECK(changed > 50);
}

TEST_CASE("optimal: all numbers of stages from one table")
{
    std::vector<seconds> times;
    for (int l = 0; l < 24; ++l) {
        times.push_back(milliseconds(1.0 + 0.37 * (l % 5)));
    }
    auto const all = optimal_cuts_up_to(times, 30);
    REQUIRE(all.size() == 30);
    for (int stages = 1; stages <= 30; ++stages) {
        REQUIRE(all[static_cast<std::size_t>(stages) - 1] == optimal_cuts(times, stages));
    }
    CHECK(all[23].size() == 25);
    CHECK(all[24].empty());
}

TEST_CASE("optimal: what is no model is refused")
{
    std::vector<std::int64_t> const none;
    std::vector<std::int64_t> const negative{1, -1};
    CHECK_THROWS_AS(optimal_cuts(none, 1), precondition_error);
    CHECK_THROWS_AS(optimal_cuts(negative, 1), precondition_error);
    CHECK_THROWS_AS(optimal_cuts(uneven, 0), precondition_error);
}
