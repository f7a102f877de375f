// SPDX-License-Identifier: Apache-2.0
// Templates as types and as planned values.
#include "rheo/partition/stage_memory.hpp"
#include "rheo/pipeline/plan_templates.hpp"
#include "support/catch.hpp"
#include "two_and_four_stages.hpp"

using namespace rheo;

namespace {

using namespace test;
constexpr seconds times[] = {{1.0}, {2.0}, {2.0}, {3.0}};

static_assert(two::size == 2 && size(two::describe(times)) == 2);
static_assert(two::describe(times).cost == pipeline_cost{seconds{3.0}, seconds{5.0}});
static_assert(two::describe(times) == plan_templates(times, {2, 2}).templates.front());
static_assert(template_set<two, four>::sizes[1] == 4);
static_assert(template_set<two, four>::describe(times).templates.size() == 2);
static_assert(sizes_of(plan_templates(times, {2, 64})) == std::vector<int>{2, 3, 4});
static_assert(plan_templates(times, {5, 6}).templates.empty());
static_assert(time_of(pipeline_cost{seconds{3.0}, seconds{5.0}}, 0) == seconds{0});
static_assert(time_of(pipeline_cost{seconds{3.0}, seconds{5.0}}, 2) == seconds{13.0});

}  // namespace

TEST_CASE("template: sizes without memory for the model are not planned")
{
    std::vector<layer_memory> const memory(4, layer_memory{{10}, {1}});
    auto const fits = stage_memory_limit(memory, in_flight_one_f_one_b(4), bytes{23});
    CHECK(sizes_of(plan_templates(times, {1, 4}, fits)) == std::vector<int>{3, 4});  // two stages would need 20 + 2 * 2 first
}

TEST_CASE("template: a larger template is never slower")
{
    std::vector<seconds> layers;
    for (int l = 0; l < 30; ++l) {
        layers.push_back(microseconds(100 + 37 * (l * l % 11)));
    }
    auto const ready = plan_templates(layers, {1, 30});
    for (std::size_t i = 1; i < ready.templates.size(); ++i) {
        CHECK(time_of(ready.templates[i].cost, 17) <= time_of(ready.templates[i - 1].cost, 17));
    }
}

TEST_CASE("template: cuts that are not the model's are refused")
{
    CHECK_THROWS_AS(make_template({layer_id{0}, layer_id{3}}, times), precondition_error);
    CHECK_THROWS_AS(plan_templates(times, {0, 3}), precondition_error);
}
