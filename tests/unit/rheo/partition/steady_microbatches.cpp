// SPDX-License-Identifier: Apache-2.0
// A step of the microbatches that steady_microbatches names holds and costs, microbatch by microbatch, what any longer step does.
#include <algorithm>
#include <string>
#include <vector>

#include "rheo/partition/split_makespan.hpp"
#include "rheo/partition/split_memory.hpp"
#include "rheo/partition/steady_microbatches.hpp"
#include "rheo/pipeline/makespan_templates.hpp"
#include "rheo/schedule/families/families.hpp"
#include "support/catch.hpp"

using namespace rheo;

namespace {

constexpr modelled_link link_of_all{{1e-9}, {1e12}};

stage_prices prices_of(int layers)
{
    std::vector<layer_profile> all;
    for (int l = 0; l < layers; ++l) {
        all.push_back({nanoseconds(1000 + 37 * (l % 5)), nanoseconds(2000 + 71 * (l % 3)), bytes{100}, bytes{1 + l % 4}, bytes{2}, {}});
    }
    return make_stage_prices(all, link_of_all);
}

constexpr int many = 100'000;

}  // namespace

TEST_CASE("steady_microbatches: a longer step holds no more")
{
    int steady_families = 0;
    for (auto const schedule : schedule_families()) {
        bool is_steady = false;
        for (int const ranks : {1, 2, 3, 4, 6}) {
            auto const steady = steady_microbatches(schedule, ranks, many);
            if (steady == many) {
                continue;
            }
            is_steady = true;
            CHECK(steady >= std::max(64, 8 * ranks));
            auto const held_of = [&](int m) {
                auto const shape = on_slices(schedule, {.ranks = ranks, .microbatches = m}, 0);
                return error_of(schedule, shape) == shape_error::none ? detail::most_held(make_program(schedule, shape)) : std::vector<bytes>{};
            };
            auto const held = held_of(steady);
            for (int m = steady; m < 6 * steady; m += 1 + steady / 5) {
                INFO(std::string{name_of(schedule)} << " of " << ranks << " ranks, " << steady << " and " << m << " microbatches");
                auto const longer = held_of(m);
                CHECK((longer.empty() || longer == held));
            }
        }
        steady_families += is_steady ? 1 : 0;
    }
    CHECK(steady_families >= 4);
    CHECK(steady_microbatches(gpipe{}, 4, many) == many);
    CHECK(steady_microbatches(one_f_one_b{}, 4, 63) == 63);
    CHECK(steady_microbatches(one_f_one_b{}, 20, many) == 160);
}

TEST_CASE("steady_microbatches: longer steps are on the line")
{
    auto const prices = prices_of(12);
    for (auto const schedule : {any_schedule{one_f_one_b{}}, any_schedule{zb_h1{}}}) {
        auto const made =
            plan_makespan_templates(prices, {.schedule = schedule, .nodes = {1, 6}, .microbatches = 1000, .most_microbatches = many, .effort = 100'000});
        for (auto const& one : made) {
            REQUIRE(one.split);
            CHECK(one.microbatches < 1000);
            for (int const m : {300, 1000, 1003}) {
                auto const p = make_program(schedule, on_slices(schedule, {.ranks = one.nodes, .microbatches = m}, 0));
                auto const real = makespan_of(prices, p, one.split->cuts, one.split->devices);
                INFO(std::string{name_of(schedule)} << " of " << one.nodes << " ranks, " << m << " microbatches");
                CHECK(std::abs(one.makespan_at(m).count - real.count) < 2e-3 * real.count);
            }
        }
    }
}

TEST_CASE("steady_microbatches: how many of thousands fit")
{
    auto const prices = prices_of(6);
    std::vector<layer_id> const cuts{layer_id{0}, layer_id{2}, layer_id{4}, layer_id{6}};
    std::vector<int> const devices(3, 1);
    auto const fitting = [&](any_schedule schedule, std::int64_t memory) {
        return microbatches_that_fit(prices, schedule, cuts, devices, 3, bytes{memory}, many);
    };
    auto const fullest = fullest_device(prices, make_program(one_f_one_b{}, {.ranks = 3, .microbatches = 500}), cuts, devices).count;
    CHECK(fitting(one_f_one_b{}, fullest) == many);
    CHECK(fitting(one_f_one_b{}, fullest - 1) < 64);
    CHECK(fitting(gpipe{}, fullest) < 64);
}
