// SPDX-License-Identifier: Apache-2.0
// Accounts of devices and streams: laws, and every microsecond of small traces counted by itself.
#include <algorithm>
#include <random>
#include <vector>

#include "drawn_trace.hpp"
#include "rheo/analyze/device/analysis.hpp"
#include "support/catch.hpp"

using namespace rheo;
using test::us;

namespace {

/// Whether an event of that kind runs in the microsecond from `at` on.
template <class Counts>
bool runs(rank_trace const& trace, std::int64_t at, Counts counts)
{
    return std::any_of(trace.events.begin(), trace.events.end(), [&](auto const& e) { return e.begin <= us(at) && us(at) < e.end && counts(e); });
}

/// The account of a window, microsecond by microsecond.
device_account counted(rank_trace const& trace, std::int64_t from, std::int64_t to)
{
    device_account account;
    auto const first = trace.events.front().begin;
    auto const last = last_end(trace);
    for (auto at = from; at < to; ++at) {
        if (us(at) < first || us(at) >= last) {
            continue;
        }
        auto const computes = runs(trace, at, [](auto const& e) { return e.work == device_work::compute; });
        auto const communicates = runs(trace, at, [](auto const& e) { return e.work == device_work::communication; });
        account.span += us(1);
        account.compute += us(computes ? 1 : 0);
        account.communication += us(communicates ? 1 : 0);
        account.overlap += us(computes && communicates ? 1 : 0);
        if (runs(trace, at, [](auto const&) { return true; })) {
            account.busy += us(1);
            continue;
        }
        auto idle_since = first;  // the last end before this microsecond
        auto const* next = &trace.events.back();
        for (auto e = trace.events.rbegin(); e != trace.events.rend(); ++e) {
            idle_since = e->end <= us(at) ? std::max(idle_since, e->end) : idle_since;
            next = e->begin > us(at) ? &*e : next;
        }
        switch (cause_of_gap(trace, *next, idle_since)) {
        case gap_cause::host_wait: account.host_wait += us(1); break;
        case gap_cause::kernel_wait: account.kernel_wait += us(1); break;
        case gap_cause::other: account.other_wait += us(1); break;
        }
    }
    return account;
}

whole_nanoseconds sum_of_classes(device_account const& account)
{
    whole_nanoseconds sum{};
    for (std::size_t c = 0; c < time_class_names.size(); ++c) {
        sum += time_in(account, static_cast<time_class>(c));
    }
    return sum;
}

}  // namespace

TEST_CASE("accounts: every microsecond is counted once")
{
    std::mt19937 draw{1};
    for (int round = 0; round < 2000; ++round) {
        auto const trace = test::draw_trace(draw, true);
        REQUIRE(account_of(trace) == counted(trace, -10, 300));
        std::vector<std::int64_t> bounds;
        for (auto count = 2 + draw() % 5; count > 0; --count) {
            bounds.push_back(static_cast<std::int64_t>(draw() % 280) - 20);
        }
        std::sort(bounds.begin(), bounds.end());
        std::vector<whole_nanoseconds> times;
        std::transform(bounds.begin(), bounds.end(), std::back_inserter(times), us);
        auto const windows = accounts_between(trace, times);
        REQUIRE(windows.size() + 1 == bounds.size());
        for (std::size_t k = 0; k < windows.size(); ++k) {
            CAPTURE(round, k);
            REQUIRE(windows[k] == counted(trace, bounds[k], bounds[k + 1]));
        }
    }
}

TEST_CASE("accounts: idle and busy are the span, as classes are")
{
    std::mt19937 draw{2};
    for (int round = 0; round < 2000; ++round) {
        bool const with_memory = round % 2 == 0;
        auto const account = account_of(test::draw_trace(draw, with_memory));
        CHECK(account.host_wait + account.kernel_wait + account.other_wait == idle(account));
        CHECK(sum_of_classes(account) == account.span);
        if (!with_memory) {
            CHECK(account.compute + account.communication - account.overlap == account.busy);
        }
    }
}

TEST_CASE("accounts: a stream is busy or in a gap")
{
    std::mt19937 draw{3};
    for (int round = 0; round < 2000; ++round) {
        auto const trace = test::draw_trace(draw, true);
        auto const streams = stream_accounts(trace);
        std::int64_t events = 0;
        for (std::uint16_t s = 0; s < streams.size(); ++s) {
            rank_trace alone = trace;
            std::erase_if(alone.events, [&](auto const& e) { return e.stream != s; });
            auto const account = account_of(alone);  // of a stream alone, its gaps are the device's
            CHECK(streams[s].busy == account.busy);
            CHECK(streams[s].host_wait == account.host_wait);
            CHECK(streams[s].kernel_wait == account.kernel_wait);
            CHECK(streams[s].other_wait == account.other_wait);
            CHECK(streams[s].busy + gaps(streams[s]) == account.span);
            events += streams[s].events;
        }
        CHECK(events == static_cast<std::int64_t>(trace.events.size()));
    }
}

TEST_CASE("accounts: a trace at another time has the same answers")
{
    std::mt19937 draw{4};
    for (int round = 0; round < 300; ++round) {
        std::vector<rank_trace> traces{test::draw_trace(draw, true), test::draw_trace(draw, true), test::draw_trace(draw, true)};
        auto const before = analyze(traces);
        for (auto& trace : traces) {
            auto const by = us(static_cast<std::int64_t>(draw() % 2'000'000'000) - 1'000'000'000);
            for (auto& event : trace.events) {
                event.begin += by;
                event.end += by;
            }
            for (auto& launch : trace.launches) {
                launch.begin += by;
                launch.end += by;
            }
            for (auto& step : trace.steps) {
                step.begin += by;
                step.end += by;
            }
        }
        CHECK(analyze(traces) == before);
    }
}

TEST_CASE("accounts: the threshold is 30 us, a late launch comes first")
{
    rank_trace trace;
    trace.streams = {{0, 7}};
    test::add(trace, 0, device_work::compute, 0, 10, -5);
    test::add(trace, 0, device_work::compute, 39, 10, 10);    // launched when the one before ended: in time
    test::add(trace, 0, device_work::compute, 79, 10, 49);    // 30 us
    test::add(trace, 0, device_work::compute, 90, 10, 90);    // 1 us, but the launch was late
    test::add(trace, 0, device_work::compute, 200, 10, 101);  // 100 us, late, too
    put_in_order(trace);
    auto const account = account_of(trace);
    CHECK(account.kernel_wait == us(29));
    CHECK(account.other_wait == us(30));
    CHECK(account.host_wait == us(101));
    CHECK(most_waited_for(account) == time_class::host_wait);
    CHECK_FALSE(most_waited_for({.span = us(100), .busy = us(96), .compute = us(96), .host_wait = us(4)}));
    CHECK_FALSE(most_waited_for({}));
    CHECK(account_of({}) == device_account{});
}

TEST_CASE("accounts: launches are found by correlation and time")
{
    rank_trace trace;
    trace.streams = {{0, 7}};
    trace.launches = {{us(50), us(58), 4}, {us(10), us(15), 3}, {us(0), us(1), 9}, {us(2), us(3), 4}};
    auto const event = [](std::int64_t begin, std::int64_t duration, std::int64_t correlation) {
        return device_event{.begin = us(begin), .end = us(begin + duration), .correlation = correlation};
    };
    trace.events = {event(70, 3, 4), event(5, 9, 4), event(20, 9, 3), event(1, 1, 4), event(40, 1, 8)};
    put_in_order(trace);
    REQUIRE(trace.launches == std::vector<launch_event>{{us(10), us(15), 3}, {us(2), us(3), 4}, {us(50), us(58), 4}});  // 9 launched nothing that is here
    std::vector<std::uint32_t> launches;
    std::transform(trace.events.begin(), trace.events.end(), std::back_inserter(launches), [](auto const& e) { return e.launch; });
    CHECK(launches == std::vector<std::uint32_t>{1, 1, 0, no_launch, 2});
    auto const found = launches_of(trace);
    CHECK(found.kernels == 4);
    CHECK(found.short_kernels == 1);
    CHECK(found.delay == distribution{4, {4'750}, {3'500}, us(12), us(12)});  // 0, 2, 5 and 12 us
}
