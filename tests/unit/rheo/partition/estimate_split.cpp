// SPDX-License-Identifier: Apache-2.0
// The estimate over cuts, devices and numbers of stages, against the exhaustive search.
#include "rheo/partition/estimate_split.hpp"

#include <functional>
#include <optional>
#include <random>
#include <tuple>

#include "rheo/partition/optimal_estimate.hpp"
#include "rheo/partition/pipeline_estimate.hpp"
#include "support/catch.hpp"

using namespace rheo;

namespace {

using answer = std::tuple<std::int64_t, std::vector<layer_id>, std::vector<int>>;

std::optional<answer> best_of_all(stage_prices const& prices, int nodes, int microbatches, std::int64_t most_memory)
{
    std::optional<answer> best;
    auto const all = nodes * prices.devices_per_node();
    std::vector<layer_id> cuts{layer_id{0}};
    std::vector<int> devices;
    std::function<void(int)> const visit = [&](int used) {
        if (used == all && cuts.back().value == prices.layers()) {
            std::vector<std::int64_t> times;
            for (std::size_t s = 0; s < devices.size(); ++s) {
                auto const span = layers_of(cuts, stage_id{static_cast<int>(s)});
                times.push_back(prices.time(span, devices[s]));
                if (prices.memory(span, devices[s], static_cast<std::int64_t>(devices.size() - s)).count > most_memory) {
                    return;
                }
            }
            answer const found{pipeline_estimate(times, microbatches), cuts, devices};
            best = !best || found < *best ? found : *best;
            return;
        }
        for (int end = cuts.back().value + 1; end <= prices.layers(); ++end) {
            for (int d = 1; used + d <= all && d <= prices.devices_per_node() - used % prices.devices_per_node(); ++d) {
                cuts.push_back(layer_id{end});
                devices.push_back(d);
                visit(used + d);
                devices.pop_back();
                cuts.pop_back();
            }
        }
    };
    visit(0);
    return best;
}

/// One node of two devices, by the compiler: layers of 2 and 6 on one device each, or both on two.
constexpr std::vector<int> devices_at(std::int64_t sharing)
{
    std::vector<layer_profile> layers;
    for (auto const time : {1.0, 3.0}) {
        layers.push_back({nanoseconds(time), nanoseconds(time), {}, {}, {}, {nanoseconds(static_cast<double>(sharing))}});
    }
    return optimal_estimate(make_stage_prices(layers, {seconds{0}, {1e18}}, 2), 1, 8, [](layer_span, int, int) { return true; }).devices;
}
static_assert(devices_at(0) == std::vector<int>{2});
static_assert(devices_at(9) == std::vector<int>{1, 1});

}  // namespace

TEST_CASE("estimate_split: equals exhaustive search with ties")
{
    std::mt19937 draw{21};
    int refused = 0;
    int shared = 0;
    for (int round = 0; round < 700; ++round) {
        auto const per_node = 1 + static_cast<int>(draw() % 3);
        auto const nodes = 1 + static_cast<int>(draw() % (per_node == 1 ? 4 : 2));
        std::vector<layer_profile> layers(1 + draw() % 6);
        auto const largest = 1 + draw() % 9;
        for (auto& layer : layers) {
            layer = {nanoseconds(static_cast<double>(draw() % (largest + 1))),
                     nanoseconds(static_cast<double>(draw() % (largest + 1))),
                     {static_cast<std::int64_t>(draw() % 9)},
                     {static_cast<std::int64_t>(draw() % 4)},
                     {},
                     {}};
            for (int d = 2; d <= per_node; ++d) {
                layer.all_reduce.push_back(nanoseconds(static_cast<double>(draw() % 3)));
            }
        }
        auto const prices = make_stage_prices(layers, {seconds{0}, {1e18}}, per_node);
        auto const microbatches = 5 + static_cast<int>(draw() % 10);  // fewer than stages would be no pipeline
        auto const memory = draw() % 2 == 0 ? 1 << 20 : static_cast<std::int64_t>(5 + draw() % 30);
        auto const found =
            optimal_estimate(prices, nodes, microbatches, [&](layer_span span, int d, int left) { return prices.memory(span, d, left).count <= memory; });
        auto const best = best_of_all(prices, nodes, microbatches, memory);
        CAPTURE(round, nodes, per_node, microbatches, layers.size(), memory);
        REQUIRE(static_cast<bool>(found) == best.has_value());
        if (!best) {
            ++refused;
            continue;
        }
        REQUIRE(in_whole_nanoseconds(found.estimate) == std::get<0>(*best));
        REQUIRE(found.cuts == std::get<1>(*best));
        REQUIRE(found.devices == std::get<2>(*best));
        for (auto const d : found.devices) {
            shared += d > 1 ? 1 : 0;
        }
    }
    CHECK(refused > 50);
    CHECK(shared > 50);
}

TEST_CASE("estimate_split: one device per node: the simple optimum")
{
    std::vector<layer_profile> layers;
    std::vector<seconds> times;
    for (int l = 0; l < 16; ++l) {
        layers.push_back({nanoseconds(100 + 37 * (l % 5)), nanoseconds(200), {}, {}, {}, {}});
        times.push_back(layers.back().forward + layers.back().backward);
    }
    auto const prices = make_stage_prices(layers, {seconds{0}, {1e18}});
    for (int n = 1; n <= 16; ++n) {
        auto const found = optimal_estimate(prices, n, usual_microbatches(n), [](layer_span, int, int) { return true; });
        CHECK(found.cuts == estimate_optimal_cuts(times, n, usual_microbatches(n)));
    }
    CHECK_FALSE(optimal_estimate(prices, 17, 8, [](layer_span, int, int) { return true; }));
    CHECK_THROWS_AS(optimal_estimate(prices, 0, 8, [](layer_span, int, int) { return true; }), precondition_error);
}
