// SPDX-License-Identifier: Apache-2.0
// A model on a grid of shards: its collection has each element of each parameter once, with a use for each shard that contributes; what does not fit is
// refused, with the layer's name.
#include "rheo/model/grid.hpp"

#include <algorithm>
#include <set>
#include <vector>

#include "rheo/model/state.hpp"
#include "support/catch.hpp"

using namespace rheo;
using Catch::Matchers::EndsWith;
using Catch::Matchers::StartsWith;

namespace {

constexpr gpt_shape wide{.vocabulary = 83, .context = 12, .width = 64, .heads = 4, .blocks = 2};
static_assert(grid_of(on_grid(gpt_model(wide), 4)) == 4);
static_assert(on_grid(on_grid(gpt_model(wide), 4), 1) == gpt_model(wide));
static_assert(fused(on_grid(gpt_model(wide), 2)) == on_grid(fused(gpt_model(wide)), 2));

void check_cover(model_description const& model)
{
    auto const alone = state_of(on_grid(model, 1));
    auto const state = state_of(model);
    std::vector<std::vector<int>> times;
    for (auto const& tensor : alone.tensors) {
        times.emplace_back(static_cast<std::size_t>(elements(tensor.shape)));
    }
    std::set<std::string> names;
    for (auto const& tensor : state.tensors) {
        CHECK(names.insert(tensor.name).second);
        if (!tensor.is_parameter) {
            continue;
        }
        auto const number = at(tensor.part.number);
        REQUIRE(number < alone.tensors.size());
        CHECK(alone.tensors[number].name == parameter_name(tensor));
        CHECK(alone.tensors[number].shape == parameter_shape(tensor));
        CHECK(alone.tensors[number].layers == tensor.layers);
        CHECK(alone.tensors[number].initial == tensor.initial);
        CHECK(alone.tensors[number].decays == tensor.decays);
        for_each_run(tensor, [&](element_run const& run) {
            for (std::int64_t i = 0; i < run.count; ++i) {
                ++times[number][static_cast<std::size_t>(run.in_parameter + i)];
            }
        });
        for (auto const use : tensor.uses) {
            CHECK(state.tensors[at(state.uses[at(use)].tensor)].name == tensor.name);
        }
    }
    for (std::size_t t = 0; t < times.size(); ++t) {
        INFO(alone.tensors[t].name);
        CHECK((!alone.tensors[t].is_parameter || std::all_of(times[t].begin(), times[t].end(), [](int n) { return n == 1; })));
    }
}

}  // namespace

TEST_CASE("grid: parts of parameters have each element once")
{
    for (int const grid : {2, 3, 4}) {
        check_cover(on_grid(fused(gpt_model(wide)), grid));
        check_cover(on_grid(gpt_model(wide), grid));
    }
    for (int const kv : {1, 2, 4}) {
        for (int const grid : {2, 4}) {
            check_cover(
                on_grid(fused(llama_model({.vocabulary = 83, .context = 12, .width = 64, .heads = 4, .kv_heads = kv, .blocks = 2, .mlp_width = 96})), grid));
        }
    }
}

TEST_CASE("grid: what several shards have is used by each of them")
{
    auto const state = state_of(on_grid(fused(gpt_model(wide)), 4));
    auto const uses_of = [&](std::string const& name) {
        auto const found = std::find_if(state.tensors.begin(), state.tensors.end(), [&](auto const& t) { return t.name == name; });
        REQUIRE(found != state.tensors.end());
        return found->uses.size();
    };
    CHECK(uses_of("h.0.ln_1.weight") == 4);
    CHECK(uses_of("h.1.mlp.c_proj.bias") == 4);
    CHECK(uses_of("h.0.attn.c_attn.weight[2 of 4]") == 1);
    CHECK(uses_of("wte.weight[0 of 4]") == 2);  // tied
    auto const grouped =
        state_of(on_grid(llama_model({.vocabulary = 83, .context = 12, .width = 64, .heads = 4, .kv_heads = 2, .blocks = 1, .mlp_width = 96}), 4));
    auto const shared = std::count_if(grouped.tensors.begin(), grouped.tensors.end(), [](auto const& t) { return t.name.ends_with("[0-1 of 4]"); });
    CHECK(shared == 1);  // columns of keys and values, which two shards use
}

TEST_CASE("grid: what does not fit is refused with the layer's name")
{
    CHECK(grid_error(gpt_model(wide), 4).empty());
    CHECK_THAT(grid_error(gpt_model(wide), 5),
               StartsWith("layer 1 (block): operation ") && EndsWith("has 4 heads, too few for 5 shards: each has one or more"));
    auto narrow = wide;
    narrow.context = 3;
    CHECK(grid_error(gpt_model(narrow), 4) == "layer 0 (embedding): operation 0 (embedding) has 3 positions, too few for 4 shards");
}

TEST_CASE("grid: rows and a product may not read one slot")
{
    layer_description layer{.name = "no norm", .prefix = "", .in_width = 64, .out_width = 64};
    auto const x = add_slot(layer, 64), y = add_slot(layer, 64), z = add_slot(layer, 64), sum = add_slot(layer, 64);
    auto const w = add_parameter(layer, {"first", {64, 64}, {0, 0.2}, true});
    auto const v = add_parameter(layer, {"second", {64, 64}, {0, 0.2}, true});
    add_op(layer, {.kind = op_kind::linear, .x = {x, no_slot}, .z = {y, no_slot}, .parameters = {w, no_parameter}, .in_width = 64, .out_width = 64});
    add_op(layer, {.kind = op_kind::linear, .x = {y, no_slot}, .z = {z, no_slot}, .parameters = {v, no_parameter}, .in_width = 64, .out_width = 64});
    add_op(layer, {.kind = op_kind::residual_add, .x = {x, z}, .z = {sum, no_slot}, .in_width = 64, .out_width = 64});
    layer.output = sum;
    CHECK(sharding_error(layer, 2).view() == "operation 2 (residual_add) reads row by row what a product reads, too: on a grid of shards a norm comes between");
}
