// SPDX-License-Identifier: Apache-2.0
// Every parameter is summed in exactly one unit, by exactly the stages that hold it.
#include "rheo/plan/reduction_units.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "examples.hpp"
#include "rheo/model/grid.hpp"
#include "rheo/model/state.hpp"
#include "support/catch.hpp"

using namespace rheo;

namespace {

collection state_of_gpt(bool tied, int blocks)
{
    return state_of(gpt_model({.vocabulary = 16, .context = 8, .width = 8, .heads = 2, .blocks = blocks, .tied = tied}));
}

}  // namespace

TEST_CASE("reduction_units: each parameter once, never the loss")
{
    for (bool const tied : {true, false}) {
        auto const state = state_of_gpt(tied, 3);
        auto const units = reduction_units(state, 5);
        CHECK(units.size() == (tied ? 6U : 5U));
        std::map<tensor_id, int> times;
        for (std::size_t u = 0; u < units.size(); ++u) {
            CHECK(std::is_sorted(units[u].tensors.begin(), units[u].tensors.end()));
            for (auto const t : units[u].tensors) {
                ++times[t];
                CHECK(state.tensors[at(t)].layers == units[u].layers);  // the holders of the tensor take part, and no others
            }
            if (u < 5) {
                CHECK(units[u].layers == std::vector{layer_id{static_cast<int>(u)}});
            } else {
                CHECK(units[u].layers.size() > 1);
            }
        }
        for (std::size_t t = 0; t < state.tensors.size(); ++t) {
            CHECK(times[tensor_id{static_cast<int>(t)}] == (state.tensors[t].is_parameter ? 1 : 0));
        }
    }
}

TEST_CASE("reduction_units: a stage joins the units of its layers")
{
    std::mt19937 draw{8};
    auto const state = state_of_gpt(true, 4);
    auto const units = reduction_units(state, 6);
    for (int round = 0; round < 100; ++round) {
        auto const cuts = test::random_cuts(draw, 6, 1 + static_cast<int>(draw() % 6));
        auto const by_stage = units_of_stages(units, cuts);
        REQUIRE(by_stage.size() == cuts.size() - 1);
        for (std::size_t s = 0; s < by_stage.size(); ++s) {
            REQUIRE(std::is_sorted(by_stage[s].begin(), by_stage[s].end()));
            std::set<tensor_id> summed;
            for (auto const u : by_stage[s]) {
                summed.insert(units[at(u)].tensors.begin(), units[at(u)].tensors.end());
            }
            auto const held = tensors_of(state, cuts[s], cuts[s + 1]);
            std::set<tensor_id> parameters;
            for (auto const t : held) {
                if (state.tensors[at(t)].is_parameter) {
                    parameters.insert(t);
                }
            }
            REQUIRE(summed == parameters);
        }
    }
}

TEST_CASE("reduction_units: a tied-only layer has an empty unit")
{
    collection const state{{{"table", {4, 2}, {}, true, true, {layer_id{0}, layer_id{1}}, {use_id{0}, use_id{1}}}},
                           {{tensor_id{0}, layer_id{0}, 0}, {tensor_id{0}, layer_id{1}, 0}}};
    auto const units = reduction_units(state, 2);
    REQUIRE(units.size() == 3);
    CHECK(units[0].tensors.empty());
    CHECK(units[2] == reduction_unit{{tensor_id{0}}, {layer_id{0}, layer_id{1}}});
    CHECK(units_of_stages(units, {layer_id{0}, layer_id{1}, layer_id{2}}) == units_by_stage{{reduction_id{2}}, {reduction_id{2}}});
    CHECK(units_of_stages(units, {layer_id{0}, layer_id{2}}) == units_by_stage{{reduction_id{2}}});
}

TEST_CASE("reduction_units: parts of a tied parameter are one unit")
{
    auto const model = on_grid(gpt_model({.vocabulary = 83, .context = 8, .width = 64, .heads = 4, .blocks = 2, .tied = true}), 4);
    auto const state = state_of(model);
    auto const units = reduction_units(state, 4);
    REQUIRE(units.size() == 5);
    REQUIRE(units[4].tensors.size() == 4);
    for (auto const t : units[4].tensors) {
        CHECK(parameter_name(state.tensors[at(t)]) == "wte.weight");
        CHECK(state.tensors[at(t)].layers == units[4].layers);
    }
}
