#pragma once
// SPDX-License-Identifier: Apache-2.0

// Traces of whole microseconds drawn at random, small enough to count every microsecond.

#include <cstdint>
#include <random>
#include <vector>

#include "rheo/analyze/device/rank_trace.hpp"

namespace test {

using namespace rheo;

constexpr whole_nanoseconds us(std::int64_t count) { return {1000 * count}; }

/// An event that was launched before it began; with `late`, just before.
inline void add(rank_trace& trace, std::uint16_t stream, device_work work, std::int64_t begin, std::int64_t duration, std::int64_t launched)
{
    auto const correlation = static_cast<std::int64_t>(trace.launches.size());
    trace.launches.push_back({us(launched), us(launched + 2), correlation});
    trace.events.push_back({.begin = us(begin), .end = us(begin + duration), .correlation = correlation, .stream = stream, .work = work});
}

/// A trace of up to 12 events on three streams that may overlap, with and without memory copies. Some launches are missing.
inline rank_trace draw_trace(std::mt19937& draw, bool with_memory)
{
    rank_trace trace;
    trace.streams = {{0, 7}, {0, 20}, {0, 21}};
    trace.names = {"kernel"};
    std::int64_t number = 0;
    for (auto count = 1 + draw() % 12; count > 0; --count) {
        auto const begin = static_cast<std::int64_t>(draw() % 200);
        add(trace, static_cast<std::uint16_t>(draw() % 3), static_cast<device_work>(draw() % (with_memory ? 3 : 2)), begin,
            static_cast<std::int64_t>(draw() % 30), begin - static_cast<std::int64_t>(draw() % 60));
        if (draw() % 5 == 0) {
            trace.launches.pop_back();
            trace.events.back().correlation = draw() % 2 == 0 ? no_correlation : 1000;
        }
    }
    for (std::int64_t at = 0; at < 200; at += 20 + static_cast<std::int64_t>(draw() % 60)) {
        trace.steps.push_back({number++, us(at), us(at + 10 + static_cast<std::int64_t>(draw() % 50))});
    }
    put_in_order(trace);
    return trace;
}

}  // namespace test
