// SPDX-License-Identifier: Apache-2.0
// A layer whose slot 0 is not as wide as what it takes.
// expect: rheo: an operation does not fit the slots and parameters that its layer declares
// expect: slot 0 is 64 columns wide, but the layer takes 32
#include "rheo/model/model.hpp"

using namespace rheo;

struct feed_forward {
    static constexpr layer_description describe()
    {
        layer_description layer{.name = "feed forward", .prefix = "f.#.", .in_width = 32, .out_width = 32};
#ifdef RHEO_MISTAKE
        auto const x = add_slot(layer, 64);
#else
        auto const x = add_slot(layer, 32);
#endif
        auto const up = add_slot(layer, 64);
        auto const active = add_slot(layer, 64);
        auto const down = add_slot(layer, 32);
        layer.output = down;
        auto const w1 = add_parameter(layer, {"up.weight", {32, 64}, {0, 0.02}, true});
        auto const w2 = add_parameter(layer, {"down.weight", {64, 32}, {0, 0.02}, true});
        add_op(layer, {.kind = op_kind::linear, .x = {x, no_slot}, .z = {up, no_slot}, .parameters = {w1, no_parameter}, .in_width = 32, .out_width = 64});
        add_op(layer, {.kind = op_kind::gelu, .x = {up, no_slot}, .z = {active, no_slot}, .in_width = 64, .out_width = 64});
        add_op(layer,
               {.kind = op_kind::linear, .x = {active, no_slot}, .z = {down, no_slot}, .parameters = {w2, no_parameter}, .in_width = 64, .out_width = 32});
        return layer;
    }
};

constexpr gpt_shape s{.width = 32};
static_assert(describe<model<embedding<s>, feed_forward, classifier<s>>>().layers.size() == 3);
