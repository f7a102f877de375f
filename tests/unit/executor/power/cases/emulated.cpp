// SPDX-License-Identifier: Apache-2.0
// The emulated device: a profile's times and energies come back exactly, whatever the order; time between is blocking power.
#include "executor/power/devices/emulated_device.hpp"

#include <cmath>

#include "support/catch.hpp"

using namespace rheo;
using namespace rheo::power;

namespace {

constexpr auto forward = instruction_kind::forward;
constexpr auto backward = instruction_kind::backward;

profile small()
{
    return {{{.stage = stage_id{0}, .kind = forward, .clock = {1400.0}, .time = {0.10}, .energy = {40.0}},
             {.stage = stage_id{0}, .kind = forward, .clock = {1000.0}, .time = {0.14}, .energy = {30.0}},
             {.stage = stage_id{0}, .kind = forward, .clock = {700.0}, .time = {0.20}, .energy = {28.0}},
             {.stage = stage_id{0}, .kind = backward, .clock = {1400.0}, .time = {0.20}, .energy = {90.0}},
             {.stage = stage_id{0}, .kind = backward, .clock = {1000.0}, .time = {0.26}, .energy = {70.0}},
             {.stage = stage_id{1}, .kind = forward, .clock = {0.0}, .time = {0.05}, .energy = {6.0}},
             {.rank = rank_id{7}, .stage = stage_id{0}, .kind = forward, .clock = {1400.0}, .time = {0.10}, .energy = {44.0}},
             {.rank = rank_id{7}, .stage = stage_id{0}, .kind = forward, .clock = {700.0}, .time = {0.30}, .energy = {33.0}}}};
}

/// A device whose time is the test's.
struct bench {
    explicit bench(emulated_options options = {}) : device{small(), with_time(std::move(options))} {}

    emulated_options with_time(emulated_options options)
    {
        options.now = [this] { return now; };
        return options;
    }

    /// Lets a computation of `took` at the highest clock run. @return how long it took in all
    double run(instruction_kind kind, int stage, double took)
    {
        now += seconds{took};
        auto const whole = device.computed(kind, stage_id{stage}, {took}).time;
        now += whole - seconds{took};
        return whole.count;
    }
    double energy() { return device.energy()->count; }

    seconds now{100.0};
    emulated_device device;
};

}  // namespace

TEST_CASE("emulated: each clock has the profile's time and energy")
{
    for (double const scale : {1.0, 0.01, 3.0}) {
        for (auto const& row : small().rows) {
            if (row.rank.value >= 0) {
                continue;
            }
            bench one;
            if (row.clock.count > 0.0) {
                REQUIRE(one.device.lock(row.clock));
            }
            double const highest = options_of(small(), rank_id{0}, row.stage, row.kind).front().time.count;
            CHECK(one.run(row.kind, row.stage.value, highest * scale) == Approx(row.time.count * scale));
            CHECK(one.energy() == Approx(row.energy.count * scale));
        }
    }
}

TEST_CASE("emulated: own rows first; between rows the upper")
{
    bench own{{.rank = rank_id{7}}};
    REQUIRE(own.device.lock({1000.0}));
    CHECK(own.run(forward, 0, 0.1) == Approx(0.1));
    REQUIRE(own.device.lock({700.0}));
    CHECK(own.run(forward, 0, 0.1) == Approx(0.3));
    CHECK(own.energy() == Approx(44.0 + 33.0));
    bench other;
    REQUIRE(other.device.lock({700.0}));
    CHECK(other.run(backward, 0, 0.2) == Approx(0.26));  // not measured at 700
}

TEST_CASE("emulated: idle time draws blocking power")
{
    bench one{{.blocking = {80.0}}};
    one.now += seconds{0.5};
    CHECK(one.energy() == Approx(40.0));
    REQUIRE(one.device.lock({1000.0}));
    CHECK(one.run(forward, 0, 0.1) == Approx(0.14));
    CHECK(one.energy() == Approx(40.0 + 30.0));
    CHECK(one.run(backward, 1, 0.25) == 0.25);
    CHECK(one.energy() == Approx(70.0 + 20.0));
    // Counted at its end on the processor, before the rest of the stretched time has passed.
    one.now += seconds{0.1};
    auto const whole = one.device.computed(forward, stage_id{0}, {0.1}).time;
    double last = one.energy();
    for (int k = 0; k < 10; ++k) {
        one.now += seconds{(whole.count - 0.1) / 10};
        CHECK(one.energy() >= last);
        last = one.energy();
    }
    CHECK(one.energy() == Approx(90.0 + 30.0));
}

TEST_CASE("emulated: clock changes after the latency")
{
    bench one{{.switch_latency = {0.02}}};
    REQUIRE(one.device.lock({700.0}));
    one.now += seconds{0.01};
    CHECK(*one.device.clock_now() == megahertz{1400.0});
    CHECK(one.run(forward, 0, 0.1) == Approx(0.1));
    CHECK(*one.device.clock_now() == megahertz{700.0});
    CHECK(one.run(forward, 0, 0.1) == Approx(0.2));
    CHECK_FALSE(one.device.lock({701.0}));
    REQUIRE(one.device.restore());
    one.now += seconds{0.02};
    CHECK(*one.device.clock_now() == megahertz{1400.0});
    CHECK(*one.device.clocks() == std::vector<megahertz>{{1400.0}, {1000.0}, {700.0}});
    emulated_device handle = one.device;  // the same device
    REQUIRE(handle.lock({1000.0}));
    one.now += seconds{0.02};
    CHECK(*one.device.clock_now() == megahertz{1000.0});
    CHECK(one.device.original().empty());
}

TEST_CASE("emulated: profile pace ignores the processor's speed")
{
    bench one{{.blocking = {80.0}, .pace = emulated_pace::profile}};
    for (double const took : {0.001, 0.02, 0.1}) {
        CHECK(one.run(forward, 0, took) == Approx(0.10));
    }
    CHECK(one.energy() == Approx(3 * 40.0));
    REQUIRE(one.device.lock({1000.0}));
    CHECK(one.run(backward, 0, 0.01) == Approx(0.26));
    CHECK(one.energy() == Approx(120.0 + 70.0));
    one.now += seconds{0.5};
    CHECK(one.energy() == Approx(190.0 + 40.0));
}

TEST_CASE("emulated: a slow device waits; plain time is reported")
{
    bench one{{.blocking = {80.0}}};
    REQUIRE(one.device.lock({700.0}));
    one.now += seconds{0.1};
    auto const account = one.device.computed(forward, stage_id{0}, {0.1}, 1.5);
    CHECK(account.clock == megahertz{700.0});
    CHECK(account.expected.count == Approx(0.20));
    CHECK(account.time.count == Approx(0.30));
    CHECK(account.energy.count == Approx(28.0 + 80.0 * 0.1));
    one.now += account.time - seconds{0.1};
    CHECK(one.energy() == Approx(account.energy.count));
}

TEST_CASE("emulated: a new profile replaces the old one")
{
    bench one;
    REQUIRE(one.device.lock({1000.0}));
    one.device.computes({{{.stage = stage_id{0}, .kind = forward, .clock = {1400.0}, .time = {0.5}, .energy = {9.0}},
                          {.stage = stage_id{0}, .kind = forward, .clock = {1000.0}, .time = {0.7}, .energy = {5.0}}}});
    CHECK(one.run(forward, 0, 0.5) == Approx(0.7));
    CHECK(one.energy() == Approx(5.0));
    CHECK(one.device.clocks()->size() == 3);
}
