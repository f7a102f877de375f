// SPDX-License-Identifier: Apache-2.0
// The trace of a job: its events lie in the job's time, those that a rank does one after the other don't overlap, computations add up to the accounts, and
// what is not shown leaves the job as it is.
#include <algorithm>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "rheo/job/job_trace.hpp"
#include "rheo/job/simulate_job.hpp"
#include "small_job.hpp"
#include "support/catch.hpp"

using namespace rheo;

namespace {

using namespace test;

struct noted_step {
    std::int64_t step;
    whole_nanoseconds begin;
    played_plan account;
};

struct traced_job {
    simulated_job job;
    job_trace<> trace;
    std::vector<noted_step> steps;
};

traced_job traced(job_description const& job, shown_steps shown, std::vector<job_event> events = {}, job_policy policy = job_policy::rheo)
{
    traced_job out{{}, job_trace<>{shown}, {}};
    auto const note = [&](std::int64_t step, whole_nanoseconds begin, played_plan const& account, std::size_t) { out.steps.push_back({step, begin, account}); };
    auto played = simulate_job<contended_network>(job, policy, job_event_source{std::move(events)}, note, &out.trace);
    REQUIRE(played.error() == "");
    out.job = *std::move(played);
    return out;
}

/// Events of which a rank does one after the other.
bool is_in_turn(trace_event const& e)
{
    return e.activity != activity::detect && e.activity != activity::evaluate && stream_of(e.activity) != trace_stream::send &&
           stream_of(e.activity) != trace_stream::receive;
}

void check_turns(traced_job const& out)
{
    std::map<rank_id, std::vector<trace_event>> by_rank;
    for (auto const& e : out.trace.events()) {
        CHECK(e.start <= e.end);
        CHECK(e.start >= seconds{});
        CHECK(e.end <= in_s(out.job.account.end) + nanoseconds(2));
        if (is_in_turn(e)) {
            by_rank[e.rank].push_back(e);
        }
    }
    for (auto& [rank, events] : by_rank) {
        std::stable_sort(events.begin(), events.end(), [](auto const& a, auto const& b) { return a.start < b.start || (a.start == b.start && a.end < b.end); });
        for (std::size_t k = 1; k < events.size(); ++k) {
            INFO("rank " << rank.value << ": " << label_of(events[k - 1]) << " of step " << events[k - 1].step.value << ", then " << label_of(events[k]));
            CHECK(events[k - 1].end <= events[k].start + nanoseconds(2));
        }
    }
}

seconds computed(traced_job const& out, std::int64_t step)
{
    seconds sum{};
    for (auto const& e : out.trace.events()) {
        sum += e.step.value == step && stream_of(e.activity) == trace_stream::compute ? e.end - e.start : seconds{};
    }
    return sum;
}

std::size_t count_of(job_trace<> const& trace, activity what)
{
    return static_cast<std::size_t>(std::count_if(trace.events().begin(), trace.events().end(), [&](auto const& e) { return e.activity == what; }));
}

constexpr modelled_link slow_links{{1e-3}, {1e6}};

}  // namespace

TEST_CASE("job_trace: computations of a step are the account's")
{
    auto const out = traced(small_job(5, {3, 2}, slow_links), {2, 4});
    check_turns(out);
    REQUIRE(out.steps.size() == 6);
    for (auto const& [step, begin, account] : out.steps) {
        bool const is_shown = step >= 2 && step <= 4;
        auto const expected = in_s(account.parts.computing) * (is_shown ? account.ranks : 0);
        CHECK(computed(out, step).count == Approx(expected.count).epsilon(1e-6));
        for (auto const& e : out.trace.events()) {
            if (e.step.value == step) {
                CHECK(e.start >= in_s(begin) - nanoseconds(1));
                CHECK(e.end <= in_s(begin + account.time) + nanoseconds(1));
            }
        }
    }
    CHECK(count_of(out.trace, activity::update) == 3 * 5);
    CHECK(count_of(out.trace, activity::send_activation) == 3 * (2 * 5 + 3));  // messages of 5 and of 3 microbatches
    CHECK(count_of(out.trace, activity::receive_gradient) == count_of(out.trace, activity::send_gradient));
}

TEST_CASE("job_trace: steps of a plan are shifted in time")
{
    auto const out = traced(small_job(4, {2, 2}, slow_links), {0, 5});
    auto const& events = out.trace.events();
    auto const each = events.size() / 6;
    REQUIRE(events.size() == each * 6);
    auto const step = in_s(out.steps.front().account.time);
    for (std::size_t k = each; k < events.size(); ++k) {
        auto const& first = events[k % each];
        CHECK(label_of(events[k]) == label_of(first));
        CHECK(events[k].rank == first.rank);
        CHECK(events[k].start.count == Approx((first.start + step * static_cast<double>(k / each)).count));
    }
}

TEST_CASE("job_trace: losses at any moment keep events in turn")
{
    auto job = small_job(4, {2, 2}, slow_links);
    job.eval_microbatches = 2;
    job.eval_every = 2;
    job.checkpoint_every = 2;
    auto const step = in_s(step_time(job));
    for (auto const policy : {job_policy::rheo, job_policy::replay, job_policy::checkpoint}) {
        for (int k = 1; k <= 24; ++k) {
            auto const at = step * (0.21 * k);
            auto const events = std::vector{lost(3, at), back(3, at + step * 2.0)};
            auto const out = traced(job, {0, 5}, events, policy);
            INFO(name_of(policy) << ", loss at " << at.count);
            check_turns(out);
            CHECK(count_of(out.trace, activity::merge) > 0);
            CHECK(count_of(out.trace, activity::evaluate) >= 3);
            CHECK(out.trace.checkpoints().size() >= 2 * 3);
            auto const untraced = simulate_job<contended_network>(job, policy, job_event_source{events});
            CHECK(*untraced == out.job);
        }
    }
}

TEST_CASE("job_trace: a trace has the same bytes every time")
{
    auto const text = [] {
        std::ostringstream out;
        write_chrome_trace(out, traced(small_job(4, {2, 2}, slow_links), {0, 2}, {lost(2, {20.0})}).trace);
        return out.str();
    };
    auto const once = text();
    CHECK(once == text());
    CHECK(once.find(R"("name":"detect")") != once.npos);
}

TEST_CASE("job_trace: too many events end the simulation")
{
    job_trace trace{{0, 5}, 100};
    auto const out = simulate_job<free_network>(small_job(4, {2, 2}), job_policy::rheo, job_event_source{}, no_job_observer{}, &trace);
    CHECK(out.error() == "the steps shown have more than 100 events");
    CHECK(trace.is_too_large());
}
