// SPDX-License-Identifier: Apache-2.0
// Distributions of times, and the steps of a trace.
#include <algorithm>
#include <random>
#include <vector>

#include "drawn_trace.hpp"
#include "rheo/analyze/device/step_times.hpp"
#include "support/catch.hpp"

using namespace rheo;
using test::us;

TEST_CASE("steps: mean, median and p99 are those of sorted times")
{
    std::mt19937 draw{5};
    CHECK(distribution_of({}) == distribution{});
    for (int round = 0; round < 500; ++round) {
        std::vector<whole_nanoseconds> times(1 + draw() % 250);
        std::int64_t sum = 0;
        for (auto& time : times) {
            time.count = static_cast<std::int64_t>(draw() % 1000);
            sum += time.count;
        }
        auto const found = distribution_of(times);
        std::sort(times.begin(), times.end());
        auto const count = times.size();
        CHECK(found.count == static_cast<std::int64_t>(count));
        CHECK(found.mean.count == sum / found.count);
        CHECK(found.median.count == (times[(count - 1) / 2].count + times[count / 2].count) / 2);
        CHECK(found.most == times.back());
        auto const at_most = std::count_if(times.begin(), times.end(), [&](auto time) { return time <= found.p99; });
        auto const below = std::count_if(times.begin(), times.end(), [&](auto time) { return time < found.p99; });
        CHECK(100 * at_most >= 99 * found.count);
        CHECK(100 * below < 99 * found.count);
    }
    std::vector<whole_nanoseconds> const large(1000, whole_nanoseconds{INT64_MAX});
    CHECK(distribution_of(large) == distribution{1000, large[0], large[0], large[0], large[0]});
}

TEST_CASE("steps: the slowest step says what has grown in it")
{
    rank_trace trace;
    trace.streams = {{0, 7}};
    for (std::int64_t k = 0; k < 5; ++k) {
        auto const wait = k == 3 ? 60 : 0;  // the host launches late in step 3
        auto const begin = 1000 * k + (k > 3 ? 60 : 0);
        trace.steps.push_back({10 + k, us(begin), us(begin + 900 + wait)});
        test::add(trace, 0, device_work::compute, begin, 400, begin - 10);
        test::add(trace, 0, device_work::compute, begin + 420 + wait, 400, begin + 410 + wait);
    }
    put_in_order(trace);
    auto const found = steps_of(trace);
    CHECK(found.times == distribution{5, us(912), us(900), us(960), us(960)});
    CHECK(found.slowest == 13);
    CHECK(found.because == grown_class{time_class::host_wait, us(60)});
    CHECK(steps_of({}) == step_times{});
}
