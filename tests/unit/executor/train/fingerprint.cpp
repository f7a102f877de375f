// SPDX-License-Identifier: Apache-2.0
// The fingerprint holds what decides the bits, and nothing else.
#include "executor/train/fingerprint.hpp"

#include <algorithm>
#include <string>
#include <vector>

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

TEST_CASE("fingerprint: what families have of their own is part of it")
{
    std::vector<std::string> all{operations_of(llama_model(shape))};
    auto const add = [&](auto change) {
        auto other = shape;
        change(other);
        all.push_back(operations_of(llama_model(other)));
    };
    add([](auto& s) { s.head_dim = 8; });
    add([](auto& s) { s.qkv_bias = true; });
    add([](auto& s) { s.qk_norm = true; });
    add([](auto& s) { s.norm_epsilon_e9 = 1000; });
    add([](auto& s) { s.scaling = {.kind = rope_scaling_kind::linear, .factor_per_mille = 2000}; });
    add([](auto& s) { s.scaling = {rope_scaling_kind::llama3, 2000, 1000, 4000, 8}; });
    add([](auto& s) { s.scaling = {rope_scaling_kind::llama3, 2000, 1000, 4000, 9}; });
    auto distinct = all;
    std::sort(distinct.begin(), distinct.end());
    CHECK(std::unique(distinct.begin(), distinct.end()) == distinct.end());
    auto same = shape;
    same.head_dim = 6;  // as by default
    CHECK(operations_of(llama_model(same)) == all.front());
}

TEST_CASE("fingerprint: models of earlier versions keep theirs")
{
    // As version 0.1 wrote them into checkpoints, which resume.
    CHECK(operations_of(fused(gpt_model({}))) == "4 layers, a977653bd37e9777");
    CHECK(operations_of(fused(llama_model({}))) == "4 layers, ab4c1f1f5f49e5ce");
}
