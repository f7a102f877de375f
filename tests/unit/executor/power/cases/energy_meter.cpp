// SPDX-License-Identifier: Apache-2.0
// The meter between updates of a counter: laws for any readings, then exact values; counters that begin again.
#include "executor/power/devices/energy_meter.hpp"

#include <cstdint>

#include "support/catch.hpp"

using namespace rheo;
using namespace rheo::power;

namespace {

constexpr std::uint64_t next(std::uint64_t& state) { return state = state * 6364136223846793005u + 1442695040888963407u, state >> 33; }

/// Whatever a counter does, the answers never fall and are never below it.
constexpr bool never_falls(std::uint64_t seed)
{
    energy_meter meter;
    double time = 0.0;
    double count = 1000.0;
    double last = 0.0;
    for (int k = 0; k < 400; ++k) {
        time += static_cast<double>(next(seed) % 100) * 1e-3;
        count += next(seed) % 3 == 0 ? static_cast<double>(next(seed) % 50) : 0.0;
        meter.observe({time}, {count});
        auto const reported = meter.at({time + static_cast<double>(next(seed) % 10) * 1e-3}).count;
        if (reported < last || reported < count) {
            return false;
        }
        last = reported;
        time += 0.01;
    }
    return true;
}
static_assert(never_falls(1) && never_falls(2));

/// A steady power, a counter that is updated every 100 ms and looked at every 10: the most by which the answer is off.
constexpr double worst_at_steady_power(double power)
{
    energy_meter meter;
    double worst = 0.0;
    for (int k = 0; k < 100; ++k) {
        double const time = k * 0.01;
        meter.observe({time}, {static_cast<double>(k / 10) * 0.1 * power});
        auto const off = meter.at({time}).count - time * power;
        if (k >= 10) {
            worst = off > worst ? off : -off > worst ? -off : worst;
        }
    }
    return worst;
}
static_assert(worst_at_steady_power(300.0) < 1e-9);  // the bare counter is off by 27 J

constexpr bool stands_still_with_the_counter()
{
    energy_meter meter;
    meter.observe({0.0}, {10.0});
    bool good = meter.at({5.0}) == joules{10.0};  // one reading has no power yet
    meter.observe({1.0}, {12.0});
    good = good && meter.power() == watts{2.0} && meter.at({1.5}) == joules{13.0};
    good = good && meter.at({2.0}) == joules{14.0} && meter.at({50.0}) == joules{14.0};  // no longer than the last interval was
    meter.observe({51.0}, {12.5});
    return good && meter.at({51.0}) == joules{14.0};  // it ran ahead, and waits
}
static_assert(stands_still_with_the_counter());

constexpr bool wraps()
{
    unwrapped_counter count{.range = 100.0};
    bool good = count.take(90.0) == 90.0 && count.take(95.0) == 95.0;
    good = good && count.take(5.0) == 105.0 && count.take(5.0) == 105.0 && count.take(4.0) == 204.0;
    unwrapped_counter unknown;
    return good && unknown.take(7.0) == 7.0 && unknown.take(1.0) == 8.0;
}
static_assert(wraps());

}  // namespace

TEST_CASE("energy_meter: never falls over any readings")
{
    for (std::uint64_t seed = 3; seed < 500; ++seed) {
        CHECK(never_falls(seed));
    }
}

TEST_CASE("energy_meter: exact at steady power, close at changes")
{
    CHECK(worst_at_steady_power(474.5) < 1e-9);
    energy_meter meter;
    double exact = 0.0;
    double counter = 0.0;
    for (int k = 0; k <= 3000; ++k) {
        double const power = k / 700 % 2 == 0 ? 450.0 : 90.0;
        counter = k % 100 == 0 ? exact : counter;
        meter.observe({k * 1e-3}, {counter});
        if (k > 200) {
            CHECK(std::abs(meter.at({k * 1e-3}).count - exact) < 2 * 0.1 * 450.0);
        }
        exact += power * 1e-3;
    }
}
