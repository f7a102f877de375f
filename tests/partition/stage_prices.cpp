// SPDX-License-Identifier: Apache-2.0
// The prices of stages, by hand.
#include "rheo/partition/stage_prices.hpp"

#include "catch.hpp"

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
static_assert(by_hand().forward(last_two, 2) == 40'000 + 5'000);    // half of the work, and each layer's sum
static_assert(by_hand().backward(last_two, 2) == 50'000 + 5'000);
static_assert(by_hand().time(last_two, 1) == 180'000);
static_assert(by_hand().send_from({layer_id{0}, layer_id{2}}) == 5'000 + 60'000);
static_assert(by_hand().memory(last_two, 1, 3) == bytes{500 + 3 * 18});
static_assert(by_hand().memory(last_two, 2, 1) == bytes{259});
static_assert(by_hand().memory({layer_id{0}, layer_id{1}}, 2, 1) == bytes{54});  // 107 bytes, rounded up

}  // namespace

TEST_CASE("prices need layers, devices, and what sharing takes")
{
    std::vector<layer_profile> const alone{{seconds{1}, seconds{1}, {}, {}, {}, {}}};
    modelled_link const link{seconds{0}, {1e9}};
    CHECK_THROWS_AS(make_stage_prices({}, link), precondition_error);
    CHECK_THROWS_AS(make_stage_prices(alone, link, 0), precondition_error);
    CHECK_THROWS_AS(make_stage_prices(alone, link, 2), precondition_error);
}
