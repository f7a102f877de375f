// SPDX-License-Identifier: Apache-2.0
// Messages by size: what they take where they are waited for, and which of them are mostly latency.
#include <algorithm>
#include <vector>

#include "rehearsed.hpp"
#include "rheo/analyze/step/message_sizes.hpp"
#include "rheo/analyze/step/run_analysis.hpp"
#include "rheo/schedule/families/one_f_one_b.hpp"
#include "rheo/simulate/link.hpp"
#include "support/catch.hpp"

using namespace rheo;

namespace {

/// Two pipelines of three stages, eight microbatches each; messages and sums take what the link makes of their bytes.
modelled_step step_on(modelled_link link, bytes message, bytes sums)
{
    modelled_step step{};
    for (int p = 0; p < 2; ++p) {
        auto const lowered = lower(make_program(one_f_one_b{}, {.ranks = 3, .microbatches = 8}));
        std::vector<rank_id> ranks;
        for (int r = 0; r < 3; ++r) {
            ranks.push_back(rank_id{3 * p + r});
        }
        auto const time = microseconds(100.0);
        stage_costs const costs(3, {time, time * 2.0, time, time, {}, {}});
        step.pipelines.push_back({with_reductions(lowered, {{reduction_id{0}}, {reduction_id{1}}, {reduction_id{2}}}, 3),
                                  ranks,
                                  with_transfers(costs, std::vector{message, message}, link),
                                  {message, message}});
    }
    step.reductions.assign(3, reduction_time(link, sums, 2));
    step.sums.assign(3, sums);
    step.decide = step.update = microseconds(10.0);
    return step;
}

message_sizes sizes_of(modelled_step step, int count = 3)
{
    std::vector<trace_event> events;
    for (int k = 0; k < count; ++k) {
        auto const rehearsed = rehearse_step(step);
        events.insert(events.end(), rehearsed.events.begin(), rehearsed.events.end());
        step.begin = rehearsed.end;
        ++step.step;
    }
    put_in_order(events);
    auto const analysis = analyze_run(recorded_steps(array_view<trace_event const>{events}));
    REQUIRE(analysis);
    return analysis->sizes;
}

constexpr modelled_link late{microseconds(50.0), {1e10}};  ///< messages are mostly latency
constexpr modelled_link narrow{{0.0}, {1e8}};              ///< and mostly bytes

}  // namespace

TEST_CASE("message_sizes: each link has its messages and their time")
{
    auto const sizes = sizes_of(step_on(late, bytes{4096}, mebibytes(1)));
    REQUIRE(sizes.messages.size() == 8);  // two boundaries of two pipelines, both ways
    auto const takes = transfer_time(late, bytes{4096});
    for (auto const& m : sizes.messages) {
        CHECK(std::abs(m.from.value - m.to.value) == 1);
        CHECK(m.pipeline == pipeline_id{m.from.value / 3});
        CHECK(m.size == bytes{4096});
        CHECK(m.messages == 3 * 8);
        CHECK(m.typical.count == Approx(takes.count));
        CHECK(m.quickest.count == Approx(takes.count));
        CHECK(m.exposed > seconds{});
        CHECK(m.exposed <= takes * 24.0 * (1.0 + 1e-6));
    }
    CHECK(sizes.sums.count == Approx(static_cast<double>(mebibytes(1).count) / reduction_time(late, mebibytes(1), 2).count));
}

TEST_CASE("message_sizes: a sum of one rank gives no rate")
{
    auto step = step_on(late, bytes{4096}, mebibytes(1));
    step.pipelines.pop_back();
    auto const sizes = sizes_of(step);
    CHECK(sizes.messages.size() == 4);
    CHECK(sizes.sums == bytes_per_second{});
}

TEST_CASE("message_sizes: small messages on a late link are latency")
{
    auto const sizes = sizes_of(step_on(late, bytes{4096}, mebibytes(1)));
    auto const small = small_messages_of(sizes);
    REQUIRE(small);
    CHECK(small->messages == 4 * 3 * 8);
    CHECK(small->size == bytes{4096});
    CHECK(small->each.count == Approx(transfer_time(late, bytes{4096}).count));
    CHECK(small->by_rate.count == Approx((bytes{4096} / sizes.sums).count));
    CHECK(small->share == 1.0);
    CHECK(small->exposed > seconds{});
}

TEST_CASE("message_sizes: the pipeline that waits most is named")
{
    for (int slow = 0; slow < 2; ++slow) {
        auto step = step_on(late, bytes{4096}, mebibytes(1));
        auto& pipeline = step.pipelines[static_cast<std::size_t>(slow)];
        pipeline.boundary = {bytes{1024}, bytes{2048}};
        for (auto& cost : pipeline.costs) {
            cost.send_activation = cost.send_gradient = microseconds(90.0);
        }
        auto const small = small_messages_of(sizes_of(step));
        REQUIRE(small);
        CHECK(small->pipeline == pipeline_id{slow});
        CHECK(small->messages == 4 * 3 * 8);
        CHECK(small->size == bytes{1024});  // the lower of the two in the middle
        CHECK(small->each.count == Approx(90e-6));
    }
}

TEST_CASE("message_sizes: what bytes explain is no latency")
{
    CHECK_FALSE(small_messages_of(sizes_of(step_on(narrow, bytes{4096}, mebibytes(1)))));
    CHECK_FALSE(small_messages_of(sizes_of(step_on(late, kibibytes(64), mebibytes(1)))));                                // not small
    CHECK_FALSE(small_messages_of(sizes_of(step_on({milliseconds(1.0), {1e10}}, bytes{4096}, mebibytes(1)))));           // no network is as late
    CHECK_FALSE(small_messages_of(sizes_of(step_on(late, bytes{}, mebibytes(1)))));                                      // an old trace
    CHECK_FALSE(small_messages_of(sizes_of(step_on({microseconds(50.0), {1e10}}, bytes{4096}, bytes{4096}))));           // no better rate was seen
    CHECK(small_messages_of(sizes_of(step_on({microseconds(50.0), {1e10}}, kibibytes(64) - bytes{1}, mebibytes(64)))));  // just small
    CHECK_FALSE(small_messages_of({}));
}

TEST_CASE("message_sizes: silent where large messages cost more")
{
    auto step = step_on(late, bytes{4096}, mebibytes(1));
    step.pipelines[1].boundary = {mebibytes(4), mebibytes(4)};
    for (auto& cost : step.pipelines[1].costs) {
        cost.send_activation = cost.send_gradient = transfer_time(late, mebibytes(4));
    }
    CHECK_FALSE(small_messages_of(sizes_of(step)));
}

TEST_CASE("message_sizes: of a send to several a link has its part")
{
    auto events = rehearse_step(step_on(late, bytes{4096}, mebibytes(1))).events;
    for (auto& e : events) {
        if (e.activity == activity::receive_activation) {
            e.size = bytes{1024};
        } else if (e.activity == activity::receive_gradient) {
            e.size = bytes{8192};  // of several sends
        }
    }
    put_in_order(events);
    auto const analysis = analyze_run(recorded_steps(array_view<trace_event const>{events}));
    REQUIRE(analysis);
    for (auto const& link : analysis->links) {
        CHECK(link.largest == (link.from < link.to ? bytes{1024} : bytes{4096}));
    }
}

TEST_CASE("message_sizes: sizes are there where sends wait, too")
{
    auto const step = step_on(late, bytes{4096}, mebibytes(1));
    auto events = rehearse_step<rendezvous>(step).events;
    put_in_order(events);
    auto const analysis = analyze_run(recorded_steps(array_view<trace_event const>{events}), true);
    REQUIRE(analysis);
    std::int64_t messages = 0;
    for (auto const& m : analysis->sizes.messages) {
        CHECK(m.size == bytes{4096});
        CHECK(std::abs(m.from.value - m.to.value) == 1);
        messages += m.messages;
    }
    CHECK(messages == 2 * 2 * 2 * 8);
    for (auto const& link : analysis->links) {
        CHECK(link.largest == bytes{4096});
    }
}
