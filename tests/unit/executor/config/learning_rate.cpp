// SPDX-License-Identifier: Apache-2.0
// The learning rate: its corners, its shape, and the cosine against the mathematics library.
#include "executor/config/learning_rate.hpp"

#include <cmath>

#include "support/catch.hpp"

using namespace rheo;

namespace {

constexpr optimizer_config rates{.learning_rate = 1.0, .final_learning_rate = 0.25, .warmup_steps = 4};

static_assert(learning_rate(rates, 12, step_id{0}) == 0.25);
static_assert(learning_rate(rates, 12, step_id{3}) == 1.0);
static_assert(learning_rate(rates, 12, step_id{4}) == 1.0);
static_assert(learning_rate(rates, 12, step_id{8}) == 0.625);  // half-way down
static_assert(learning_rate({.learning_rate = 1.0, .final_learning_rate = 0.25, .warmup_steps = 0}, 1, step_id{0}) == 1.0);

}  // namespace

TEST_CASE("learning_rate: cosine matches the math library's bits")
{
    // Rounded are pi t (half a unit: 2.2e-16) and its cosine (1.1e-16) here, pi (1/2 - t) (1.1e-16) and the sum of the series (2.2e-16) there.
    for (int i = 0; i <= 4096; ++i) {
        double const t = i / 4096.0;
        CHECK(std::fabs(cosine_of_half_turn(t) - std::cos(std::numbers::pi * t)) <= 7e-16);
    }
}

TEST_CASE("learning_rate: decreases after warm-up, above the final")
{
    for (std::int64_t step = 4; step + 1 < 500; ++step) {
        CHECK(learning_rate(rates, 500, step_id{step + 1}) <= learning_rate(rates, 500, step_id{step}));
    }
    CHECK(learning_rate(rates, 500, step_id{499}) > 0.25);
}
