// SPDX-License-Identifier: Apache-2.0
// A user's own layer is a type with a description, nothing else; names of parameters follow from the layer's place.
#include "rheo/model/layer.hpp"

#include "support/catch.hpp"

using namespace rheo;

namespace {

struct mine {
    static constexpr layer_description describe()
    {
        layer_description layer{.name = "mine", .prefix = "mine.#.", .in_width = 8, .out_width = 8};
        auto const x = add_slot(layer, 8);
        auto const y = add_slot(layer, 8);
        auto const weight = add_parameter(layer, {"scale", {1, 8}, {1, 0}, false});
        auto const bias = add_parameter(layer, {"shift", {1, 8}, {0, 0}, false});
        add_op(layer, {.kind = op_kind::layer_norm, .x = {x, no_slot}, .z = {y, no_slot}, .parameters = {weight, bias}, .in_width = 8, .out_width = 8});
        add_op(layer, {.kind = op_kind::gelu, .x = {y, no_slot}, .in_width = 8, .out_width = 8});
        layer.output = y;
        return layer;
    }
};

struct nothing {};
struct other_answer {
    static constexpr int describe() { return 0; }
};

static_assert(layer<mine> && !layer<nothing> && !layer<other_answer> && !layer<int>);
static_assert(mine::describe().ops[0].id == op_id{0} && mine::describe().ops[1].id == op_id{1});
static_assert(mine::describe().slot_widths.size() == 2 && mine::describe().parameters.size() == 2 && mine::describe().ops[0].parameters[1] == 1);
static_assert(mine::describe() == mine::describe());
static_assert([] {
    auto other = mine::describe();
    other.parameters[0].decays = true;
    return !(other == mine::describe());
}());

}  // namespace

TEST_CASE("layer: parameter names have prefix and ordinal")
{
    auto layer = mine::describe();
    CHECK(full_name(layer, layer.parameters[0]) == "mine.0.scale");
    layer.ordinal = 11;
    CHECK(full_name(layer, layer.parameters[1]) == "mine.11.shift");
    layer.prefix = "";
    CHECK(full_name(layer, layer.parameters[1]) == "shift");
}
