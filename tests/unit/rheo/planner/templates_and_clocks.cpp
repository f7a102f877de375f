// SPDX-License-Identifier: Apache-2.0
// A table of what each number of survivors does: together never takes more energy than one after the other at the same
// time, is the least of all sets by enumeration, and there are cases where it is strictly less.
#include "rheo/planner/templates_and_clocks.hpp"

#include <functional>

#include "rheo/pipeline/plan_templates.hpp"
#include "rheo/schedule/families/one_f_one_b.hpp"
#include "support/catch.hpp"

using namespace rheo;

namespace {

constexpr watts blocking{80.0};

/// Seven layers at four clocks, the first and the last of another weight.
profile layers()
{
    profile measured;
    for (int layer = 0; layer < 7; ++layer) {
        double const weight = layer == 0 ? 0.4 : layer == 6 ? 1.9 : 1.0;
        for (auto const kind : {instruction_kind::forward, instruction_kind::backward}) {
            double time = weight * (kind == instruction_kind::forward ? 8.0 : 16.0);
            double energy = 0.4 * time;
            for (double clock : {1400.0, 1200.0, 1000.0, 800.0}) {
                measured.rows.push_back({rank_id{-1}, stage_id{layer}, kind, {clock}, milliseconds(time), {energy}});
                time *= 1.15;
                energy *= clock > 1000.0 ? 0.88 : 0.97;
            }
        }
    }
    return measured;
}

template_set_value templates(int from, int to) { return plan_templates(layer_times(layers()), {from, to}); }

program in_1f1b(int ranks, int microbatches) { return one_f_one_b::program({.ranks = ranks, .microbatches = microbatches}); }

auto frontiers_of(template_set_value const& ready) { return template_frontiers{ready, layers(), in_1f1b, {blocking, cost_fit::hull, milliseconds(0.01)}}; }

/// The least energy of all sets with at least so many pipelines that are done in time.
template <class ProgramOf>
double least_of_all(template_set_value const& ready, joint_request request, seconds time, template_frontiers<ProgramOf>& frontiers)
{
    double least = std::numeric_limits<double>::infinity();
    joint_choice chosen{{}, time, {}};
    std::function<void(int, int)> const go = [&](int ranks, int microbatches) {
        if (microbatches == 0 && static_cast<int>(chosen.pipelines.size()) >= request.pipelines) {
            double sum = (blocking * static_cast<double>(ranks) * time).count;
            for (auto const p : chosen.pipelines) {
                auto const& f = frontiers(p.ranks, p.microbatches);
                sum += total_energy(f, at(f, time)->cost, time).count;
            }
            least = std::min(least, sum);
        }
        for (auto const size : sizes_of(ready)) {
            for (int own = 1; own <= microbatches && size <= ranks; ++own) {
                bool const sorted =
                    chosen.pipelines.empty() || std::pair{size, own} <= std::pair{chosen.pipelines.back().ranks, chosen.pipelines.back().microbatches};
                if (sorted && fastest_time(frontiers(size, own)) <= time) {
                    chosen.pipelines.push_back({size, own});
                    go(ranks - size, microbatches - own);
                    chosen.pipelines.pop_back();
                }
            }
        }
    };
    go(request.ranks, request.microbatches);
    return least;
}

}  // namespace

TEST_CASE("templates_and_clocks: joint choice needs the least energy")
{
    int const microbatches = 12;
    auto const ready = templates(2, 5);
    auto frontiers = frontiers_of(ready);
    REQUIRE(frontiers.error().empty());
    for (int failures : {0, 1, 2}) {
        for (int ranks = 0; ranks <= 12; ++ranks) {
            CAPTURE(ranks, failures);
            instantiation_request const request{.ranks = ranks, .failures = failures, .microbatches = microbatches};
            auto const late = seconds{ranks % 2 == 0 ? 0.0 : 0.4};
            auto const row = choose_for_survivors(ready, request, blocking, frontiers, late);
            auto const plain = instantiate(ready, request);
            REQUIRE(row.apart.error() == plain.error());
            REQUIRE(row.together.error() == plain.error());
            if (!plain) {
                continue;
            }
            CHECK(spares_of(*row.apart, ranks) == plain->spares);
            CHECK(row.together->time == row.apart->time);
            CHECK(row.apart->time >= late);
            CHECK(row.together->energy <= row.apart->energy);
            joint_request const wanted{.ranks = ranks, .microbatches = microbatches, .pipelines = std::min(failures + 1, ranks / 2)};
            CHECK(static_cast<int>(row.together->pipelines.size()) >= wanted.pipelines);
            CHECK(row.together->energy.count == Approx(least_of_all(ready, wanted, row.apart->time, frontiers)).epsilon(1e-12));
            int work = 0;
            for (auto const p : row.together->pipelines) {
                work += p.microbatches;
                CHECK(fastest_time(frontiers(p.ranks, p.microbatches)) <= row.together->time);
            }
            CHECK(work == microbatches);
            CHECK(spares_of(*row.together, ranks) >= 0);
        }
    }
}

TEST_CASE("templates_and_clocks: fastest templates may cost energy")
{
    profile even;  // eight layers that are nearly alike
    for (int layer = 0; layer < 8; ++layer) {
        for (auto row : layers().rows) {
            if (row.stage == stage_id{1}) {
                row.stage = stage_id{layer};
                row.time = row.time * (1.0 + 0.01 * layer);
                even.rows.push_back(row);
            }
        }
    }
    auto const ready = plan_templates(layer_times(even), {2, 5});
    template_frontiers frontiers{ready, even, in_1f1b, {blocking, cost_fit::hull, milliseconds(0.01)}};
    int better = 0;
    for (int ranks = 4; ranks <= 16; ++ranks) {
        auto const row = choose_for_survivors(ready, {.ranks = ranks, .failures = 1, .microbatches = 12}, blocking, frontiers);
        REQUIRE(row.together);
        CHECK(row.together->energy <= row.apart->energy);
        CHECK(row.together->time == row.apart->time);
        better += row.together->energy.count < row.apart->energy.count * 0.999 ? 1 : 0;
    }
    CHECK(better > 0);
}

TEST_CASE("templates_and_clocks: several layers share one clock")
{
    auto measured = layers();
    measured.rows[1].throttled = true;  // layer 0, forward, 1200 MHz
    std::vector<layer_id> const cuts{layer_id{0}, layer_id{2}, layer_id{7}};
    auto const stages = profile_of_stages(measured, cuts);
    REQUIRE(stages);
    CHECK(stages_of(*stages) == 2);
    auto const first = options_of(*stages, rank_id{0}, stage_id{0}, instruction_kind::forward);
    REQUIRE(first.size() == 3);
    CHECK(first[0].time.count == Approx(0.0032 + 0.008));
    CHECK(first[0].energy.count == Approx(0.4 * (3.2 + 8.0)));
    CHECK(first[1].clock == megahertz{1000.0});
    auto const whole =
        profile_of_stages(layers(), std::vector{layer_id{0}, layer_id{1}, layer_id{2}, layer_id{3}, layer_id{4}, layer_id{5}, layer_id{6}, layer_id{7}});
    REQUIRE(whole);
    for (int layer = 0; layer < 7; ++layer) {
        CHECK(options_of(*whole, rank_id{0}, stage_id{layer}, instruction_kind::backward) ==
              options_of(layers(), rank_id{0}, stage_id{layer}, instruction_kind::backward));
    }
    CHECK(layer_times(layers())[6].count == Approx(1.9 * 0.024));
}

TEST_CASE("templates_and_clocks: layers without clocks; no common clock")
{
    profile measured{{{rank_id{-1}, stage_id{0}, instruction_kind::forward, {0.0}, milliseconds(1.0), {0.5}, false},
                      {rank_id{-1}, stage_id{1}, instruction_kind::forward, {1400.0}, milliseconds(2.0), {1.0}, false},
                      {rank_id{-1}, stage_id{1}, instruction_kind::forward, {900.0}, milliseconds(3.0), {0.8}, false},
                      {rank_id{-1}, stage_id{0}, instruction_kind::send_activation, {0.0}, milliseconds(0.1), {0.0}, false},
                      {rank_id{-1}, stage_id{1}, instruction_kind::send_activation, {0.0}, milliseconds(0.2), {0.0}, false},
                      {rank_id{-1}, stage_id{2}, instruction_kind::forward, {1300.0}, milliseconds(2.0), {1.0}, false}}};
    auto const joined = profile_of_stages(measured, std::vector{layer_id{0}, layer_id{2}, layer_id{3}});
    REQUIRE(joined);
    auto const options = options_of(*joined, rank_id{0}, stage_id{0}, instruction_kind::forward);
    REQUIRE(options.size() == 2);
    CHECK(options[0].time.count == Approx(0.003));
    CHECK(options[1].energy.count == Approx(1.3));
    auto const program = in_1f1b(2, 1);
    CHECK(transfer_times(*joined, program)[0].send_activation == milliseconds(0.2));
    CHECK(profile_of_stages(measured, std::vector{layer_id{0}, layer_id{1}, layer_id{3}}).error() == "stages 1 to 2 have no clock in common for forward");
    measured.rows[1].rank = rank_id{0};
    CHECK(profile_of_stages(measured, std::vector{layer_id{0}, layer_id{3}}).error() ==
          "a profile by rank serves no templates: which rank runs a stage is not known ahead of time");
    CHECK_THROWS_WITH(profile_of_stages(layers(), std::vector{layer_id{0}, layer_id{3}}),
                      "cuts of a profile must ascend from its first stage to the number of its stages");
}
