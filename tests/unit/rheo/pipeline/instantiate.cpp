// SPDX-License-Identifier: Apache-2.0
// Instantiation against the enumeration of all multisets of sizes.
#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>
#include <random>
#include <tuple>

#include "rheo/pipeline/instantiate.hpp"
#include "rheo/pipeline/plan_templates.hpp"
#include "support/catch.hpp"

using namespace rheo;

namespace {

constexpr seconds layers[] = {{1}, {2}, {2}, {2}, {2}, {3}};

constexpr std::vector<int> sizes_for(int ranks, int failures, int microbatches)
{
    return instantiate(plan_templates(layers, {2, 4}), {.ranks = ranks, .failures = failures, .microbatches = microbatches})->sizes;
}

static_assert(sizes_for(5, 1, 8) == std::vector<int>{2, 3});  // decided by the compiler
static_assert(!instantiate(plan_templates(layers, {2, 4}), {.ranks = 1, .failures = 1, .microbatches = 8}));

template_set_value random_templates(std::mt19937& draw)
{
    template_set_value ready;
    auto n = 1 + static_cast<int>(draw() % 3);
    for (auto count = 1 + draw() % 4; count > 0; --count) {
        std::vector<layer_id> bounds;
        for (int s = 0; s <= n; ++s) {
            bounds.push_back(layer_id{s});
        }
        ready.templates.push_back({bounds, {seconds{static_cast<double>(draw() % 6)}, seconds{static_cast<double>(1 + draw() % 5)}}});
        if (draw() % 3 == 0) {
            ready.templates.back().cost.most_microbatches = 1 + static_cast<int>(draw() % 4);
        }
        n += 1 + static_cast<int>(draw() % 2);
    }
    return ready;
}

/// (time, spares, sizes) of the best of all multisets: the definition of what instantiate answers.
std::optional<std::tuple<std::int64_t, int, std::vector<int>>> best_of_all(template_set_value const& ready, instantiation_request request)
{
    auto const available = sizes_of(ready);
    auto const fewest = std::min(request.failures + 1, request.ranks / available.front());
    auto const most = std::max(fewest, request.microbatches);
    std::optional<std::tuple<std::int64_t, int, std::vector<int>>> best;
    std::vector<int> sizes;
    std::function<void(std::size_t, int)> const visit = [&](std::size_t from, int left) {
        auto const pipelines = static_cast<int>(sizes.size());
        if (pipelines >= fewest && pipelines <= most) {
            auto const split = split_batch(costs_of_sizes(ready, sizes), request.microbatches);
            std::tuple const answer{in_whole_nanoseconds(split.time), left, sizes};
            best = split.unplaced == 0 && (!best || answer < *best) ? answer : best;
        }
        for (auto i = from; i < available.size() && available[i] <= left; ++i) {
            sizes.push_back(available[i]);
            visit(i, left - available[i]);
            sizes.pop_back();
        }
    };
    visit(0, request.ranks);
    return best;
}

}  // namespace

TEST_CASE("instantiate: best of all multisets of sizes")
{
    std::mt19937 draw{4};
    int idle = 0;
    int degraded = 0;
    int full = 0;
    for (int round = 0; round < 2500; ++round) {
        auto const ready = random_templates(draw);
        auto const smallest = size(ready.templates.front());
        instantiation_request const request{
            .ranks = smallest + static_cast<int>(draw() % 16), .failures = static_cast<int>(draw() % 4), .microbatches = 1 + static_cast<int>(draw() % 12)};
        auto const answer = instantiate(ready, request);
        CAPTURE(sizes_of(ready), request.ranks, request.failures, request.microbatches);
        auto const best = best_of_all(ready, request);
        REQUIRE(static_cast<bool>(answer) == best.has_value());
        if (!best) {
            REQUIRE(answer.error().find("no choice of these templates has memory for ") == 0);
            ++full;
            continue;
        }
        REQUIRE(std::tuple{in_whole_nanoseconds(answer->time), answer->spares, answer->sizes} == *best);
        REQUIRE(std::accumulate(answer->sizes.begin(), answer->sizes.end(), answer->spares) == request.ranks);
        REQUIRE(std::accumulate(answer->shares.begin(), answer->shares.end(), 0) == request.microbatches);
        REQUIRE(answer->degraded == (static_cast<int>(answer->sizes.size()) < request.failures + 1));
        idle += std::count(answer->shares.begin(), answer->shares.end(), 0) > 0 ? 1 : 0;
        degraded += answer->degraded ? 1 : 0;
    }
    CHECK(idle > 50);
    CHECK(degraded > 50);
    CHECK(full > 50);
}

TEST_CASE("instantiate: f + 1 pipelines if possible, no spare")
{
    std::vector<seconds> const times(40, milliseconds(1));
    for (int smallest = 1; smallest <= 5; ++smallest) {
        auto const ready = plan_templates(times, {smallest, 40});
        for (int f = 0; f <= 4; ++f) {
            for (int ranks = (f + 1) * smallest; ranks <= 40; ++ranks) {
                auto const answer = instantiate(ready, {.ranks = ranks, .failures = f, .microbatches = 64});
                REQUIRE(answer);
                REQUIRE(!answer->degraded);
                REQUIRE(static_cast<int>(answer->sizes.size()) >= f + 1);
                REQUIRE(answer->spares == 0);
            }
        }
    }
}

TEST_CASE("instantiate: 256 ranks, sizes 8 .. 232: no enumeration")
{
    std::vector<seconds> times;
    for (int l = 0; l < 240; ++l) {
        times.push_back(microseconds(900 + 31 * (l % 7)));
    }
    auto const ready = plan_templates(times, {8, 232});
    auto const answer = instantiate(ready, {.ranks = 256, .failures = 2, .microbatches = 1024});
    REQUIRE(answer);
    CHECK(answer->sizes.size() >= 3);
    CHECK(std::accumulate(answer->sizes.begin(), answer->sizes.end(), answer->spares) == 256);
}

TEST_CASE("instantiate: what cannot be planned says why")
{
    auto const ready = plan_templates(layers, {2, 4});
    auto const answer = instantiate(ready, {.ranks = 1, .failures = 1, .microbatches = 8});
    CHECK(!answer);
    CHECK(answer.error() == "1 rank is too few: the smallest pipeline template takes 2");
    CHECK(instantiate({}, {.ranks = 12, .failures = 0, .microbatches = 1}).error() == "there is no pipeline template: no partition of the model is allowed");
    CHECK(instantiate(ready, {.ranks = 3, .failures = 1, .microbatches = 8})->degraded);
    CHECK_THROWS_AS(instantiate(ready, {.ranks = 3, .failures = -1, .microbatches = 8}), precondition_error);
    CHECK_THROWS_AS(instantiate(ready, {.ranks = 3, .failures = 1, .microbatches = 0}), precondition_error);
}
