// SPDX-License-Identifier: Apache-2.0
// Ranks for which others wait, on traces that were made so that one of them is late, for each reason.
#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "drawn_trace.hpp"
#include "rheo/analyze/device/analysis.hpp"
#include "support/catch.hpp"

using namespace rheo;
using test::us;

namespace {

/// What a rank does in a step of 1000 us: computes, sends a message, reduces with the others until 900.
struct habits {
    std::int64_t compute = 400;
    std::int64_t launch_gap = 0;  ///< between two kernels, the second launched late
    std::int64_t message = 50;
    std::int64_t clock = 0;  ///< how much later its clock is
};

rank_trace make_trace(int rank, habits usual, habits at_first, int first, int steps = 6)
{
    rank_trace trace;
    trace.rank = rank_id{rank};
    trace.streams = {{0, 7}, {0, 20}};
    trace.collectives = {"AllReduce"};
    for (int k = 0; k < steps; ++k) {
        auto const& h = k == first ? at_first : usual;
        auto const begin = 1000 * k + usual.clock;
        trace.steps.push_back({k, us(begin), us(begin + 1000)});
        test::add(trace, 0, device_work::compute, begin, 100, begin - 10);
        auto at = begin + 100;
        test::add(trace, 0, device_work::compute, at + h.launch_gap, h.compute, h.launch_gap > 0 ? at + h.launch_gap - 1 : begin);
        at += h.launch_gap + h.compute;
        test::add(trace, 1, device_work::communication, at, h.message, begin);
        at += h.message;
        test::add(trace, 1, device_work::communication, at, begin + 900 - at, begin + 5);
        trace.events.back().collective = 0;
    }
    put_in_order(trace);
    return trace;
}

straggler only(job_analysis const& job)
{
    REQUIRE(job.stragglers.stragglers.size() == 1);
    return job.stragglers.stragglers.front();
}

}  // namespace

TEST_CASE("stragglers: who begins last is named with its cause")
{
    struct example {
        habits late;
        std::optional<grown_class> because;
    };
    for (auto const& [late, because] :
         {example{{.compute = 600}, grown_class{time_class::computation, us(200)}}, example{{.launch_gap = 200}, grown_class{time_class::host_wait, us(200)}},
          example{{.message = 250}, grown_class{time_class::communication, us(200)}}}) {
        std::vector<rank_trace> traces;
        for (int rank = 0; rank < 4; ++rank) {
            traces.push_back(make_trace(rank, {.clock = 12345 * rank}, rank == 2 ? habits{late.compute, late.launch_gap, late.message} : habits{}, 4));
        }
        auto const job = analyze(traces);
        auto const found = only(job);
        CHECK(found.trace == 2);
        CHECK(found.times == 1);
        CHECK(found.steps == 1);
        CHECK(found.late == us(200));
        CHECK(found.worst == us(200));
        CHECK(found.meeting == 4);
        CHECK(found.because == because);
        CHECK(job.stragglers.meetings == 6);
        CHECK(job.stragglers.apart == 0);
        CHECK(job.stragglers.waited == std::vector<whole_nanoseconds>{us(200), us(200), us(0), us(200)});
    }
}

TEST_CASE("stragglers: clocks that differ make nobody late")
{
    std::vector<rank_trace> traces;
    for (int rank = 0; rank < 5; ++rank) {
        traces.push_back(make_trace(rank, {.clock = 70'000 * (rank * 7 % 5)}, {}, -1));
    }
    auto const job = analyze(traces);
    CHECK(job.stragglers.stragglers.empty());
    CHECK(job.stragglers.meetings == 6);
    CHECK(job.stragglers.waited == std::vector<whole_nanoseconds>(5));
}

TEST_CASE("stragglers: renamed ranks in another order are the same")
{
    std::mt19937 draw{6};
    for (int round = 0; round < 50; ++round) {
        std::vector<rank_trace> traces;
        for (int rank = 0; rank < 5; ++rank) {
            traces.push_back(make_trace(rank, {.compute = 300 + static_cast<std::int64_t>(draw() % 200)}, {.compute = static_cast<std::int64_t>(draw() % 500)},
                                        static_cast<int>(draw() % 6)));
        }
        auto const before = analyze(traces);
        auto renamed = traces;
        std::shuffle(renamed.begin(), renamed.end(), draw);
        auto const after = analyze(renamed);
        REQUIRE(after.stragglers.stragglers.size() == before.stragglers.stragglers.size());
        for (std::size_t k = 0; k < before.stragglers.stragglers.size(); ++k) {
            auto const& a = before.stragglers.stragglers[k];
            auto const same = std::find_if(after.stragglers.stragglers.begin(), after.stragglers.stragglers.end(),
                                           [&](auto const& b) { return renamed[b.trace].rank == traces[a.trace].rank; });
            REQUIRE(same != after.stragglers.stragglers.end());
            CHECK(same->late == a.late);
            CHECK(same->because == a.because);
        }
        CHECK(after.total == before.total);
    }
}

TEST_CASE("stragglers: what does not end together is not judged")
{
    std::vector<rank_trace> traces{make_trace(0, {}, {}, -1), make_trace(1, {}, {}, -1), make_trace(2, {}, {}, -1)};
    traces[1].events.back().end += us(300);
    auto const job = analyze(traces);
    CHECK(job.stragglers.meetings == 5);
    CHECK(job.stragglers.apart == 1);
    traces[1].collectives = {"AllReduce in another group"};  // alone in its group
    auto const others = analyze(traces);
    REQUIRE(others.series.size() == 1);
    CHECK(others.series.front().traces == std::vector<std::uint32_t>{0, 2});
}

TEST_CASE("stragglers: the last collectives of traces meet")
{
    std::vector<rank_trace> traces;
    for (int rank = 0; rank < 3; ++rank) {
        traces.push_back(make_trace(rank, {.clock = rank == 0 ? -3000 : 0}, {.compute = rank == 2 ? 600 : 400}, 6 - 1, 6));
    }
    traces[0].events.erase(traces[0].events.begin(), traces[0].events.begin() + 12);  // its profile began three steps later
    auto const job = analyze(traces);
    CHECK(job.stragglers.meetings == 3);
    CHECK(only(job).trace == 2);
}
