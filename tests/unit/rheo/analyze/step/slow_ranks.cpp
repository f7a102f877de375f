// SPDX-License-Identifier: Apache-2.0
// Slow ranks among stages of different layers: named where one is slow, and nobody where none is.
#include <random>
#include <vector>

#include "rehearsed.hpp"
#include "rheo/analyze/step/slow_ranks.hpp"
#include "rheo/schedule/families/one_f_one_b.hpp"
#include "support/catch.hpp"

using namespace rheo;

namespace {

/// Pipelines of an embedding, blocks and a head, cut anywhere; times with a little noise.
std::vector<rank_load> drawn_loads(std::mt19937& draw, int pipelines, int blocks, double noise)
{
    double const kinds[] = {0.2, 1.0, 0.6};
    std::vector<rank_load> loads;
    for (int p = 0; p < pipelines; ++p) {
        auto const stages = 2 + static_cast<int>(draw() % 3);
        std::vector<std::vector<double>> counts(static_cast<std::size_t>(stages), std::vector<double>(3, 0.0));
        counts.front()[0] = 1.0;
        counts.back()[2] = 1.0;
        for (int b = 0; b < blocks; ++b) {
            counts[b < stages ? static_cast<std::size_t>(b) : draw() % static_cast<unsigned>(stages)][1] += 1.0;
        }
        for (auto const& layers : counts) {
            rank_load load{rank_id{static_cast<int>(loads.size())}, layers, {}};
            for (std::size_t k = 0; k < 3; ++k) {
                load.time += seconds{kinds[k] * layers[k]};
            }
            load.time = load.time * std::uniform_real_distribution<double>{1.0 - noise, 1.0 + noise}(draw);
            loads.push_back(load);
        }
    }
    return loads;
}

std::vector<rank_pace> slow_among(std::vector<rank_load> const& loads)
{
    auto const paces = paces_of(loads, layer_times_of(loads));
    return slow_ranks(paces);
}

}  // namespace

TEST_CASE("slow_ranks: nobody is slow where times are those of layers")
{
    std::mt19937 draw{2};
    for (int round = 0; round < 300; ++round) {
        auto const loads = drawn_loads(draw, 1 + round % 6, 8, 0.02);
        CHECK(slow_among(loads).empty());
    }
}

TEST_CASE("slow_ranks: one that takes 1.3 times as long is named")
{
    std::mt19937 draw{3};
    for (int round = 0; round < 300; ++round) {
        auto loads = drawn_loads(draw, 3 + round % 5, 8, 0.02);
        auto& slow = loads[draw() % loads.size()];
        slow.time = slow.time * 1.3;
        auto const found = slow_among(loads);
        INFO("round " << round);
        REQUIRE(found.size() == 1);
        CHECK(found.front().rank == slow.rank);
        CHECK(slowness(found.front()) == Approx(1.3).epsilon(0.08));
    }
}

TEST_CASE("slow_ranks: of two replicas the quicker one is the measure")
{
    std::vector<rank_load> const loads{{rank_id{0}, {1.0, 2.0, 0.0}, {2.2}},
                                       {rank_id{1}, {0.0, 2.0, 1.0}, {3.38}},
                                       {rank_id{2}, {1.0, 2.0, 0.0}, {2.2}},
                                       {rank_id{3}, {0.0, 2.0, 1.0}, {2.6}}};
    auto const found = slow_among(loads);
    REQUIRE(found.size() == 1);
    CHECK(found.front().rank == rank_id{1});
    CHECK(slowness(found.front()) == Approx(1.3));
}

TEST_CASE("slow_ranks: nothing is expected of more kinds than six")
{
    std::vector<rank_load> const loads{{rank_id{0}, std::vector<double>(7, 1.0), {1.0}}};
    CHECK(layer_times_of(loads).empty());
    auto const paces = paces_of(loads, layer_times_of(loads));
    CHECK(slowness(paces.front()) == 1.0);
    CHECK(layer_times_of(array_view<rank_load const>{}).empty());
}

TEST_CASE("slow_ranks: loads are read off the records")
{
    std::mt19937 draw{6};
    auto step = test::drawn_step(draw, one_f_one_b{}, 2, 2, 4);
    for (auto& pipeline : step.pipelines) {
        pipeline.costs[0] = {{1.0}, {2.0}, {1.0}, {1.0}, {0.1}, {0.1}};
        pipeline.costs[1] = {{3.0}, {6.0}, {3.0}, {3.0}, {0.1}, {0.1}};
    }
    auto const events = test::by_rank(rehearse_step(step).events);
    auto const run = recorded_steps(array_view<trace_event const>{events});
    auto const loads = loads_of(run.steps, generation_id{0}, std::vector{0, 1});
    REQUIRE(loads.size() == 4);
    for (std::size_t r = 0; r < 4; ++r) {
        CHECK(loads[r].rank == rank_id{static_cast<int>(r)});
        CHECK(loads[r].layers == (r % 2 == 0 ? std::vector{1.0, 0.0} : std::vector{0.0, 1.0}));
        CHECK(loads[r].time.count == Approx(r % 2 == 0 ? 3.0 : 9.0));
    }
}
