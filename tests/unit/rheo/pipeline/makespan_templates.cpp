// SPDX-License-Identifier: Apache-2.0
// Templates of least makespan: by the compiler, with memory, with several devices per stage, and as instantiation takes them.
#include "rheo/pipeline/makespan_templates.hpp"
#include "rheo/schedule/families/gpipe.hpp"
#include "rheo/schedule/families/one_f_one_b.hpp"

#include "rheo/model/gpt.hpp"
#include "rheo/pipeline/covers.hpp"
#include "rheo/pipeline/instantiate.hpp"
#include "support/catch.hpp"

using namespace rheo;

namespace {

constexpr cluster_description machine{1, {{1e9}, {1e9}, mebibytes(1)}, {{1e-6}, {1e9}}, {{1e-6}, {1e9}}};
constexpr gpt_shape tiny{.vocabulary = 16, .context = 8, .width = 8, .heads = 2, .blocks = 4};

constexpr std::vector<makespan_template> planned(int from, int to, std::optional<bytes> memory, any_schedule schedule = one_f_one_b{})
{
    auto const layers = profile_of(gpt_model(tiny), {1, 8}, machine);
    return plan_makespan_templates(make_stage_prices(layers, machine.between_nodes),
                                   {.schedule = schedule, .nodes = {from, to}, .microbatches = 4, .most_microbatches = 8, .device_memory = memory});
}

/// The compiler plans a set of templates from the model's operations, and proves what it covers.
constexpr bool planned_by_the_compiler()
{
    auto const made = planned(2, 4, {});
    auto const ready = to_template_set(made);
    return ready.templates.size() == 3 && made[0].split->is_optimal() && static_cast<bool>(covers(ready, {.from = 4, .to = 16, .failures = 1}));
}
static_assert(planned_by_the_compiler());

}  // namespace

TEST_CASE("makespan_templates: cost is the makespan, steady growth")
{
    auto const layers = profile_of(gpt_model(tiny), {1, 8}, machine);
    auto const prices = make_stage_prices(layers, {seconds{0.0}, {1e18}});
    auto const made = plan_makespan_templates(prices, {.schedule = one_f_one_b{}, .nodes = {1, 6}, .microbatches = 16, .most_microbatches = 64});
    REQUIRE(made.size() == 6);
    for (auto const& one : made) {
        REQUIRE(one.split);
        CHECK(time_of(one.cost, 16) == one.split->makespan);
        std::int64_t slowest = 0;
        for (int s = 0; s < one.nodes; ++s) {
            slowest = std::max(slowest, prices.time(layers_of(one.split->cuts, stage_id{s}), 1));
        }
        CHECK(in_whole_nanoseconds(one.cost.per_microbatch) == slowest);
        auto const p = make_program(one_f_one_b{}, {.ranks = one.nodes, .microbatches = 40});
        CHECK(time_of(one.cost, 40) == makespan_of(prices, p, one.split->cuts, one.split->devices));
    }
    auto const chosen = instantiate(to_template_set(made), {.ranks = 7, .failures = 1, .microbatches = 32});
    CHECK(chosen);
    CHECK(chosen->spares == 0);
}

TEST_CASE("makespan_templates: memory limits the microbatches")
{
    auto const roomy = planned(1, 3, gibibytes(1), gpipe{});
    for (auto const& one : roomy) {
        CHECK(one.most_microbatches == 8);
        CHECK(one.cost.most_microbatches == std::numeric_limits<int>::max());  // no step has more
    }
    bytes const enough = roomy[2].fullest;
    auto const tight = planned(1, 3, enough, gpipe{});
    CHECK_FALSE(tight[0].split);
    CHECK(tight[0].split.error() == "no cuts found whose stages fit into the memory of their devices");
    REQUIRE(tight[2].split);
    CHECK(tight[2].fullest <= enough);
    CHECK(tight[2].most_microbatches >= 4);
    CHECK(tight[2].most_microbatches < 8);
    CHECK(tight[2].cost.most_microbatches == tight[2].most_microbatches);
    CHECK(planned(3, 3, enough, one_f_one_b{})[0].most_microbatches == 8);  // three in flight at most
}

TEST_CASE("makespan_templates: recomputation makes templates fit")
{
    auto const layers = profile_of(gpt_model(tiny), {1, 8}, machine);
    auto const prices = make_stage_prices(layers, machine.between_nodes);
    auto const least = [&](bool recompute) {  // bytes, found by bisection
        std::int64_t no = 0;
        std::int64_t yes = gibibytes(1).count;
        auto const fits = [&](std::int64_t memory) {
            return static_cast<bool>(plan_makespan_templates(prices, {.schedule = gpipe{},
                                                                      .nodes = {3, 3},
                                                                      .microbatches = 4,
                                                                      .most_microbatches = 8,
                                                                      .device_memory = bytes{memory},
                                                                      .recompute = recompute})[0]
                                         .split);
        };
        while (yes - no > 1) {
            auto const middle = no + (yes - no) / 2;
            (fits(middle) ? yes : no) = middle;
        }
        return bytes{yes};
    };
    auto const kept = least(false);
    auto const again = least(true);
    CHECK(again < kept);
    for (auto const memory : {again, bytes{(again.count + kept.count) / 2}, kept}) {
        auto const made = plan_makespan_templates(
            prices, {.schedule = gpipe{}, .nodes = {3, 3}, .microbatches = 4, .most_microbatches = 8, .device_memory = memory, .recompute = true})[0];
        REQUIRE(made.split);
        CHECK(made.fullest <= memory);
        int most = 0;
        for (int m = 1; m <= 8; ++m) {
            auto const p = make_program(gpipe{}, {.ranks = 3, .microbatches = m});
            if (fullest_device(prices, with_recomputation(p), made.split->cuts, made.split->devices) <= memory ||
                fullest_device(prices, p, made.split->cuts, made.split->devices) <= memory) {
                most = m;
            }
        }
        CHECK(most >= 4);
        CHECK(made.most_microbatches == most);
    }
    auto const refused = plan_makespan_templates(
        prices,
        {.schedule = gpipe{}, .nodes = {3, 3}, .microbatches = 4, .most_microbatches = 8, .device_memory = bytes{again.count - 1}, .recompute = true})[0];
    CHECK(refused.split.error() == "no cuts found whose stages fit into the memory of their devices, not even when all activations are recomputed");
}

TEST_CASE("makespan_templates: multi-device stages are priced only")
{
    auto on = machine;
    on.devices_per_node = 4;
    on.in_node = {{1e-9}, {1e12}};
    auto const model = gpt_model({.vocabulary = 512, .context = 8, .width = 16, .heads = 2, .blocks = 2});
    auto const prices = make_stage_prices(profile_of(model, {1, 8}, on), on.between_nodes, 4);
    auto const made = plan_makespan_templates(prices, {.schedule = one_f_one_b{}, .nodes = {1, 2}, .microbatches = 4, .most_microbatches = 8});
    REQUIRE(made[0].split);
    int devices = 0;
    for (auto const d : made[0].split->devices) {
        devices += d;
    }
    CHECK(devices == 4);
    CHECK(made[0].split->devices.size() < 4);  // the classifier is most of the work
    CHECK(to_template_set(made).templates.empty());
}
