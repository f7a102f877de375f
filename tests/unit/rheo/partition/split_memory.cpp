// SPDX-License-Identifier: Apache-2.0
// What devices hold, by hand, and how many microbatches fit, against trying all numbers.
#include "rheo/partition/split_memory.hpp"

#include <random>

#include "rheo/schedule/families/families.hpp"
#include "support/catch.hpp"

using namespace rheo;

namespace {

constexpr stage_prices small_prices()
{
    std::vector<layer_profile> const layers{
        {{}, {}, {10}, {1}, {}, {seconds{0}}}, {{}, {}, {20}, {2}, {}, {seconds{0}}}, {{}, {}, {30}, {4}, {}, {seconds{0}}}};
    return make_stage_prices(layers, {seconds{0}, {1e9}}, 2);
}

std::vector<layer_id> const two_stages{layer_id{0}, layer_id{2}, layer_id{3}};

constexpr bool holds(any_schedule schedule, int first_devices, std::int64_t first, std::int64_t second)
{
    std::vector<layer_id> const bounds{layer_id{0}, layer_id{2}, layer_id{3}};
    std::vector<int> const devices{first_devices, 1};
    auto const p = make_program(schedule, {.ranks = 2, .microbatches = 5});
    return memory_by_rank(small_prices(), p, bounds, devices) == std::vector<bytes>{{first}, {second}};
}
static_assert(holds(one_f_one_b{}, 1, 30 + 2 * 3, 30 + 4));  // two in flight, one in flight
static_assert(holds(one_f_one_b{}, 2, 18, 34));              // shared by two devices
static_assert(holds(gpipe{}, 1, 30 + 5 * 3, 30 + 5 * 4));

}  // namespace

TEST_CASE("split_memory: largest number of microbatches that fits")
{
    std::mt19937 draw{9};
    int limited = 0;
    constexpr int layer_count = 32;  // at least as many as a schedule has stages
    for (auto const schedule : schedule_families()) {
        for (int round = 0; round < 12; ++round) {
            auto const ranks = 2 * (1 + static_cast<int>(draw() % 2));
            std::vector<layer_profile> layers(layer_count);
            for (auto& layer : layers) {
                layer.persistent = {static_cast<std::int64_t>(draw() % 20)};
                layer.per_microbatch = {static_cast<std::int64_t>(draw() % 9)};
            }
            auto const prices = make_stage_prices(layers, {seconds{0}, {1e9}});
            int const most = 13;
            bytes const memory{static_cast<std::int64_t>(100 + draw() % 500)};
            int best = 0;
            bool all_below_fit = true;
            std::vector<layer_id> bounds;
            std::vector<int> devices;
            for (int m = 1; m <= most; ++m) {
                schedule_shape const shape{.ranks = ranks, .microbatches = m};
                if (error_of(schedule, shape) != shape_error::none) {
                    continue;
                }
                auto const p = make_program(schedule, shape);
                REQUIRE(stages_per_copy(p) <= layer_count);
                bounds.clear();
                for (int s = 0; s <= stages_per_copy(p); ++s) {
                    bounds.push_back(layer_id{s * layer_count / stages_per_copy(p)});
                }
                devices.assign(bounds.size() - 1, 1);
                all_below_fit = all_below_fit && fullest_device(prices, p, bounds, devices) <= memory;
                best = all_below_fit ? m : best;
            }
            REQUIRE_FALSE(bounds.empty());
            CAPTURE(name_of(schedule), ranks, memory.count);
            REQUIRE(microbatches_that_fit(prices, schedule, bounds, devices, ranks, memory, most) == best);
            limited += best > 0 && best < most ? 1 : 0;
        }
    }
    CHECK(limited > 10);
    CHECK_THROWS_AS(microbatches_that_fit(small_prices(), gpipe{}, two_stages, std::vector<int>{1, 1}, 2, bytes{1}, 0), precondition_error);
}
