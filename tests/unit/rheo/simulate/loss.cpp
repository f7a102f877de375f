// SPDX-License-Identifier: Apache-2.0
// Steps that lose ranks at every moment: nothing happens on the lost rank after the loss, survivors do nothing that needs it,
// what they finished is what their events say, and the second part ends the step with every contribution made once.
#include <algorithm>
#include <map>
#include <set>

#include "rheo/simulate/loss.hpp"
#include "steps.hpp"
#include "support/catch.hpp"

using namespace rheo;

namespace {

constexpr recovery_times phases{{0.5}, {0.125}, {0.125}, {0.25}, {0.0}, {0.125}, {0.125}, {1.0}, {0.125}};

bool is_backward(trace_event const& e) { return e.activity == activity::backward; }

std::map<std::pair<int, int>, microbatch_set> backwards(std::vector<trace_event> const& events)
{
    std::map<std::pair<int, int>, microbatch_set> done;
    for (auto const& e : events) {
        if (is_backward(e)) {
            done[{e.rank.value, e.stage.value}].insert(microbatch_id{e.item});
        }
    }
    return done;
}

}  // namespace

TEST_CASE("loss: a loss at any moment of the step, of any rank")
{
    auto const step = test::two_and_three();
    auto const whole = rehearse_step(step);
    std::set<int> salvaged;
    for (int victim = 0; victim < 5; ++victim) {
        for (double t = 0.25; t < 21.0; t += 0.5) {
            INFO("rank " << victim << " at " << t);
            modelled_loss const loss{rank_id{victim}, step.begin + seconds{t}};
            auto const result = rehearse_losses(step, array_view{&loss, 1}, phases);
            CHECK(result.survivors.size() == 4);
            CHECK(result.generation == generation_id{1});
            for (auto const& e : result.events) {
                CHECK(e.start <= e.end);
                if (e.rank == loss.rank) {
                    CHECK(e.end <= loss.at);
                }
                if (is_instruction(e.activity)) {
                    CHECK(e.start < loss.at + phases.detect);
                    // What survivors do is what they would have done, when they would have done it.
                    CHECK(std::find(whole.events.begin(), whole.events.end(), e) != whole.events.end());
                }
            }
            auto done = backwards(result.events);
            int count = 0;
            for (auto const& f : result.finished) {
                CHECK(f.rank != loss.rank);
                CHECK(f.microbatches == done[{f.rank.value, f.stage.value}]);
                count += f.microbatches.size();
            }
            salvaged.insert(count);
            // No operation is longer than 2: all have left by then and continue together.
            CHECK(result.end >= loss.at + seconds{0.5 + 0.125 + 1.75});
            CHECK(result.end <= loss.at + seconds{0.5 + 2.0 + 0.125 + 1.75});
        }
    }
    CHECK(salvaged.size() > 10);
}

TEST_CASE("loss: survivors do not use what the lost rank had not sent")
{
    auto const step = test::two_and_three();
    modelled_loss const loss{rank_id{0}, step.begin + seconds{1.5}};  // after F0 of stage 0, in the middle of F1
    auto slow = phases;
    slow.detect = seconds{100.0};
    auto const result = rehearse_losses(step, array_view{&loss, 1}, slow);
    for (auto const& e : result.events) {
        if (e.rank == rank_id{1} && (e.activity == activity::forward || e.activity == activity::backward)) {
            CHECK(e.item == 0);
        }
        CHECK(e.activity != activity::await_reduction);  // rank 0 holds part of every layer that rank 1 does not, and the tied tensor
    }
}

TEST_CASE("loss: recovery phases follow without a gap")
{
    auto const step = test::two_and_three();
    modelled_loss const loss{rank_id{3}, step.begin + seconds{7.25}};
    auto const result = rehearse_losses(step, array_view{&loss, 1}, phases);
    std::vector const order{activity::detect,   activity::revoke, activity::decide, activity::shrink, activity::link,
                            activity::exchange, activity::plan,   activity::copy,   activity::merge};
    for (auto const rank : result.survivors) {
        std::vector<trace_event> mine;
        std::copy_if(result.events.begin(), result.events.end(), std::back_inserter(mine),
                     [&](auto const& e) { return e.rank == rank && !is_instruction(e.activity); });
        REQUIRE(mine.size() == order.size());
        for (std::size_t k = 0; k < order.size(); ++k) {
            CHECK(mine[k].activity == order[k]);
            CHECK((k < 2 || mine[k].start == mine[k - 1].end));
        }
        CHECK(mine.back().end == result.end);
    }
}

TEST_CASE("loss: two at once, and one more during the recovery")
{
    auto const step = test::two_and_three();
    auto const at = [&](int rank, double t) { return modelled_loss{rank_id{rank}, step.begin + seconds{t}}; };
    auto const both = rehearse_losses(step, std::vector{at(0, 5.0), at(3, 5.25)}, phases);
    CHECK(both.survivors == std::vector{rank_id{1}, rank_id{2}, rank_id{4}});
    CHECK(both.generation == generation_id{1});

    auto const again = rehearse_losses(step, std::vector{at(0, 5.0), at(3, 7.5)}, phases);
    CHECK(again.survivors == std::vector{rank_id{1}, rank_id{2}, rank_id{4}});
    CHECK(again.generation == generation_id{2});
    for (auto const& e : again.events) {
        CHECK((e.rank != rank_id{3} || e.end <= step.begin + seconds{7.5}));
    }
    CHECK(std::none_of(again.finished.begin(), again.finished.end(), [](auto const& f) { return f.rank == rank_id{3}; }));
    auto const single = rehearse_losses(step, std::vector{at(0, 5.0)}, phases);
    CHECK(again.end > single.end);
    CHECK(rehearse_losses(step, std::vector{at(0, 5.0), at(3, 50.0)}, phases).end == single.end);
}

TEST_CASE("loss: second part completes the step")
{
    auto const step = test::two_and_three();
    modelled_loss const loss{rank_id{1}, step.begin + seconds{10.0}};
    int salvaged = 0;
    auto const result = rehearse(step, array_view{&loss, 1}, phases, [&](interrupted_step const& first) {
        // One pipeline of the surviving ranks of the second; it runs what none of the survivors has finished on all its stages.
        auto second = step;
        std::vector<stage_work> work;
        for (int m = 0; m < 8; ++m) {
            int stage = 3;
            for (auto const& f : first.finished) {
                salvaged += f.rank.value >= 2 && f.microbatches.contains(microbatch_id{m}) ? 1 : 0;
                if (f.rank.value >= 2 && !f.microbatches.contains(microbatch_id{m})) {
                    stage = std::min(stage, f.stage.value);
                }
            }
            if (stage < 3) {
                work.push_back({microbatch_id{m}, stage_id{stage}});
            }
        }
        second.pipelines = {test::pipeline_of({rank_id{2}, rank_id{3}, rank_id{4}}, work)};
        return second;
    });
    REQUIRE(result.sound);
    CHECK(salvaged > 0);
    auto const undisturbed = rehearse_step(step);
    CHECK(result.end > undisturbed.end);
    auto const done = backwards(result.events);
    for (int stage = 0; stage < 3; ++stage) {
        CHECK(done.at({2 + stage, stage}).size() == 8);
    }
    auto const last = std::count_if(result.events.begin(), result.events.end(), [](auto const& e) {
        return e.activity == activity::update && e.attempt == attempt_id{1} && e.generation == generation_id{1};
    });
    CHECK(last == 3);
}
