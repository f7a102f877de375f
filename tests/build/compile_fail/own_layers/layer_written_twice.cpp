// SPDX-License-Identifier: Apache-2.0
// A slot that is written twice to save memory.
// expect: rheo: an operation does not fit the slots and parameters that its layer declares
// expect: operation 1 (gelu) writes slot 1, which the backward needs as it was
#include "rheo/model/model.hpp"

using namespace rheo;

struct feed_forward {
    static constexpr layer_description describe()
    {
        layer_description layer{.name = "feed forward", .prefix = "f.#.", .in_width = 32, .out_width = 32};
        auto const x = add_slot(layer, 32);
        auto const up = add_slot(layer, 64);
#ifdef RHEO_MISTAKE
        auto const active = up;
#else
        auto const active = add_slot(layer, 64);
#endif
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
