// SPDX-License-Identifier: Apache-2.0
// Sharding as a rewrite: shards tile every parameter, a grid of one is the layer, and what cannot be cut is a sentence. That shards compute what the
// layer computes is shown with the definitions of the kernels, in tests/unit/kernels/sharding.cpp.
#include "rheo/model/sharding.hpp"

#include <string>
#include <vector>

#include "rheo/model/exchange_traffic.hpp"
#include "rheo/model/fusion.hpp"
#include "rheo/model/gpt.hpp"
#include "rheo/model/llama.hpp"
#include "support/catch.hpp"

using namespace rheo;

namespace {

constexpr gpt_shape gpt{.vocabulary = 259, .context = 10, .width = 64, .heads = 8, .blocks = 2, .dropout_per_mille = 100};
constexpr llama_shape llama{.vocabulary = 259, .context = 10, .width = 96, .heads = 12, .kv_heads = 2, .blocks = 2, .mlp_width = 200};

std::string drawn(shard_layer const& layer)
{
    constexpr char const* exchanges[] = {"", "gather", "sum", "collect"};
    std::string text;
    for (auto const& o : layer.ops) {
        text += text.empty() ? "" : " ";
        text += o.kind == shard_op_kind::operation ? std::string{name_of(o.own.kind)} : exchanges[static_cast<int>(o.kind)];
    }
    return text;
}

/// Each element of each parameter is in one tensor of each of its holders, and in no other shard's; holders agree on what they hold.
void check_tiles(layer_description const& layer, int grid)
{
    std::vector<shard_layer> shards;
    for (int j = 0; j < grid; ++j) {
        shards.push_back(sharded(layer, grid, j));
        CHECK(shards.back().ops.size() == shards.front().ops.size());
    }
    for (std::size_t p = 0; p < layer.parameters.size(); ++p) {
        INFO(layer.parameters[p].name << " of " << grid << " shards");
        auto const shape = layer.parameters[p].shape;
        std::vector<std::vector<int>> held(static_cast<std::size_t>(grid), std::vector<int>(static_cast<std::size_t>(elements(shape))));
        std::vector<int> wanted(held[0].size());
        for (int j = 0; j < grid; ++j) {
            for (auto const& part : shards[static_cast<std::size_t>(j)].parameters) {
                if (part.of != static_cast<int>(p)) {
                    continue;
                }
                CHECK((part.holders.begin <= j && j < part.holders.end));
                std::int64_t count = 0;
                for (auto const& box : part.pieces) {
                    count += elements(box);
                    for (auto r = box.row_begin; r < box.row_end; ++r) {
                        for (auto c = box.column_begin; c < box.column_end; ++c) {
                            ++held[static_cast<std::size_t>(j)][static_cast<std::size_t>(r * shape.columns + c)];
                            wanted[static_cast<std::size_t>(r * shape.columns + c)] = static_cast<int>(part.holders.count());
                        }
                    }
                }
                CHECK(count == elements(part.shape));
            }
        }
        int wrong = 0;
        for (std::size_t e = 0; e < wanted.size(); ++e) {
            int holders = 0;
            bool twice = false;
            for (auto const& shard : held) {
                twice = twice || shard[e] > 1;
                holders += shard[e];
            }
            wrong += twice || holders < 1 || holders != wanted[e] ? 1 : 0;
        }
        CHECK(wrong == 0);
    }
}

/// Operations read and write slots as wide as they say, and use tensors of the shapes they ask for.
void check_fits(layer_description const& layer, int grid, int shard)
{
    auto const s = sharded(layer, grid, shard);
    auto const width = [&](int slot) { return s.slot_widths[static_cast<std::size_t>(slot)]; };
    for (auto const& o : s.ops) {
        INFO(name_of(o.own.kind) << ", shard " << shard << " of " << grid);
        auto const x = o.own.x[0], z = o.own.z[0];
        if (o.kind != shard_op_kind::operation) {
            CHECK((width(x) == o.own.in_width && width(z) == o.own.out_width && o.own.in_width == o.own.out_width));
            continue;
        }
        auto const shapes = shapes_of(o.own);
        for (std::size_t i = 0; i < 2; ++i) {
            CHECK((o.own.x[i] == no_slot || width(o.own.x[i]) == shapes.x[i]));
            CHECK((o.own.z[i] == no_slot || (o.own.kind == op_kind::linear ? o.column + shapes.z[i] <= width(o.own.z[i]) : width(o.own.z[i]) == shapes.z[i])));
            if (o.own.parameters[i] != no_parameter) {
                auto const& have = s.parameters[static_cast<std::size_t>(o.own.parameters[i])].shape;
                CHECK((have.columns == shapes.parameters[i].shape.columns && (shapes.parameters[i].any_rows || have.rows == shapes.parameters[i].shape.rows)));
            }
        }
        CHECK((shapes.in_width < 0 || shapes.in_width == o.own.in_width));
    }
}

constexpr bool is_unchanged(layer_description const& layer)
{
    auto const s = sharded(layer, 1, 0);
    bool same = s.output == layer.output && s.ops.size() == layer.ops.size() && s.slot_widths.size() == layer.slot_widths.size() &&
                s.parameters.size() == layer.parameters.size();
    for (std::size_t o = 0; same && o < s.ops.size(); ++o) {
        same = s.ops[o] == shard_op{.own = layer.ops[o]};
    }
    for (std::size_t i = 0; same && i < s.slot_widths.size(); ++i) {
        same = s.slot_widths[i] == layer.slot_widths[i] && s.forms[i] == slot_form::whole;
    }
    for (std::size_t p = 0; same && p < s.parameters.size(); ++p) {
        same = s.parameters[p].of == static_cast<int>(p) && s.parameters[p].pieces.size() == 1 &&
               s.parameters[p].pieces[0] == whole(layer.parameters[p].shape) && s.parameters[p].holders == shard_range{0, 1};
    }
    return same;
}

constexpr shard_group second_of_two = [] {
    shard_group group{.members = {}, .self = 1};
    group.members.push_back({0, 1});
    group.members.push_back({1, 2});
    return group;
}();

constexpr layer_description cut_in_two(layer_description layer)
{
    layer.shards = 2;
    return layer;
}

static_assert(is_unchanged(block_layer(gpt)) && is_unchanged(fused(block_layer(gpt))) && is_unchanged(embedding_layer(gpt)) &&
              is_unchanged(classifier_layer(gpt)));
static_assert(is_unchanged(llama_block_layer(llama)) && is_unchanged(llama_embedding_layer(llama)) && is_unchanged(llama_classifier_layer(llama)));
static_assert(sharding_error(block_layer(gpt), 8).empty() && sharding_error(embedding_layer(gpt), 8).empty());
static_assert(exchange_count(cut_in_two(block_layer(gpt)), second_of_two) == 4 && exchange_count(block_layer(gpt), {}) == 0);
static_assert(heads_of(12, 4, 3, 2).queries == shard_range{6, 12} && heads_of(12, 4, 3, 2).keys == shard_range{2, 4});
static_assert(heads_of(12, 2, 4, 1).queries == shard_range{3, 6} && heads_of(12, 2, 4, 1).keys == shard_range{0, 1} &&
              heads_of(12, 2, 4, 1).shared == shard_range{0, 2});

}  // namespace

TEST_CASE("sharding: two gathers and two sums in a block")
{
    CHECK(drawn(sharded(block_layer(gpt), 2, 0)) ==
          "layer_norm gather linear attention linear sum residual_add layer_norm gather linear gelu linear sum residual_add");
    CHECK(drawn(sharded(fused(block_layer(gpt)), 3, 1)) ==
          "layer_norm gather linear attention linear sum residual_norm gather linear_gelu linear sum residual_add");
    CHECK(drawn(sharded(llama_block_layer(llama), 2, 1)) ==
          "rms_norm gather linear rope attention linear sum residual_add rms_norm gather linear swiglu linear sum residual_add");
    // heads of keys and values of two shards each: a product of their own
    CHECK(drawn(sharded(llama_block_layer(llama), 4, 1)) ==
          "rms_norm gather linear linear rope attention linear sum residual_add rms_norm gather linear swiglu linear sum residual_add");
    CHECK(drawn(sharded(embedding_layer(gpt), 2, 0)) == "embedding collect");
    CHECK(drawn(sharded(classifier_layer(gpt), 2, 0)) == "layer_norm gather unembed cross_entropy");
    CHECK(drawn(sharded(fused(classifier_layer(gpt)), 2, 0)) == "layer_norm gather unembed loss_gradient");
}

TEST_CASE("sharding: shards tile each parameter")
{
    for (int const grid : {1, 2, 3, 4, 5, 7, 8}) {
        for (auto const& layer : {embedding_layer(gpt), block_layer(gpt), fused(block_layer(gpt)), classifier_layer(gpt)}) {
            check_tiles(layer, grid);
            for (int shard = 0; shard < grid; ++shard) {
                check_fits(layer, grid, shard);
            }
        }
    }
    for (int const kv : {1, 2, 3, 4, 6, 12}) {
        auto shape = llama;
        shape.kv_heads = kv;
        for (int const grid : {1, 2, 3, 4, 6, 12}) {
            if (grid > kv && grid % kv != 0) {
                continue;
            }
            for (auto const& layer : {llama_embedding_layer(shape), llama_block_layer(shape), fused(llama_block_layer(shape)), llama_classifier_layer(shape)}) {
                check_tiles(layer, grid);
                for (int shard = 0; shard < grid; ++shard) {
                    check_fits(layer, grid, shard);
                }
            }
        }
    }
}

TEST_CASE("sharding: a shard has its heads, columns and rows")
{
    auto const s = sharded(block_layer(gpt), 3, 1);  // heads 2 to 4 of 8, each 8 wide; columns 80 to 159 of 256
    CHECK(s.parameters[2].of == 2);
    CHECK(s.parameters[2].shape == tensor_shape{64, 72});
    CHECK((s.parameters[2].pieces[0] == index_box{0, 64, 16, 40} && s.parameters[2].pieces[1] == index_box{0, 64, 80, 104} &&
           s.parameters[2].pieces[2] == index_box{0, 64, 144, 168}));
    auto const& attention = s.ops[3];
    CHECK((attention.part == shard_range{2, 5} && attention.all == 8 && attention.own.heads == 3 && attention.own.kv_heads == 0));
    CHECK((attention.own.in_width == 72 && attention.own.out_width == 24 && attention.own.id == op_id{2}));
    auto const& projection = s.ops[4];
    CHECK(s.forms[static_cast<std::size_t>(projection.own.z[0])] == slot_form::partial);
    CHECK(s.parameters[static_cast<std::size_t>(projection.own.parameters[0])].pieces[0] == index_box{16, 40, 0, 64});
    CHECK(projection.own.parameters[1] == no_parameter);
    auto const& sum = s.ops[5];
    CHECK(s.parameters[static_cast<std::size_t>(sum.own.parameters[1])].holders == shard_range{0, 3});
    CHECK((s.ops[9].own.out_width == 80 && s.ops[11].own.in_width == 80));
    auto const e = sharded(embedding_layer(gpt), 3, 2);  // 259 tokens are 17 units, the last one short
    CHECK((e.ops[0].part == shard_range{176, 259} && e.ops[0].all == 259 && e.ops[0].positions == shard_range{6, 10} && e.ops[0].own.in_width == 83));
    auto const c = sharded(classifier_layer(gpt), 3, 2);
    CHECK((c.ops[3].part == e.ops[0].part && c.ops[3].all == 259 && c.parameters[2].pieces[0] == e.parameters[0].pieces[0]));  // a tied table is cut alike
    // four shards of two heads of keys and values: query columns of its own, those of the head beside them
    auto const k = sharded(llama_block_layer(llama), 4, 3);
    CHECK((k.ops[2].own.out_width == 24 && k.ops[2].column == 0 && k.ops[3].own.out_width == 16 && k.ops[3].column == 24));
    auto const& shared = k.parameters[static_cast<std::size_t>(k.ops[3].own.parameters[0])];
    CHECK((shared.holders == shard_range{2, 4} && shared.pieces.size() == 2 && shared.pieces[0] == index_box{0, 96, 104, 112} &&
           shared.pieces[1] == index_box{0, 96, 120, 128}));
    CHECK((k.ops[5].own.heads == 3 && k.ops[5].own.kv_heads == 1 && k.ops[5].part == shard_range{9, 12}));
}

TEST_CASE("sharding: what cannot be cut is a sentence")
{
    auto const of = [](layer_description const& layer, int grid) { return std::string{sharding_error(layer, grid).view()}; };
    CHECK(of(block_layer(gpt), 0) == "a grid has 1 to 16 shards, not 0");
    CHECK(of(block_layer(gpt), 17) == "a grid has 1 to 16 shards, not 17");
    CHECK(of(block_layer(gpt), 9) == "operation 2 (attention) has 8 heads, too few for 9 shards: each has one or more");
    CHECK(of(llama_block_layer(llama), 3) == "operation 2 (rope) has 2 heads of keys and values: shards are at most as many, or a multiple of them, not 3");
    auto narrow = llama;
    narrow.mlp_width = 33;
    CHECK(of(llama_block_layer(narrow), 4) == "operation 8 (swiglu) is 33 wide, too few for 4 shards: they are cut at multiples of 16");
    auto few = gpt;
    few.vocabulary = 30;
    CHECK(of(embedding_layer(few), 3) == "operation 0 (embedding) is 30 wide, too few for 3 shards: they are cut at multiples of 16");
    CHECK(of(classifier_layer(few), 3) == "operation 1 (unembed) is 30 wide, too few for 3 shards: they are cut at multiples of 16");
    // a norm of what is cut: it would need the other shards' columns
    auto odd = block_layer(gpt);
    odd.ops[7].kind = op_kind::layer_norm;
    CHECK(of(odd, 2) == "operation 7 (layer_norm) reads slot 7, of which a shard has columns alone");
    auto strip = block_layer(gpt);
    strip.ops[7].x[0] = 5;
    CHECK(of(strip, 2) == "operation 7 (gelu) reads slot 5, of which a shard has no columns");
    auto sum = block_layer(gpt);
    sum.ops[3].kind = op_kind::linear_gelu;
    CHECK(of(sum, 2) == "operation 3 (linear_gelu) activates a sum over shards, which is not rounded before: a linear and a gelu are wanted");
    CHECK_THROWS_WITH(sharded(block_layer(gpt), 9, 0), "operation 2 (attention) has 8 heads, too few for 9 shards: each has one or more");
    CHECK_THROWS_AS(sharded(block_layer(gpt), 4, 4), precondition_error);
}
