// SPDX-License-Identifier: Apache-2.0
// The learning rate: its corners, its shape, and the cosine against the mathematics library.
#include "executor/config/learning_rate.hpp"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "support/catch.hpp"

using namespace rheo;

namespace {

constexpr optimizer_config rates{.learning_rate = 1.0, .final_learning_rate = 0.25, .warmup_steps = 4};

static_assert(learning_rate(rates, 12, step_id{0}) == 0.25);
static_assert(learning_rate(rates, 12, step_id{3}) == 1.0);
static_assert(learning_rate(rates, 12, step_id{4}) == 1.0);
static_assert(learning_rate(rates, 12, step_id{8}) == 0.625);  // half-way down
static_assert(learning_rate({.learning_rate = 1.0, .final_learning_rate = 0.25, .warmup_steps = 0}, 1, step_id{0}) == 1.0);

constexpr optimizer_config with(rate_schedule schedule, std::int64_t stable = 0, std::int64_t decay = 0)
{
    auto o = rates;
    o.schedule = schedule;
    o.stable_steps = stable;
    o.decay_steps = decay;
    return o;
}

static_assert(learning_rate(with(rate_schedule::linear), 12, step_id{1}) == 0.5);
static_assert(learning_rate(with(rate_schedule::linear), 12, step_id{4}) == 1.0);
static_assert(learning_rate(with(rate_schedule::linear), 12, step_id{8}) == 0.625);
static_assert(learning_rate(with(rate_schedule::linear), 12, step_id{10}) == 0.4375);
static_assert(learning_rate(with(rate_schedule::constant), 12, step_id{3}) == 1.0);
static_assert(learning_rate(with(rate_schedule::constant), 12, step_id{1'000'000}) == 1.0);
static_assert(learning_rate(with(rate_schedule::wsd, 8, 4), 12, step_id{2}) == 0.75);
static_assert(learning_rate(with(rate_schedule::wsd, 8, 4), 12, step_id{12}) == 1.0);
static_assert(learning_rate(with(rate_schedule::wsd, 8, 4), 12, step_id{14}) == 0.625);
static_assert(learning_rate(with(rate_schedule::wsd, 8, 4), 12, step_id{16}) == 0.25);
static_assert(learning_rate(with(rate_schedule::wsd, 8, 4), 12, step_id{99}) == 0.25);

}  // namespace

TEST_CASE("learning_rate: a table is a line between its steps")
{
    auto o = with(rate_schedule::table);
    o.table = *rate_table(std::vector<std::string>{"10: 1e-2", " 20 :3e-2", "30:0"});
    for (auto const& [step, rate] : {std::pair{0, 1e-2}, {10, 1e-2}, {15, 2e-2}, {20, 3e-2}, {25, 1.5e-2}, {30, 0.0}, {1000, 0.0}}) {
        CHECK(learning_rate(o, 5, step_id{step}) == Approx(rate));
    }
    CHECK(error_of_schedule(o).empty());
}

TEST_CASE("learning_rate: each wrong key of a schedule is a sentence")
{
    auto const of_table = [](std::vector<std::string> const& entries) { return rate_table(entries).error(); };
    std::string const expected = " is no learning rate of a step; expected STEP: RATE, both at least 0, e.g. 1000: 1e-4";
    for (auto const* const entry : {"", "1", ":1", "1:", "1: x", "-1: 1", "1: -1", "1: nan", "1: inf", "1.5: 1", "1: 1 2", "99999999999999999999: 1"}) {
        CHECK(of_table({entry}) == "'" + std::string{entry} + "'" + expected);
    }
    CHECK(of_table({"5: 1", "5: 2"}) == "step 5 follows step 5; expected steps that ascend");
    CHECK(error_of_schedule(with(rate_schedule::table)) == "optimizer.table has no entry; expected STEP: RATE, e.g. 0: 1e-3");
    auto with_table = rates;
    with_table.table = {{0, 1.0}};
    CHECK(error_of_schedule(with_table) == "optimizer.table gives the learning rates of optimizer.schedule = \"table\", not of \"cosine\"");
    CHECK(error_of_schedule(with(rate_schedule::linear, 1, 0)) == "optimizer.stable_steps is of optimizer.schedule = \"wsd\", not of \"linear\"");
    CHECK(error_of_schedule(with(rate_schedule::constant, 0, 1)) == "optimizer.decay_steps is of optimizer.schedule = \"wsd\", not of \"constant\"");
    CHECK(error_of_schedule(with(rate_schedule::wsd, 1, 0)) == "optimizer.decay_steps must be at least 1 with optimizer.schedule = \"wsd\"");
    CHECK(error_of_schedule(with(rate_schedule::wsd, 0, 1)).empty());
}

TEST_CASE("learning_rate: fingerprints follow from the rates")
{
    CHECK(rates_text(rates, 12) == "lr 1 to 0.25 over 12 steps, warm-up 4");
    for (auto const schedule : {rate_schedule::cosine, rate_schedule::linear, rate_schedule::constant, rate_schedule::wsd, rate_schedule::table}) {
        auto o = with(schedule, 8, 4);
        o.table = {{0, 1.0}};
        bool const grows = rates_text(o, 12) == rates_text(o, 13);
        bool same = true;
        for (std::int64_t step = 0; step < 12; ++step) {
            same = same && learning_rate(o, 12, step_id{step}) == learning_rate(o, 13, step_id{step});
        }
        CHECK(grows == same);
    }
}

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
