// SPDX-License-Identifier: Apache-2.0
// Layers whose operations do not fit what they declare: the message of the run-time check, from the compiler.
// expect: rheo: an operation does not fit the slots and parameters that its layer declares
// expect: "operation 0 (linear) uses parameter \'weight\', which must be 32 x 32, but it is 32 x 8"
// expect: "operation 0 (linear) writes slot 1, which must be 32 columns wide, but it is 8"
// expect: "operation 2 (attention) is 130 wide, which is no multiple of its 4 heads"
// expect: "slot 1 is -128 columns wide, but must be at least 1"
#include "rheo/model/model.hpp"

using namespace rheo;

template <int Columns, int Slot>
struct product {
    static constexpr layer_description describe()
    {
        layer_description layer{.name = "product", .prefix = "p.#.", .in_width = 32, .out_width = 32};
        auto const x = add_slot(layer, 32);
        layer.output = add_slot(layer, Slot);
        auto const w = add_parameter(layer, {"weight", {32, Columns}, {0, 0.02}, true});
        add_op(layer,
               {.kind = op_kind::linear, .x = {x, no_slot}, .z = {layer.output, no_slot}, .parameters = {w, no_parameter}, .in_width = 32, .out_width = 32});
        return layer;
    }
};

#ifdef RHEO_MISTAKE
constexpr int columns = 8;
constexpr int wide = 130;
constexpr int positive = -128;
#else
constexpr int columns = 32;
constexpr int wide = 132;
constexpr int positive = 128;
#endif

constexpr gpt_shape s{.width = 32};
constexpr gpt_shape heads{.width = wide};
constexpr gpt_shape sign{.width = positive};

static_assert(describe<model<embedding<s>, product<columns, 32>, classifier<s>>>().layers.size() == 3);
static_assert(describe<model<embedding<s>, repeat<2, product<32, columns>>, classifier<s>>>().layers.size() == 4);
static_assert(describe<model<embedding<heads>, transformer_block<heads>, classifier<heads>>>().layers.size() == 3);
static_assert(describe<model<embedding<sign>, transformer_block<sign>, classifier<sign>>>().layers.size() == 3);
