// SPDX-License-Identifier: Apache-2.0
// Clocks of hosts: where they are apart by any time they are found by the ends of votes, and the events are again those of one clock.
#include <algorithm>
#include <random>
#include <vector>

#include "rehearsed.hpp"
#include "rheo/analyze/step/host_clocks.hpp"
#include "rheo/schedule/families/one_f_one_b.hpp"
#include "support/catch.hpp"

using namespace rheo;

namespace {

/// Steps of two pipelines of three ranks.
std::vector<trace_event> some_steps(std::mt19937& draw, int count)
{
    auto step = test::drawn_step(draw, one_f_one_b{}, 2, 3, 6);
    std::vector<trace_event> events;
    for (int s = 0; s < count; ++s) {
        step.step = step_id{s};
        auto const rehearsed = rehearse_step(step);
        events.insert(events.end(), rehearsed.events.begin(), rehearsed.events.end());
        step.begin = rehearsed.end;
    }
    return test::by_rank(std::move(events));
}

hosts_of_ranks const hosts{0, 1, 2, 0, 1, 2};

}  // namespace

TEST_CASE("host_clocks: clocks that are apart are found and aligned")
{
    std::mt19937 draw{5};
    for (int trial = 0; trial < 20; ++trial) {
        auto const events = some_steps(draw, 5);
        std::vector<seconds> late{test::drawn_time(draw, -2.0, 2.0), test::drawn_time(draw, -2.0, 2.0), test::drawn_time(draw, -2.0, 2.0)};
        auto shifted = events;
        for (auto& e : shifted) {
            e.start += late[static_cast<std::size_t>(hosts[at(e.rank)])];
            e.end += late[static_cast<std::size_t>(hosts[at(e.rank)])];
        }
        auto const clocks = host_clocks(array_view<trace_event const>{shifted}, hosts);
        auto sorted = late;
        std::sort(sorted.begin(), sorted.end());
        REQUIRE(clocks.size() == 3);
        for (std::size_t h = 0; h < 3; ++h) {
            CHECK(clocks[h].count == Approx((late[h] - sorted[1]).count).margin(1e-9));
        }
        align_clocks(shifted, hosts, clocks);
        for (std::size_t k = 0; k < events.size(); ++k) {
            CHECK((shifted[k].start - events[k].start).count == Approx(sorted[1].count).margin(1e-9));
        }
    }
}

TEST_CASE("host_clocks: ranks of one host keep their times")
{
    std::mt19937 draw{6};
    auto events = some_steps(draw, 3);
    for (auto& e : events) {
        if (e.activity == activity::decide && e.rank.value == 1) {
            e.end += seconds{0.125};  // it ended the vote later
        }
    }
    for (auto const& one : {hosts_of_ranks{}, hosts_of_ranks{0, 0, 0, 0, 0, 0}}) {
        CHECK(host_clocks(array_view<trace_event const>{events}, one) == std::vector{seconds{}});
    }
}

TEST_CASE("host_clocks: a host without votes is left alone")
{
    std::mt19937 draw{7};
    auto events = some_steps(draw, 3);
    std::erase_if(events, [](trace_event const& e) { return e.activity == activity::decide && hosts[at(e.rank)] == 2; });
    CHECK(host_clocks(array_view<trace_event const>{events}, hosts)[2] == seconds{});
    CHECK(host_clocks(array_view<trace_event const>{}, hosts) == std::vector(3, seconds{}));
}
