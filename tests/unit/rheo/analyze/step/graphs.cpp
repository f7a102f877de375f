// SPDX-License-Identifier: Apache-2.0
// Graphs of steps: played again they give what was recorded, and without a class what the rehearsal without it gives.
#include <algorithm>
#include <random>
#include <set>
#include <vector>

#include "rehearsed.hpp"
#include "rheo/analyze/step/bubble.hpp"
#include "rheo/analyze/step/build_graph.hpp"
#include "rheo/analyze/step/step_account.hpp"
#include "rheo/analyze/step/step_replay.hpp"
#include "rheo/schedule/families/families.hpp"
#include "support/catch.hpp"

using namespace rheo;

namespace {

constexpr double close_enough = 1e-9;

bool is_close(seconds a, seconds b) { return std::abs(a.count - b.count) < close_enough; }

/// Calls with a drawn step of each family, its events and its graph.
template <class Check>
void for_each_graph(int rounds, Check const& check)
{
    std::mt19937 draw{5};
    for (auto const& family : schedule_families()) {
        int checked = 0;
        for (int round = 0; checked < rounds; ++round) {
            auto const step = test::drawn_step(draw, family, 1 + round % 3, 1 + round % 5, 1 + static_cast<int>(draw() % 12));
            if (step.pipelines.empty()) {
                continue;
            }
            ++checked;
            auto const events = test::by_rank(rehearse_step(step).events);
            auto const run = recorded_steps(array_view<trace_event const>{events});
            INFO(family->name << ", round " << round);
            REQUIRE(run.steps.size() == 1);
            auto const graph = graph_of(run.steps.front());
            REQUIRE(graph);
            check(step, *graph);
        }
    }
}

/// The length of the step, rehearsed.
seconds length_of(modelled_step const& step) { return rehearse_step(step).end - step.begin; }

}  // namespace

TEST_CASE("step_graph: played again it is the recorded step")
{
    for_each_graph(20, [](modelled_step const& step, step_graph const& graph) {
        CHECK(graph.unmatched == 0);
        auto const ends = replayed_ends(graph, times_of);
        CHECK(std::all_of(graph.order.begin(), graph.order.end(), [&](auto n) { return is_close(ends[n], graph.nodes[n].end); }));
        CHECK(is_close(span_of(graph), length_of(step)));
    });
}

TEST_CASE("step_graph: without a class it is the step without it")
{
    for_each_graph(20, [](modelled_step const& step, step_graph const& graph) {
        auto changed = step;
        for (auto& pipeline : changed.pipelines) {
            for (auto& cost : pipeline.costs) {
                cost.send_activation = cost.send_gradient = {};
            }
        }
        CHECK(is_close(span_without(graph, step_class::message), length_of(changed)));
        changed = step;
        changed.reductions.clear();
        CHECK(is_close(span_without(graph, step_class::reduction), length_of(changed)));
        changed = step;
        changed.decide = {};
        CHECK(is_close(span_without(graph, step_class::vote), length_of(changed)));
        changed = step;
        changed.update = {};
        CHECK(is_close(span_without(graph, step_class::update), length_of(changed)));
        CHECK(is_close(span_without(graph, step_class::host), length_of(step)));
    });
}

TEST_CASE("step_graph: a critical path is as long as its step")
{
    for_each_graph(20, [](modelled_step const&, step_graph const& graph) {
        auto const path = critical_path_of(graph);
        auto const slack = slack_of(graph);
        CHECK(is_close(sum_of(path.times), span_of(graph)));
        CHECK(path.times[step_class::bubble] == seconds{});
        CHECK(std::all_of(path.nodes.begin(), path.nodes.end(), [&](auto n) { return std::abs(slack[n].count) < close_enough; }));
        CHECK(std::all_of(slack.begin(), slack.end(), [](seconds s) { return s.count > -close_enough; }));
    });
}

TEST_CASE("step_graph: slack is how much later an operation may end")
{
    std::mt19937 draw{9};
    for_each_graph(3, [&](modelled_step const&, step_graph const& graph) {
        auto const slack = slack_of(graph);
        auto const span = span_of(graph);
        for (int round = 0; round < 20; ++round) {
            auto const chosen = draw() % graph.nodes.size();
            auto changed = graph;
            changed.nodes[chosen].own += slack[chosen];
            CHECK(is_close(span_of(changed), span));
            changed.nodes[chosen].own += seconds{0.125};
            CHECK(is_close(span_of(changed), span + seconds{0.125}));
        }
    });
}

TEST_CASE("step_graph: every nanosecond of a rank is in one class")
{
    for_each_graph(20, [](modelled_step const& step, step_graph const& graph) {
        auto const accounts = accounts_of(graph);
        REQUIRE(accounts.size() == graph.ranks.size());
        seconds work;
        for (auto const& account : accounts) {
            CHECK(is_close(sum_of(account), length_of(step)));  // all begin and end together
            CHECK(std::all_of(account.of.begin(), account.of.end(), [](seconds time) { return time.count > -close_enough; }));
            CHECK(account[step_class::host].count == Approx(0.0).margin(close_enough));
            work += work_of(account);
        }
        seconds costs;
        for (auto const& pipeline : step.pipelines) {
            for (auto const& row : pipeline.program.rows) {
                for (auto const& i : row) {
                    costs += is_work(i.kind) ? cost_of(pipeline.costs, i) : seconds{};
                }
            }
        }
        CHECK(work.count == Approx(costs.count));
    });
}

TEST_CASE("bubble: the parts of a step add up to it")
{
    for_each_graph(10, [](modelled_step const& step, step_graph const& graph) {
        auto const breakdown = breakdown_of(graph);
        CHECK(is_close(breakdown.schedule + breakdown.uneven + breakdown.vote + breakdown.reductions + breakdown.messages + breakdown.host, span_of(graph)));
        CHECK(breakdown.vote.count > -close_enough);
        CHECK(breakdown.reductions.count > -close_enough);
        CHECK(breakdown.messages.count > -close_enough);
        CHECK(breakdown.host.count == Approx(0.0).margin(close_enough));
        auto free = step;
        free.reductions.clear();
        free.decide = {};
        for (auto& pipeline : free.pipelines) {
            for (auto& cost : pipeline.costs) {
                cost.send_activation = cost.send_gradient = {};
            }
        }
        CHECK(is_close(breakdown.schedule + breakdown.uneven, length_of(free)));
    });
}

TEST_CASE("bubble: 1f1b of equal stages has (p - 1) / (m + p - 1)")
{
    for (int ranks = 1; ranks < 7; ++ranks) {
        for (int count = ranks; count < 20; ++count) {
            std::mt19937 draw{1};
            auto step = test::drawn_step(draw, one_f_one_b{}, 1, ranks, count);
            for (auto& cost : step.pipelines.front().costs) {
                cost = {{1.0}, {2.0}, {1.0}, {1.0}, {0.25}, {0.25}};
            }
            auto const events = test::by_rank(rehearse_step(step).events);
            auto const run = recorded_steps(array_view<trace_event const>{events});
            auto const graph = graph_of(run.steps.front());
            auto const breakdown = breakdown_of(*graph);
            CHECK(breakdown.idle_by_schedule == Approx(static_cast<double>(ranks - 1) / (count + ranks - 1)).margin(1e-12));
            CHECK(breakdown.idle >= breakdown.idle_by_schedule - 1e-12);
        }
    }
}

TEST_CASE("step_graph: drawn records are played again")
{
    std::mt19937 draw{3};
    for_each_graph(10, [&](modelled_step const&, step_graph const& graph) {
        // Other times in the same order: a new record, whose graph must give it again.
        auto const times = [&](step_node const& node) {
            return node_times{node.own * test::drawn_time(draw, 0.5, 2.0).count, node.lag * test::drawn_time(draw, 0.0, 3.0).count,
                              test::drawn_time(draw, 0.0, 0.2)};
        };
        auto const ends = replayed_ends(graph, times);
        std::vector<trace_event> events;
        for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
            if (auto const& node = graph.nodes[n]; node.event != nullptr) {
                auto event = *node.event;
                auto const ready = node.before == no_step_node ? graph.begins[node.row] : ends[node.before];
                event.start = std::max(ready, ends[n] - node.own * 0.5);
                event.end = ends[n];
                events.push_back(event);
            }
        }
        auto const run = recorded_steps(array_view<trace_event const>{events});
        REQUIRE(run.steps.size() == 1);
        auto const again = graph_of(run.steps.front());
        REQUIRE(again);
        auto const played = replayed_ends(*again, times_of);
        for (std::size_t n = 0; n < again->nodes.size(); ++n) {
            CHECK(is_close(played[n], again->nodes[n].end));
        }
        seconds sum;
        for (auto const& account : accounts_of(*again)) {
            sum += sum_of(account);
        }
        seconds rows;
        for (auto const& row : run.steps.front().rows) {
            rows += row.events.back().end - row.begin;
        }
        CHECK(sum.count == Approx(rows.count));
    });
}

TEST_CASE("step_graph: rendezvous holds both ends of a message")
{
    std::mt19937 draw{4};
    for (int ranks = 2; ranks < 6; ++ranks) {
        auto const step = test::drawn_step(draw, one_f_one_b{}, 2, ranks, 7);
        auto const rehearsed = rehearse_step<rendezvous>(step);
        auto const events = test::by_rank(rehearsed.events);
        auto const run = recorded_steps(array_view<trace_event const>{events});
        auto const graph = graph_of(run.steps.front(), true);
        REQUIRE(graph);
        CHECK(is_close(span_of(*graph), rehearsed.end - step.begin));
        auto free = step;
        for (auto& pipeline : free.pipelines) {
            for (auto& cost : pipeline.costs) {
                cost.send_activation = cost.send_gradient = {};
            }
        }
        CHECK(is_close(span_without(*graph, step_class::message), rehearse_step<rendezvous>(free).end - step.begin));
    }
}
