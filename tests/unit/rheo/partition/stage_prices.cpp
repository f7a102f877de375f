// SPDX-License-Identifier: Apache-2.0
// The prices of stages, by hand.
#include "rheo/partition/stage_prices.hpp"

#include "support/catch.hpp"

using namespace rheo;

namespace {

constexpr layer_span last_two{layer_id{1}, layer_id{3}};

constexpr stage_prices by_hand()
{
    std::vector<layer_profile> const layers{{microseconds(10), microseconds(20), {100}, {7}, {50}, {microseconds(1)}},
                                            {microseconds(30), microseconds(40), {200}, {8}, {60}, {microseconds(2)}},
                                            {microseconds(50), microseconds(60), {300}, {10}, {70}, {microseconds(3)}}};
    return make_stage_prices(layers, {microseconds(5), {1e6}}, 2);
}

static_assert(by_hand().layers() == 3 && by_hand().devices_per_node() == 2);
static_assert(by_hand().forward(last_two, 1) == 80'000);
static_assert(by_hand().forward(last_two, 2) == 40'000 + 5'000);  // half of the work, and each layer's sum
static_assert(by_hand().backward(last_two, 2) == 50'000 + 5'000);
static_assert(by_hand().time(last_two, 1) == 180'000);
static_assert(by_hand().send_from({layer_id{0}, layer_id{2}}) == 5'000 + 60'000);
static_assert(by_hand().memory(last_two, 1, 3) == bytes{500 + 3 * 18});
static_assert(by_hand().memory(last_two, 2, 1) == bytes{259});
static_assert(by_hand().memory({layer_id{0}, layer_id{1}}, 2, 1) == bytes{54});  // 107 bytes, rounded up

// The last two layers: the second one's input is what the first computed, and both have 60 bytes of parameters in common, as have the first and the last of all.
constexpr stage_prices with_parts_in_common()
{
    std::vector<layer_profile> layers{{{}, {}, {100}, {7}, {50}}, {{}, {}, {200}, {8}, {60}}, {{}, {}, {300}, {10}, {70}}, {{}, {}, {400}, {20}, {80}}};
    layers[1].input = {2};
    layers[2].input = {4};
    layers[2].kept_gradients = {5};
    layers[2].tied_to = 1;
    layers[2].tied = {60};
    layers[3].tied_to = 0;
    layers[3].tied = {90};
    return make_stage_prices(layers, {microseconds(5), {1e6}});
}
static_assert(with_parts_in_common().activations(last_two) == bytes{8 + 6} && with_parts_in_common().kept_gradients(last_two) == bytes{5});
static_assert(with_parts_in_common().state(last_two) == bytes{200 + 300 - 60} && with_parts_in_common().state({layer_id{2}, layer_id{4}}) == bytes{700});
static_assert(with_parts_in_common().state(std::vector{layer_span{layer_id{0}, layer_id{1}}, layer_span{layer_id{3}, layer_id{4}}}) == bytes{500 - 90});
constexpr held_items two_moments[] = {{3, 0}, {2, 3}};
static_assert(with_parts_in_common().memory(last_two, 1, two_moments) == bytes{440 + 2 * 14 + 3 * 5});

}  // namespace

TEST_CASE("stage_prices: needs layers, devices, sharing costs")
{
    std::vector<layer_profile> const alone{{seconds{1}, seconds{1}, {}, {}, {}, {}}};
    modelled_link const link{seconds{0}, {1e9}};
    CHECK_THROWS_AS(make_stage_prices({}, link), precondition_error);
    CHECK_THROWS_AS(make_stage_prices(alone, link, 0), precondition_error);
    CHECK_THROWS_AS(make_stage_prices(alone, link, 2), precondition_error);
}
