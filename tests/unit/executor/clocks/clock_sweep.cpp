// SPDX-License-Identifier: Apache-2.0
// A sweep of clocks: from the top, so many steps each, until the energy has risen five times; what stages took comes back by layer.
#include "executor/clocks/clock_sweep.hpp"

#include "rheo/energy/profile/stage_profile.hpp"
#include "support/catch.hpp"

using namespace rheo;

namespace {

/// How many clocks a sweep tries where the energy at the k-th is energies[k].
int tried(std::vector<double> const& energies, int settle = 1, int measure = 3)
{
    clock_sweep sweep{{settle, measure, 5}};
    int steps = 0;
    for (; !sweep.ended(); ++steps) {
        CHECK(sweep.measures() == (steps % (settle + measure) >= settle));
        sweep.committed({sweep.measures() ? energies[sweep.place()] : 1e6}, energies.size());  // what is not counted does not count
    }
    CHECK(steps % (settle + measure) == 0);
    return steps / (settle + measure);
}

}  // namespace

TEST_CASE("clock_sweep: stops after energy rises five times")
{
    CHECK(tried({9, 8, 7, 6, 5, 4, 3, 2, 1}) == 9);
    CHECK(tried({9, 8, 7, 8, 9, 10, 11, 12, 13, 14}) == 8);
    CHECK(tried({9, 8, 9, 10, 11, 12, 11.5, 12, 13}) == 9);
    CHECK(tried({1, 2, 3, 4, 5, 6, 7, 8}) == 6);
    CHECK(tried({4}) == 1);
    CHECK(tried({5, 4, 3}, 0, 1) == 3);
}

TEST_CASE("clock_sweep: stage measurements give a layer profile")
{
    std::vector<layer_id> const two{layer_id{0}, layer_id{2}, layer_id{5}};
    std::vector<layer_id> const one{layer_id{0}, layer_id{5}};
    std::vector<seconds> const modelled{{1.0}, {2.0}, {3.0}, {1.0}, {1.0}};
    sweep_rows here;
    sweep_rows there;
    for (double const clock : {1400.0, 1000.0}) {
        auto const slower = 1400.0 / clock;
        here.take({clock}, {{{0, instruction_kind::forward}, {4, {4 * 0.3 * slower}, {4 * 30 / slower}}}}, two, modelled);
        there.take({clock}, {{{1, instruction_kind::forward}, {2, {2 * 0.5 * slower}, {2 * 50 / slower}}}}, two, modelled);
    }
    here.waited({2.0}, {160.0});
    here.waited({1.0}, {-3.0});  // a device that tells nothing
    there.waited({1.0}, {110.0});
    sweep_rows all;
    all.add(here.words());
    all.add(there.words());
    auto const layers = all.rows();
    CHECK(layers.rows.size() == 10);
    CHECK(all.blocking().count == Approx(90.0));
    CHECK(layers.blocking == all.blocking());
    CHECK(layers.rows.front().clock == megahertz{1400.0});
    auto const stages = profile_of_stages(layers, two);
    REQUIRE(stages);
    for (int s : {0, 1}) {
        auto const options = options_of(*stages, rank_id{-1}, stage_id{s}, instruction_kind::forward);
        REQUIRE(options.size() == 2);
        CHECK(options[0].time.count == Approx(s == 0 ? 0.3 : 0.5));
        CHECK(options[0].energy.count == Approx(s == 0 ? 30 : 50));
        CHECK(options[1].time.count == Approx((s == 0 ? 0.3 : 0.5) * 1.4));
    }
    // The same layers on another rank, twice as slow: the mean counts.
    all.take({1400.0}, {{{0, instruction_kind::forward}, {4, {4 * 1.6}, {4 * 80.0}}}}, one, modelled);
    CHECK(options_of(*profile_of_stages(all.rows(), one), rank_id{-1}, stage_id{0}, instruction_kind::forward).front().time.count > 0.8);
    CHECK(sweep_rows{}.rows().rows.empty());
}

TEST_CASE("clock_sweep: throttled samples count only as a fallback")
{
    std::vector<layer_id> const one{layer_id{0}, layer_id{1}};
    std::vector<seconds> const modelled{{1.0}};
    std::pair<int, instruction_kind> const what{0, instruction_kind::forward};
    sweep_rows here;
    sweep_rows there;
    here.take({1400.0}, {{what, {2, {6.0}, {60.0}}}}, one, modelled, true);
    there.take({1400.0}, {{what, {2, {2.0}, {100.0}}}}, one, modelled, false);
    here.take({1200.0}, {{what, {2, {2.2}, {90.0}}}}, one, modelled, false);
    here.take({1000.0}, {{what, {2, {9.0}, {50.0}}}}, one, modelled, true);
    sweep_rows all;
    all.add(here.words());
    all.add(there.words());
    auto const rows = all.rows().rows;
    REQUIRE(rows.size() == 3);
    CHECK(rows[0].time.count == Approx(1.0));  // the throttled rank's is left out
    CHECK_FALSE(rows[0].throttled);
    CHECK_FALSE(rows[1].throttled);
    CHECK(rows[2].throttled);
    CHECK(options_of(all.rows(), rank_id{-1}, stage_id{0}, instruction_kind::forward).size() == 2);
}
