// SPDX-License-Identifier: Apache-2.0
// Replays that skip what repeats against the timeline, which looks at every instruction.
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "rheo/partition/detail/replay.hpp"
#include "rheo/schedule/check/timeline.hpp"
#include "rheo/schedule/families/families.hpp"
#include "rheo/schedule/transform/slices.hpp"
#include "support/catch.hpp"

using namespace rheo;

namespace {

using stages = std::vector<detail::stage_times>;

/// The schedule's own makespan, in whole nanoseconds.
std::int64_t by_timeline(program const& p, stages const& times)
{
    stage_costs costs;
    auto const count = [](std::int64_t time) { return seconds{static_cast<double>(time)}; };
    for (std::size_t s = 0; s < p.placement.size(); ++s) {
        auto const& t = times[s % times.size()];
        costs.push_back(
            {count(t.forward), count(t.backward), count(t.backward / 2), count(t.backward - t.backward / 2), count(t.send_activation), count(t.send_gradient)});
    }
    return static_cast<std::int64_t>(makespan(p, costs).count);
}

stages random_times(int count, std::mt19937& random, int most)
{
    stages times;
    std::uniform_int_distribution<std::int64_t> compute{1, most};
    std::uniform_int_distribution<std::int64_t> send{0, most / 8};
    for (int s = 0; s < count; ++s) {
        times.push_back({compute(random), compute(random), send(random), send(random)});
    }
    return times;
}

}  // namespace

TEST_CASE("replay: what it skips takes as long as in the timeline")
{
    std::mt19937 random{1};
    int with_cycles = 0;
    for (auto const schedule : schedule_families()) {
        for (int const ranks : {1, 2, 3, 4, 6}) {
            for (int const microbatches : {1, 7, 24, 96, 130}) {
                auto const shape = on_slices(schedule, {.ranks = ranks, .microbatches = microbatches}, 0);
                if (error_of(schedule, shape) != shape_error::none) {
                    continue;
                }
                auto const p = make_program(schedule, shape);
                detail::replay replayed{p};
                with_cycles += replayed.cycle().blocks > 0 ? 1 : 0;
                for (int const most : {3, 40, 1000}) {
                    for (int i = 0; i < 3; ++i) {
                        auto const times = random_times(stages_per_copy(p), random, most);
                        INFO(std::string{name_of(schedule)} << " of " << ranks << " ranks, " << microbatches << " microbatches, times up to " << most);
                        REQUIRE(replayed(times) == by_timeline(p, times));
                    }
                }
            }
        }
    }
    CHECK(with_cycles > 100);
}

TEST_CASE("replay: equal and nearly equal stages, and one that is idle")
{
    auto const p = make_program(one_f_one_b{}, {.ranks = 5, .microbatches = 400});
    detail::replay replayed{p};
    CHECK(replayed.cycle().blocks > 350);
    for (std::int64_t const odd : {0, 9, 10, 11, 100}) {
        for (std::size_t where = 0; where < 5; ++where) {
            stages times(5, {10, 20, 1, 1});
            times[where] = {odd, 2 * odd, 1, 3};
            CHECK(replayed(times) == by_timeline(p, times));
        }
    }
}

TEST_CASE("replay: a row that runs ahead of the others is followed")
{
    auto const p = make_program(gpipe{}, {.ranks = 4, .microbatches = 100});
    detail::replay replayed{p};
    for (auto const& times : {stages{{1, 9, 0, 0}, {2, 8, 0, 0}, {3, 7, 0, 0}, {4, 6, 0, 0}}, stages{{4, 6, 1, 1}, {3, 7, 1, 1}, {2, 8, 1, 1}, {1, 9, 1, 1}}}) {
        CHECK(replayed(times) == by_timeline(p, times));
    }
}

TEST_CASE("replay: inputs from several blocks before")
{
    std::mt19937 random{3};
    std::size_t longest = 0;
    for (auto const schedule : schedule_families()) {
        for (int const ranks : {3, 5, 6, 8}) {
            auto const shape = on_slices(schedule, {.ranks = ranks, .microbatches = 96}, 0);
            if (error_of(schedule, shape) != shape_error::none) {
                continue;
            }
            auto const p = make_program(schedule, shape);
            detail::replay replayed{p};
            longest = std::max(longest, replayed.cycle().lookback);
            for (int i = 0; replayed.cycle().lookback > 1 && i < 300; ++i) {
                stages times(static_cast<std::size_t>(stages_per_copy(p)));
                for (auto& t : times) {  // long messages, so that rows run apart for some blocks before one waits for another
                    t = {1 + static_cast<std::int64_t>(random() % 3), 2 + static_cast<std::int64_t>(random() % 3), static_cast<std::int64_t>(random() % 20),
                         static_cast<std::int64_t>(random() % 20)};
                }
                INFO(std::string{name_of(schedule)} << " of " << ranks << " ranks, case " << i);
                REQUIRE(replayed(times) == by_timeline(p, times));
            }
        }
    }
    CHECK(longest > 1);
}
