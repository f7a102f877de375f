// SPDX-License-Identifier: Apache-2.0
// Layouts of jobs: Tenplex's changes of (T, P, D) against closed forms, Alpa's cross-mesh cases, and layouts as types.
#include "rheo/reshard/mesh.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "rheo/model/llama.hpp"
#include "rheo/reshard/layout_check.hpp"
#include "rheo/reshard/sub_collections.hpp"
#include "support/catch.hpp"

using namespace rheo;

namespace {

struct change {
    mesh_shape from;
    mesh_shape to;
    int first = 0;  ///< rank of the target
};

// kungfu-team/tenplex, benchmark/*/para-config*.json, schedule*.json and scheduler/data/*.json, commit 80341e13, as (T, P, D).
constexpr change changes[] = {
    {{4, 2, 1}, {4, 2, 2}}, {{4, 2, 1}, {4, 4, 1}}, {{4, 2, 1}, {8, 2, 1}},    {{4, 2, 2}, {4, 2, 1}}, {{2, 4, 2}, {2, 4, 1}}, {{2, 4, 1}, {2, 2, 1}},
    {{2, 2, 1}, {2, 4, 1}}, {{2, 4, 1}, {2, 4, 2}}, {{4, 1, 1}, {8, 1, 1}},    {{2, 4, 1}, {4, 4, 1}}, {{2, 4, 2}, {4, 4, 2}}, {{4, 1, 1}, {4, 1, 2}},
    {{4, 1, 2}, {4, 1, 4}}, {{4, 1, 4}, {4, 1, 8}}, {{4, 1, 1}, {4, 2, 1}},    {{4, 2, 1}, {4, 4, 1}}, {{4, 4, 1}, {4, 8, 1}}, {{1, 1, 4}, {1, 1, 8}},
    {{1, 4, 1}, {1, 8, 1}}, {{4, 1, 1}, {8, 1, 1}}, {{4, 2, 1}, {4, 2, 1}, 8},
};
static_assert(std::size(changes) == 21);

constexpr int layers = 24;
constexpr std::int64_t matrix_rows = 64;
constexpr std::int64_t row_bytes = 3 * 4;

std::vector<mesh_tensor> one_matrix_per_layer()
{
    std::vector<mesh_tensor> tensors;
    for (int l = 0; l < layers; ++l) {
        tensors.push_back({{.name = "layer " + std::to_string(l), .shape = {matrix_rows, 3}}, {l}, {.form = mesh_rule::kind::cut}});
    }
    return tensors;
}

array_layout layout_of(mesh_shape mesh, int first = 0)
{
    std::vector<int> cuts;
    for (int s = 0; s <= mesh.pipeline; ++s) {
        cuts.push_back(layers / mesh.pipeline * s);
    }
    return mesh_layout(one_matrix_per_layer(), mesh, cuts, rank_id{first});
}

/// The rows and layers of a rank.
nd_box area(mesh_shape mesh, int rank)
{
    if (rank < 0 || rank >= ranks_of(mesh)) {
        return {{0, 0}, {0, 0}};
    }
    auto const t = rank % mesh.tensor;
    auto const p = rank / mesh.tensor / mesh.data;
    return {{matrix_rows / mesh.tensor * t, matrix_rows / mesh.tensor * (t + 1)}, {layers / mesh.pipeline * p, layers / mesh.pipeline * (p + 1)}};
}

}  // namespace

TEST_CASE("mesh: Tenplex's 21 changes move what is missing")
{
    for (auto const& [from, to, first] : changes) {
        CAPTURE(from.tensor, from.pipeline, from.data, to.tensor, to.pipeline, to.data);
        std::int64_t needed = 0;
        for (int r = 0; r < ranks_of(to); ++r) {
            auto const wanted = area(to, r);
            needed += (elements(wanted) - elements(intersection(wanted, area(from, r + first)))) * row_bytes;
        }
        reshard_request request{.from = layout_of(from), .to = layout_of(to, first), .node_of = nodes_of(64, 4)};
        for (auto const choice : {rank_choice::pinned, rank_choice::whole_nodes, rank_choice::any}) {
            request.ranks = choice;
            auto const out = try_reshard(request);
            REQUIRE(describe(out.fault).view() == "");
            REQUIRE(describe(verify(out.plan, request.from, request.to, request.node_of)).view() == "");
            auto const& is = out.plan.certificate;
            if (choice == rank_choice::pinned) {
                CHECK(is.needed.value.count == needed);
            }
            CHECK(is.needed.value == is.needed.bound);
            CHECK(is.moved.value == is.needed.value);
            CHECK(is.moved.value.count <= needed);
            CHECK(is.largest_send.value.count < is.largest_send.bound.count + row_bytes);
            CHECK(is.largest_receive.value == is.largest_receive.bound);
            CHECK(is.between_nodes.value == is.between_nodes.bound);
            needed = is.needed.value.count;  // nodes are no more than pinned, and any no more than nodes
        }
    }
}

TEST_CASE("mesh: any device beats whole nodes beats pinned")
{
    // (2,4,2) -> (2,4,1): three quarters of a copy, half of one, nothing.
    auto const copy = layers * matrix_rows * row_bytes;
    auto const moved = [&](rank_choice ranks) {
        return try_reshard({.from = layout_of({2, 4, 2}), .to = layout_of({2, 4, 1}), .node_of = nodes_of(16, 4), .ranks = ranks})
            .plan.certificate.moved.value.count;
    };
    CHECK(moved(rank_choice::pinned) == copy * 3 / 4);
    CHECK(moved(rank_choice::whole_nodes) == copy / 2);
    CHECK(moved(rank_choice::any) == 0);
}

namespace {

enum class spread { all, block, turn };  ///< all devices alike; shard = device / 4; shard = device % parts

struct alpa_side {
    int devices;
    int dimension = 0;
    int parts = 1;
    spread devices_of = spread::all;
};

struct alpa_case {
    char const* name;
    nd_shape shape;
    alpa_side source;
    alpa_side target;
    // In tensors, times 24:
    std::int64_t needed;
    std::int64_t received;     ///< most by a device
    std::int64_t sent;         ///< least possible largest of a device
    std::int64_t out_of_host;  ///< all hosts together are `needed`; of the fullest
};

// alpa-projects/alpa, benchmark/alpa/resharding/suite.py, commit 8f4f1efe, perf_n_to_m_suite; float32, hosts of four devices.
constexpr alpa_case alpa_cases[] = {
    {"1", {1024, 1024, 512}, {8, 0, 2, spread::block}, {8, 0, 2, spread::block}, 96, 12, 12, 48},
    {"2", {1024, 1024, 512}, {8}, {8, 0, 2, spread::block}, 96, 12, 12, 48},
    {"3", {1024, 1024, 512}, {8, 1, 2, spread::block}, {8, 0, 2, spread::block}, 96, 12, 12, 48},
    {"4", {1024, 1024, 512}, {8, 1, 8, spread::turn}, {8, 0, 8, spread::turn}, 24, 3, 3, 12},
    {"5", {1024, 1024, 512}, {8, 0, 4, spread::turn}, {8, 0, 2, spread::block}, 96, 12, 12, 48},
    {"6", {3072, 1024, 170}, {8, 0, 2, spread::block}, {12, 0, 3, spread::block}, 96, 8, 12, 48},
    {"7", {1024, 1024, 512}, {4, 0, 4, spread::turn}, {8}, 192, 24, 48, 192},
    {"9", {1024, 1024, 512}, {8, 1, 2, spread::block}, {8, 2, 2, spread::block}, 96, 12, 12, 48},
};

array_layout side_of(alpa_case const& of, alpa_side const& side, int first)
{
    auto const parts = collect(tensor_id{0}, slices_of(of.shape) | cut({.dimension = side.dimension, .parts = side.parts}));
    sub_collections by_device;
    for (int device = 0; device < side.devices; ++device) {
        auto const part = side.devices_of == spread::all ? 0 : side.devices_of == spread::block ? device / 4 : device % side.parts;
        by_device.push_back(parts[static_cast<std::size_t>(part)]);
    }
    return on(ranks_from(rank_id{first}, side.devices), by_device, {{.name = "x", .shape = of.shape}});
}

}  // namespace

TEST_CASE("mesh: Alpa's cross-mesh cases reach their bounds")
{
    for (auto const& one : alpa_cases) {
        CAPTURE(one.name);
        reshard_request const request{.from = side_of(one, one.source, 0),
                                      .to = side_of(one, one.target, one.source.devices),
                                      .node_of = nodes_of(one.source.devices + one.target.devices, 4)};
        auto const tensor = elements(whole(one.shape)) * 4;
        auto const row = tensor / one.shape[0];
        auto const out = try_reshard(request);
        REQUIRE(describe(out.fault).view() == "");
        REQUIRE(describe(verify(out.plan, request.from, request.to, request.node_of)).view() == "");
        auto const& is = out.plan.certificate;
        CHECK(is.moved.value.count == tensor * one.needed / 24);
        CHECK(is.largest_receive.value.count == tensor * one.received / 24);
        CHECK(is.largest_send.bound.count == tensor * one.sent / 24);
        CHECK(is.largest_send.value.count < is.largest_send.bound.count + row);
        std::map<int, std::int64_t> out_of;
        for (auto const& move : out.plan.transfers) {
            out_of[move.from.value / 4] += move.size.count;
        }
        for (auto const& [host, bytes_out] : out_of) {
            CHECK(bytes_out < tensor * one.out_of_host / 24 + row);
        }
    }
}

namespace {

constexpr auto small_gpt = [] { return mesh_tensors(gpt_model({.vocabulary = 256, .context = 16, .width = 16, .heads = 4, .blocks = 4})); };

struct four_two_one {
    static constexpr array_layout layout() { return mesh_layout(small_gpt(), {4, 2, 1}, even_cuts(6, 2)); }
};
static_assert(sound_layout<four_two_one>);

}  // namespace

TEST_CASE("mesh: models of GPT and Llama are cut as Megatron cuts")
{
    auto const gpt = mesh_layout(small_gpt(), {2, 2, 2}, even_cuts(6, 2));
    REQUIRE(describe(fault(gpt)).view() == "");
    auto const boxes = [](array_layout const& layout, int rank, std::string_view name) {
        std::vector<nd_box> found;
        for (auto const& part : find_place(layout, rank_id{rank})->parts) {
            if (layout.tensors[at(part.tensor)].name.view() == name) {
                found.push_back(part.box);
            }
        }
        return found;
    };
    using list = std::vector<nd_box>;
    CHECK(boxes(gpt, 1, "h.0.attn.c_attn.weight") == list{{{0, 16}, {8, 16}}, {{0, 16}, {24, 32}}, {{0, 16}, {40, 48}}});
    CHECK(boxes(gpt, 1, "h.0.attn.c_attn.bias") == list{{{0, 1}, {8, 16}}, {{0, 1}, {24, 32}}, {{0, 1}, {40, 48}}});
    CHECK(boxes(gpt, 3, "h.1.attn.c_proj.weight") == list{{{8, 16}, {0, 16}}});
    CHECK(boxes(gpt, 3, "h.1.attn.c_proj.bias") == list{{{0, 1}, {0, 16}}});
    CHECK(boxes(gpt, 4, "h.2.mlp.c_fc.weight") == list{{{0, 16}, {0, 32}}});
    CHECK(boxes(gpt, 5, "h.2.mlp.c_proj.weight") == list{{{32, 64}, {0, 16}}});
    CHECK(boxes(gpt, 0, "h.2.mlp.c_fc.weight").empty());
    CHECK(boxes(gpt, 1, "wte.weight") == list{{{128, 256}, {0, 16}}});
    CHECK(boxes(gpt, 5, "wte.weight") == list{{{128, 256}, {0, 16}}});  // tied: the last stage has it, too
    CHECK(boxes(gpt, 4, "ln_f.weight") == list{{{0, 1}, {0, 16}}});
    auto const llama = mesh_layout(mesh_tensors(llama_model({.vocabulary = 100, .width = 16, .heads = 4, .kv_heads = 2, .blocks = 2, .mlp_width = 24})),
                                   {4, 1, 1}, even_cuts(4, 1));
    REQUIRE(describe(fault(llama)).view() == "");
    CHECK(boxes(llama, 1, "model.layers.0.self_attn.qkv_proj.weight") == list{{{0, 16}, {4, 8}}, {{0, 16}, {16, 20}}, {{0, 16}, {24, 28}}});
    CHECK(boxes(llama, 1, "model.layers.0.mlp.gate_up_proj.weight") == list{{{0, 16}, {6, 12}}, {{0, 16}, {30, 36}}});
    CHECK(boxes(llama, 3, "model.layers.1.mlp.down_proj.weight") == list{{{18, 24}, {0, 16}}});
    CHECK(boxes(llama, 1, "lm_head.weight") == list{{{128, 256}, {0, 16}}});  // padded to 512: nothing of 100 rows is here
    auto const qwen = mesh_layout(
        mesh_tensors(llama_model(
            {.vocabulary = 100, .width = 16, .heads = 4, .kv_heads = 2, .blocks = 1, .mlp_width = 24, .head_dim = 6, .qkv_bias = true, .qk_norm = true})),
        {4, 1, 1}, even_cuts(3, 1));
    REQUIRE(describe(fault(qwen)).view() == "");
    CHECK(boxes(qwen, 1, "model.layers.0.self_attn.qkv_proj.weight") == list{{{0, 16}, {6, 12}}, {{0, 16}, {24, 30}}, {{0, 16}, {36, 42}}});
    CHECK(boxes(qwen, 3, "model.layers.0.self_attn.qkv_proj.bias") == list{{{0, 1}, {18, 24}}, {{0, 1}, {30, 36}}, {{0, 1}, {42, 48}}});
    CHECK(boxes(qwen, 1, "model.layers.0.self_attn.o_proj.weight") == list{{{6, 12}, {0, 16}}});
    CHECK(boxes(qwen, 1, "model.layers.0.self_attn.k_norm.weight") == list{{{0, 1}, {0, 6}}});
}

TEST_CASE("mesh: more ranks or padding than fit are refused")
{
    auto const refused = [](mesh_shape mesh, std::int64_t padding) {
        mesh_tensor const table{{.name = "t", .shape = {50257, 8}}, {0}, {.form = mesh_rule::kind::cut, .padding = padding}};
        return mesh_layout({table}, mesh, std::vector<int>(static_cast<std::size_t>(mesh.pipeline) + 1, 0), rank_id{7});
    };
    std::string const ranks = "the ranks of a mesh count from 0 to 16777215; this one has more";
    CHECK_THROWS_WITH(refused({1 << 16, 1, 1 << 16}, 128), ranks);
    CHECK_THROWS_WITH(refused({1, 1, most_ranks - 6}, 128), ranks);
    CHECK_THROWS_WITH(
        refused({2, 1, 1}, std::int64_t{1} << 62),
        "dimension 0 of length 50257, padded on each rank to a multiple of 4611686018427387904: that of all tensor parallel ranks does not fit into "
        "64 bits");
    CHECK(refused({1, 1, 1}, std::int64_t{1} << 62).tensors[0].padded == nd_shape{std::int64_t{1} << 62, 8});
}
