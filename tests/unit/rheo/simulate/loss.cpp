// SPDX-License-Identifier: Apache-2.0
// Steps that lose ranks at every moment: nothing happens on the lost rank after the loss, survivors do what they would have done, and nothing that needs it.
#include "rheo/simulate/loss.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "rheo/simulate/network/network_model.hpp"
#include "rheo/simulate/played_step/play_step.hpp"
#include "rheo/simulate/played_step/step_recorder.hpp"
#include "steps.hpp"
#include "support/catch.hpp"

using namespace rheo;

namespace {

constexpr seconds detection{0.5};

struct recorded_play {
    played_step<> played;
    std::vector<trace_event> events;
};

/// On links without latency. @param losses ascending; survivors hear of all of them `detect` after the first
recorded_play play(modelled_step const& step, std::vector<modelled_loss> const& losses = {}, seconds detect = detection)
{
    std::vector<network_level<>> const levels{{5, network_topology::full, {{0.0}, {1e30}}}};
    step_recorder recorder{step};
    step_losses const lost{array_view<modelled_loss const>{losses}, losses.empty() ? seconds{} : losses.front().at + detect};
    auto played = play_step<free_network>(step, array_view<network_level<> const>{levels}, {}, lost, recorder);
    REQUIRE(played.error() == "");
    return {*std::move(played), recorder.take()};
}

/// Those that computations have.
std::set<std::tuple<rank_id, activity, stage_id, std::int32_t, double, double>> computed(std::vector<trace_event> const& events)
{
    std::set<std::tuple<rank_id, activity, stage_id, std::int32_t, double, double>> all;
    for (auto const& e : events) {
        if (is_compute(static_cast<instruction_kind>(e.activity))) {
            all.insert({e.rank, e.activity, e.stage, e.item, e.start.count, e.end.count});
        }
    }
    return all;
}

}  // namespace

TEST_CASE("loss: a loss at any moment of the step, of any rank")
{
    auto const step = test::two_and_three();
    auto const whole = computed(play(step).events);
    std::set<std::size_t> finished;
    for (int victim = 0; victim < 5; ++victim) {
        for (double t = 0.25; t < 21.0; t += 0.5) {
            INFO("rank " << victim << " at " << t);
            modelled_loss const loss{rank_id{victim}, step.begin + seconds{t}};
            auto const result = play(step, {loss});
            auto const done = computed(result.events);
            // What ranks do is what they would have done, when they would have done it.
            CHECK(std::includes(whole.begin(), whole.end(), done.begin(), done.end()));
            for (auto const& e : result.events) {
                CHECK(e.start <= e.end);
                if (e.rank == loss.rank) {
                    CHECK(e.end <= loss.at);
                } else {
                    CHECK(e.start < loss.at + detection);
                }
            }
            finished.insert(done.size());
            for (auto const& row : result.played.rows) {
                // No operation is longer than 2: survivors have left by then.
                auto const left = row.rank == loss.rank ? seconds{t} : seconds{t} + detection;
                CHECK(row.end >= left);
                CHECK(row.end <= left + seconds{row.rank == loss.rank ? 0.0 : 2.0});
                CHECK(total_time(row.times).count == Approx(row.end.count));
            }
        }
    }
    CHECK(finished.size() > 10);
}

TEST_CASE("loss: survivors do not use what the lost rank had not sent")
{
    auto const step = test::two_and_three();
    modelled_loss const loss{rank_id{0}, step.begin + seconds{1.5}};  // after F0 of stage 0, in the middle of F1
    auto const result = play(step, {loss}, seconds{100.0});
    for (auto const& e : result.events) {
        if (e.rank == rank_id{1} && (e.activity == activity::forward || e.activity == activity::backward)) {
            CHECK(e.item == 0);
        }
        CHECK(e.activity != activity::await_reduction);  // rank 0 holds part of every layer that rank 1 does not, and the tied tensor
    }
}

TEST_CASE("loss: two at once stop two ranks")
{
    auto const step = test::two_and_three();
    auto const at = [&](int rank, double t) { return modelled_loss{rank_id{rank}, step.begin + seconds{t}}; };
    auto const both = play(step, {at(0, 5.0), at(3, 5.25)});
    auto const first = play(step, {at(0, 5.0)});
    std::map<rank_id, std::size_t> after_both;
    for (auto const& row : both.played.rows) {
        after_both[row.rank] = row.done;
    }
    for (auto const& row : first.played.rows) {
        CHECK(after_both.at(row.rank) <= row.done);
    }
    for (auto const& e : both.events) {
        CHECK((e.rank != rank_id{3} || e.end <= step.begin + seconds{5.25}));
    }
}
