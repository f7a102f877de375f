// SPDX-License-Identifier: Apache-2.0
// The queue of events against a sorted set: random events, many of them at one time, put in by ascending and by other numbers.
#include "rheo/simulate/network/event_queue.hpp"

#include <cstdint>
#include <random>
#include <set>
#include <tuple>

#include "rheo/simulate/network/model_time.hpp"
#include "rheo/units/units.hpp"
#include "support/catch.hpp"

using namespace rheo;

namespace {

/// @param times from which those of events are drawn: few of them make long lines
template <class Time>
void is_a_sorted_set(int times, bool ascends, std::uint32_t seed)
{
    std::mt19937 draw{seed};
    event_queue<Time, std::uint32_t> queue;
    std::set<std::tuple<Time, std::uint64_t, std::uint32_t>> expected;
    std::uint64_t number = 0;
    for (int round = 0; round < 4000; ++round) {
        if (draw() % 100 < (round % 1000 < 500 ? 60U : 40U)) {
            Time at{};
            at.count += static_cast<decltype(at.count)>(draw() % static_cast<unsigned>(times));
            auto const own = ascends || draw() % 4 != 0 ? 2 * number : 2 * number - 2 * (draw() % (number + 1)) + 1;
            ++number;
            auto const subject = static_cast<std::uint32_t>(draw());
            if (expected.lower_bound({at, own, 0}) == expected.lower_bound({at, own + 1, 0})) {  // numbers are distinct
                queue.push({at, own, subject});
                expected.insert({at, own, subject});
            }
        } else if (!expected.empty()) {
            REQUIRE(queue.next_time() == std::get<0>(*expected.begin()));
            auto const event = queue.pop();
            REQUIRE(std::tuple{event.at, event.number, event.subject} == *expected.begin());
            expected.erase(expected.begin());
        }
        REQUIRE(queue.empty() == expected.empty());
    }
}

}  // namespace

TEST_CASE("event_queue: is sorted by time and number")
{
    for (std::uint32_t seed = 1; seed <= 5; ++seed) {
        for (int const times : {1, 3, 40, 1'000'000}) {
            for (bool const ascends : {true, false}) {
                is_a_sorted_set<seconds>(times, ascends, seed);
                is_a_sorted_set<whole_nanoseconds>(times, ascends, seed);
            }
        }
    }
}
