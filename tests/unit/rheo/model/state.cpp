// SPDX-License-Identifier: Apache-2.0
// From a model to its state: tensors and uses refer to each other, tied tensors are one, fusing changes nothing.
#include "rheo/model/state.hpp"

#include <algorithm>
#include <set>

#include "support/catch.hpp"
#include "well_formed.hpp"

using namespace rheo;
using test::small;

namespace {

gpt_shape variant(bool tied, int blocks)
{
    auto shape = small;
    shape.tied = tied;
    shape.blocks = blocks;
    return shape;
}

void check_references(collection const& state)
{
    std::set<std::string> names;
    for (std::size_t t = 0; t < state.tensors.size(); ++t) {
        auto const& tensor = state.tensors[t];
        REQUIRE(names.insert(tensor.name).second);
        REQUIRE_FALSE(tensor.uses.empty());
        REQUIRE(std::is_sorted(tensor.uses.begin(), tensor.uses.end()));
        REQUIRE(std::is_sorted(tensor.layers.begin(), tensor.layers.end()));
        REQUIRE(std::adjacent_find(tensor.layers.begin(), tensor.layers.end()) == tensor.layers.end());
        std::set<layer_id> layers;
        for (auto const use : tensor.uses) {
            REQUIRE(state.uses[at(use)].tensor.value == static_cast<int>(t));
            layers.insert(state.uses[at(use)].layer);
        }
        REQUIRE(std::vector(layers.begin(), layers.end()) == tensor.layers);
    }
    std::size_t uses = 0;
    for (auto const& tensor : state.tensors) {
        uses += tensor.uses.size();
    }
    REQUIRE(uses == state.uses.size());
    for (std::size_t u = 1; u < state.uses.size(); ++u) {
        REQUIRE(state.uses[u - 1].layer <= state.uses[u].layer);
    }
}

}  // namespace

TEST_CASE("state: tensors and uses match; the loss is last")
{
    for (int const blocks : {0, 1, 3}) {
        for (bool const tied : {true, false}) {
            auto const model = gpt_model(variant(tied, blocks));
            auto const state = state_of(model);
            check_references(state);
            CHECK(state.tensors.size() == static_cast<std::size_t>(5 + 12 * blocks + (tied ? 0 : 1)));
            CHECK(state.uses.size() == static_cast<std::size_t>(6 + 12 * blocks));
            auto const& loss = state.tensors.back();
            CHECK(loss.name == loss_name);
            CHECK(loss.shape == tensor_shape{1, 2});
            CHECK_FALSE(loss.is_parameter);
            CHECK(state.uses.back() == use_info{tensor_id{static_cast<int>(state.tensors.size()) - 1}, layer_id{blocks + 1}, no_parameter});
            CHECK(std::count_if(state.tensors.begin(), state.tensors.end(), [](auto const& t) { return !t.is_parameter; }) == 1);
            CHECK(state_of(fused(model)) == state);
        }
    }
}

TEST_CASE("state: tied table: one tensor, two uses")
{
    auto const tied = state_of(gpt_model(variant(true, 2)));
    CHECK(tied.tensors[0].name == "wte.weight");
    CHECK(tied.tensors[0].layers == std::vector{layer_id{0}, layer_id{3}});
    CHECK(tied.tensors[0].uses.size() == 2);
    auto const untied = state_of(gpt_model(variant(false, 2)));
    CHECK(untied.tensors[0].layers == std::vector{layer_id{0}});
    CHECK(std::any_of(untied.tensors.begin(), untied.tensors.end(), [](auto const& t) { return t.name == "lm_head.weight"; }));
}

TEST_CASE("state: span holders hold exactly its tensors")
{
    auto const state = state_of(gpt_model(variant(true, 2)));
    for (int first = 0; first <= 4; ++first) {
        for (int last = first; last <= 4; ++last) {
            std::set<tensor_id> expected;
            for (auto const& use : state.uses) {
                if (use.layer.value >= first && use.layer.value < last) {
                    expected.insert(use.tensor);
                }
            }
            CHECK(tensors_of(state, layer_id{first}, layer_id{last}) == std::vector(expected.begin(), expected.end()));
        }
    }
}

TEST_CASE("state: the same name with two shapes is refused")
{
    auto model = gpt_model(variant(true, 1));
    model.layers.back().parameters[2].shape.rows = 17;
    CHECK_THROWS_WITH(state_of(model), Catch::Matchers::ContainsSubstring("different shapes"));
}

TEST_CASE("state: two uses in a layer share one tensor")
{
    layer_description layer{.name = "twice", .prefix = "", .in_width = 8, .out_width = 8};
    auto const x = add_slot(layer, 8);
    auto const y = add_slot(layer, 8);
    auto const z = add_slot(layer, 8);
    auto const w = add_parameter(layer, {"shared", {8, 8}, {0, 0.02}, true});
    add_op(layer, {.kind = op_kind::linear, .x = {x, no_slot}, .z = {y, no_slot}, .parameters = {w, no_parameter}, .in_width = 8, .out_width = 8});
    add_op(layer, {.kind = op_kind::linear, .x = {y, no_slot}, .z = {z, no_slot}, .parameters = {w, no_parameter}, .in_width = 8, .out_width = 8});
    layer.output = z;
    auto const state = state_of({{layer}});
    check_references(state);
    REQUIRE(state.tensors.size() == 1);
    CHECK(state.tensors[0].layers == std::vector{layer_id{0}});
    CHECK(state.tensors[0].uses.size() == 2);
}
