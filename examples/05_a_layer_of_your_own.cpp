// SPDX-License-Identifier: Apache-2.0
// A layer of your own: any type with a constexpr `describe()`, no base class and no registry. This one is a block without
// attention. What it costs, what it keeps and how it is fused follows from its operations, as for every other layer.
#include <cstdio>
#include <string>

#include "rheo/model/footprint.hpp"
#include "rheo/model/gpt.hpp"
#include "rheo/model/model.hpp"
#include "rheo/model/state.hpp"

using namespace rheo;

template <int Width>
struct feed_forward {
    static constexpr layer_description describe()
    {
        layer_description layer{.name = "feed forward", .prefix = "f.#.", .in_width = Width, .out_width = Width};
        auto const x = add_slot(layer, Width);
        auto const norm = add_slot(layer, Width);
        auto const up = add_slot(layer, 2 * Width);
        auto const act = add_slot(layer, 2 * Width);
        auto const down = add_slot(layer, Width);
        layer.output = add_slot(layer, Width);
        auto const gamma = add_parameter(layer, {"norm.weight", {1, Width}, {1, 0}});
        auto const beta = add_parameter(layer, {"norm.bias", {1, Width}, {0, 0}});
        auto const w1 = add_parameter(layer, {"up.weight", {Width, 2 * Width}, {0, 0.02}, true});
        auto const b1 = add_parameter(layer, {"up.bias", {1, 2 * Width}, {0, 0}});
        auto const w2 = add_parameter(layer, {"down.weight", {2 * Width, Width}, {0, 0.02}, true});
        auto const b2 = add_parameter(layer, {"down.bias", {1, Width}, {0, 0}});
        add_op(layer,
               {.kind = op_kind::layer_norm, .x = {x, no_slot}, .z = {norm, no_slot}, .parameters = {gamma, beta}, .in_width = Width, .out_width = Width});
        add_op(layer, {.kind = op_kind::linear, .x = {norm, no_slot}, .z = {up, no_slot}, .parameters = {w1, b1}, .in_width = Width, .out_width = 2 * Width});
        add_op(layer, {.kind = op_kind::gelu, .x = {up, no_slot}, .z = {act, no_slot}, .in_width = 2 * Width, .out_width = 2 * Width});
        add_op(layer, {.kind = op_kind::linear, .x = {act, no_slot}, .z = {down, no_slot}, .parameters = {w2, b2}, .in_width = 2 * Width, .out_width = Width});
        add_op(layer, {.kind = op_kind::residual_add, .x = {x, down}, .z = {layer.output, no_slot}, .in_width = Width, .out_width = Width});
        return layer;
    }
};

constexpr gpt_shape shape{.vocabulary = 256, .context = 64, .width = 32, .heads = 4, .blocks = 2};
using mixed = model<embedding<shape>, transformer_block<shape>, feed_forward<32>, transformer_block<shape>, feed_forward<32>, classifier<shape>>;
static_assert(check(describe<mixed>()) == model_error{});  // the same function refuses a misfit, with a sentence

int main()
{
    auto const as_it_runs = fused(describe<mixed>());
    for (auto const& layer : as_it_runs.layers) {
        std::printf("%-14s keeps %7.2f KiB per sequence of 64, runs", layer.name.data(), in_mebibytes(activation_bytes(layer, {1, 64})) * 1024);
        for (auto const& o : layer.ops) {
            std::printf(" %.*s", static_cast<int>(name_of(o.kind).size()), name_of(o.kind).data());
        }
        std::printf("\n");
    }
    for (auto const& tensor : state_of(as_it_runs).tensors) {
        if (tensor.name.starts_with("f.1.")) {
            std::printf("%s: %s x %s\n", tensor.name.c_str(), std::to_string(tensor.shape.rows).c_str(), std::to_string(tensor.shape.columns).c_str());
        }
    }
}
