// SPDX-License-Identifier: Apache-2.0
// The fingerprint holds what decides the bits, and nothing else.
#include "executor/train/fingerprint.hpp"

#include "support/catch.hpp"

using namespace rheo;

namespace {

constexpr llama_shape shape{.vocabulary = 64, .context = 16, .width = 24, .heads = 4, .kv_heads = 2, .blocks = 2, .mlp_width = 40};

/// Its blocks write turned queries and keys into a slot of their own.
model_description turned_apart()
{
    auto model = llama_model(shape);
    for (auto& layer : model.layers) {
        if (layer.name != "block") {
            continue;
        }
        auto const turned = layer.ops[2].x[0] + 1;
        auto const widths = layer.slot_widths;
        layer.slot_widths = {};
        for (std::size_t s = 0; s < widths.size(); ++s) {
            layer.slot_widths.push_back(widths[s]);
            if (static_cast<int>(s) + 1 == turned) {
                layer.slot_widths.push_back(widths[s]);
            }
        }
        for (auto& o : layer.ops) {
            for (auto* const slot : {&o.x[0], &o.x[1], &o.z[0], &o.z[1]}) {
                *slot += *slot >= turned ? 1 : 0;
            }
        }
        layer.ops[2].z[0] = layer.ops[3].x[0] = turned;
        ++layer.output;
    }
    return model;
}

}  // namespace

TEST_CASE("fingerprint: where a rope writes is no part of it")
{
    auto const model = llama_model(shape);
    CHECK(error_of(turned_apart().layers[1]).empty());
    CHECK(turned_apart().layers[1] != model.layers[1]);
    CHECK(operations_of(turned_apart()) == operations_of(model));
    CHECK(operations_of(fused(turned_apart())) == operations_of(fused(model)));
    CHECK(operations_of(fused(model)) != operations_of(model));
    auto other = model;
    ++other.layers[1].ops[2].rope_base;
    CHECK(operations_of(other) != operations_of(model));
}
