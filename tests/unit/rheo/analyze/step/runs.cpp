// SPDX-License-Identifier: Apache-2.0
// Runs of many steps: what is a step and what is not, sums over steps, the slowest step, laws under renaming and shifting.
#include <algorithm>
#include <random>
#include <vector>

#include "rehearsed.hpp"
#include "rheo/analyze/step/run_analysis.hpp"
#include "rheo/schedule/families/one_f_one_b.hpp"
#include "support/catch.hpp"
#include "support/rehearsed_losses.hpp"

using namespace rheo;

namespace {

constexpr double close_enough = 1e-9;

/// Consecutive steps with the same costs.
struct drawn_run {
    modelled_step step;
    std::vector<trace_event> events;

    explicit drawn_run(int pipelines = 2, int ranks = 3)
    {
        std::mt19937 draw{8};
        step = test::drawn_step(draw, one_f_one_b{}, pipelines, ranks, 6);
    }

    /// Adds `count` steps.
    void run(int count)
    {
        for (int k = 0; k < count; ++k) {
            auto const rehearsed = rehearse_step(step);
            events.insert(events.end(), rehearsed.events.begin(), rehearsed.events.end());
            step.begin = rehearsed.end;
            ++step.step;
        }
    }

    void add(activity kind, seconds length)
    {
        for (auto const& pipeline : step.pipelines) {
            for (auto const rank : pipeline.ranks) {
                events.push_back({.rank = rank,
                                  .activity = kind,
                                  .generation = step.generation,
                                  .step = step.step,
                                  .attempt = step.attempt,
                                  .start = step.begin,
                                  .end = step.begin + length});
            }
        }
        step.begin += length;
    }
};

run_analysis analysis_of(std::vector<trace_event> const& events)
{
    auto const sorted = test::by_rank(events);
    auto const run = recorded_steps(array_view<trace_event const>{sorted});
    auto analysis = analyze_run(run);
    REQUIRE(analysis);
    return *analysis;
}

}  // namespace

TEST_CASE("recorded_step: a rank's step begins where its last one ended")
{
    drawn_run run;
    run.run(3);
    auto const events = test::by_rank(run.events);
    auto const recorded = recorded_steps(array_view<trace_event const>{events});
    REQUIRE(recorded.steps.size() == 3);
    REQUIRE(recorded.ranks.size() == 6);
    for (std::size_t s = 0; s < 3; ++s) {
        CHECK(recorded.steps[s].whole);
        REQUIRE(recorded.steps[s].rows.size() == 6);
        for (std::size_t r = 0; r < 6; ++r) {
            auto const& row = recorded.steps[s].rows[r];
            CHECK(row.rank == rank_id{static_cast<int>(r)});
            CHECK(row.events.back().activity == activity::update);
            CHECK(is_instruction(row.events.front().activity));
            CHECK((s == 0 || row.begin == recorded.steps[s - 1].rows[r].events.back().end));
        }
    }
    for (auto const& rank : recorded.ranks) {
        CHECK(rank.recovering == seconds{});
        CHECK(rank.evaluating == seconds{});
    }
}

TEST_CASE("recorded_step: evaluations are no steps")
{
    drawn_run run;
    run.run(1);
    // Its instructions lie within it.
    auto evaluation = rehearse_step(run.step).events;
    std::erase_if(evaluation, [](trace_event const& e) { return !is_instruction(e.activity); });
    run.events.insert(run.events.end(), evaluation.begin(), evaluation.end());
    run.add(activity::evaluate, rehearse_step(run.step).end - run.step.begin);
    run.run(1);
    auto const events = test::by_rank(run.events);
    auto const recorded = recorded_steps(array_view<trace_event const>{events});
    REQUIRE(recorded.steps.size() == 2);
    CHECK(recorded.ranks.front().evaluating > seconds{});
    auto const analysis = analysis_of(run.events);
    CHECK(std::abs(analysis.span.count - (run.step.begin - run.events.front().start - recorded.ranks.front().evaluating).count) < close_enough);
}

TEST_CASE("recorded_step: what a loss leaves of a step is not whole")
{
    drawn_run run;
    run.run(2);
    auto const lost_at = run.step.begin + seconds{4.0};
    std::vector const losses{modelled_loss{rank_id{4}, lost_at}};
    recovery_times const phases{{0.1}, {0.1}, {0.1}, {0.1}, {0.1}, {0.1}, {0.1}, {0.1}, {0.1}};
    auto rest = run.step;
    auto const rehearsed = test::rehearse(run.step, losses, phases, [&](test::interrupted_step const&) {
        rest.pipelines.pop_back();
        return rest;
    });
    run.events.insert(run.events.end(), rehearsed.events.begin(), rehearsed.events.end());
    run.step = rest;
    run.step.generation = rehearsed.events.back().generation;
    ++run.step.step;
    run.step.begin = rehearsed.end;
    run.run(2);
    auto const events = test::by_rank(run.events);
    auto const recorded = recorded_steps(array_view<trace_event const>{events});
    REQUIRE(recorded.steps.size() == 5);
    std::vector<bool> whole;
    for (auto const& step : recorded.steps) {
        whole.push_back(step.whole);
    }
    CHECK(whole == std::vector{true, true, false, true, true});
    CHECK(recorded.ranks[0].recovering.count >= 4.9);  // four seconds of work until the loss, and nine phases of 0.1 s
    CHECK(recorded.ranks[4].end <= lost_at);
    auto const analysis = analysis_of(run.events);
    CHECK(analysis.partial == 1);
    CHECK(analysis.times.count == 4);
}

TEST_CASE("recorded_step: no step is whole without each rank's record")
{
    drawn_run run;
    run.run(4);
    auto events = test::by_rank(run.events);
    std::erase_if(events, [](trace_event const& e) { return e.rank == rank_id{2} && e.step < step_id{2}; });
    auto const recorded = recorded_steps(array_view<trace_event const>{events});
    std::vector<bool> whole;
    for (auto const& step : recorded.steps) {
        whole.push_back(step.whole);
    }
    CHECK(whole == std::vector{false, false, true, true});
}

TEST_CASE("recorded_step: every second is in a step or beside it")
{
    drawn_run run;
    run.add(activity::link, seconds{0.5});
    run.add(activity::merge, seconds{0.25});
    run.run(4);
    run.add(activity::evaluate, seconds{2.0});
    run.run(2);
    auto const analysis = analysis_of(run.events);
    CHECK(analysis.partial == 0);  // a start cuts nothing off
    for (auto const& rank : analysis.ranks) {
        CHECK(rank.steps == 6);
        CHECK(rank.record.recovering == seconds{0.75});
        CHECK(rank.record.evaluating == seconds{2.0});
        CHECK((sum_of(rank.times) + rank.record.recovering + rank.record.evaluating).count == Approx((rank.record.end - rank.record.begin).count));
    }
}

TEST_CASE("run_analysis: sums over steps are those of the steps")
{
    drawn_run one;
    one.run(1);
    drawn_run many;
    many.run(7);
    auto const single = analysis_of(one.events);
    auto const all = analysis_of(many.events);
    CHECK(all.times.count == 7);
    CHECK(all.span.count == Approx(7.0 * single.span.count));
    CHECK(sum_of(all.critical).count == Approx(all.span.count));
    CHECK(all.breakdown.idle == Approx(single.breakdown.idle));
    CHECK(all.breakdown.idle_by_schedule == Approx(single.breakdown.idle_by_schedule));
    for (std::size_t c = 0; c < step_class_count; ++c) {
        CHECK(all.saved.of[c].count == Approx(7.0 * single.saved.of[c].count).margin(close_enough));
        CHECK(all.critical.of[c].count == Approx(7.0 * single.critical.of[c].count).margin(close_enough));
    }
    REQUIRE(all.links.size() == single.links.size());
    for (std::size_t k = 0; k < all.links.size(); ++k) {
        CHECK(all.links[k].messages == 7 * single.links[k].messages);
        CHECK(all.links[k].exposed.count == Approx(7.0 * single.links[k].exposed.count).margin(close_enough));
    }
}

TEST_CASE("run_analysis: shifted clocks, renamed ranks change nothing")
{
    drawn_run run;
    run.run(5);
    auto const before = analysis_of(run.events);
    auto changed = run.events;
    for (auto& e : changed) {
        e.start += seconds{64.0};
        e.end += seconds{64.0};
        e.rank.value = 10 - e.rank.value;
    }
    auto const after = analysis_of(changed);
    CHECK(after.span.count == Approx(before.span.count));
    CHECK(after.breakdown.idle == Approx(before.breakdown.idle));
    for (std::size_t r = 0; r < before.ranks.size(); ++r) {
        auto const& here = after.ranks[before.ranks.size() - 1 - r];
        CHECK(here.record.rank.value == 10 - before.ranks[r].record.rank.value);
        for (std::size_t c = 0; c < step_class_count; ++c) {
            CHECK(here.times.of[c].count == Approx(before.ranks[r].times.of[c].count).margin(1e-7));
        }
    }
}

TEST_CASE("run_analysis: the slowest step says what grew where")
{
    drawn_run run;
    run.run(5);
    auto usual = run.step;
    auto const which = run.step.step;
    run.step.pipelines[1].costs[2].backward = seconds{20.0};
    run.run(1);
    auto const end = run.step;
    run.step = usual;
    run.step.begin = end.begin;
    run.step.step = end.step;
    run.run(4);
    auto const analysis = analysis_of(run.events);
    REQUIRE(analysis.slowest);
    CHECK(analysis.slowest->step == which);
    REQUIRE(analysis.slowest->because);
    CHECK(analysis.slowest->because->rank == rank_id{5});
    CHECK(analysis.slowest->because->in == step_class::backward);
    CHECK(analysis.times.most.count == in_whole_nanoseconds(analysis.slowest->time));
}

TEST_CASE("run_analysis: a rank that was stopped is named")
{
    drawn_run run;
    run.run(9);
    auto const sorted = test::by_rank(run.events);
    auto const recorded = recorded_steps(array_view<trace_event const>{sorted});
    auto const graph = graph_of(recorded.steps[4]);
    REQUIRE(graph);
    for (std::size_t stopped = 0; stopped < graph->nodes.size(); stopped += 5) {
        auto const& at = graph->nodes[stopped];
        if (at.row == no_step_node || !is_work(at.own_class)) {
            continue;
        }
        // Everything behind it is later by as much as it waits for it.
        auto const ends = replayed_ends(*graph, [&](step_node const& node) {
            auto times = times_of(node);
            times.own += &node == &at ? seconds{30.0} : seconds{};
            return times;
        });
        auto changed = sorted;
        auto const last = last_of(ends) - graph->nodes[graph->order.back()].end;
        for (std::size_t n = 0; n < graph->nodes.size(); ++n) {
            if (auto const& node = graph->nodes[n]; node.event != nullptr) {
                auto& event = changed[static_cast<std::size_t>(node.event - sorted.data())];
                auto const own = node.own + (n == stopped ? seconds{30.0} : seconds{});
                event.end = ends[n];
                auto const ready = node.before == no_step_node ? graph->begins[node.row] : ends[node.before];
                event.start = event.activity == activity::await_reduction || event.activity == activity::decide ? ready : std::max(ready, ends[n] - own);
            }
        }
        for (auto& event : changed) {
            if (event.step > recorded.steps[4].step) {
                event.start += last;
                event.end += last;
            }
        }
        auto const analysis = analysis_of(changed);
        REQUIRE(analysis.slowest);
        CHECK(analysis.slowest->step == recorded.steps[4].step);
        REQUIRE(analysis.slowest->because);
        CHECK(analysis.slowest->because->rank == graph->ranks[at.row]);
        CHECK(analysis.slowest->because->by.count == Approx(30.0));
    }
}

TEST_CASE("run_analysis: a slow link has the longest waits")
{
    drawn_run run{1, 4};
    for (auto& cost : run.step.pipelines[0].costs) {
        cost = {{1.0}, {2.0}, {1.0}, {1.0}, {0.05}, {0.05}};
    }
    run.step.pipelines[0].costs[1].send_activation = seconds{1.5};
    run.run(3);
    auto const analysis = analysis_of(run.events);
    REQUIRE(analysis.links.size() == 6);
    auto const most = std::max_element(analysis.links.begin(), analysis.links.end(), [](auto const& a, auto const& b) { return a.exposed < b.exposed; });
    CHECK(most->from == rank_id{1});
    CHECK(most->to == rank_id{2});
    CHECK(most->messages == 18);
}
