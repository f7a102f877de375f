#pragma once
// SPDX-License-Identifier: Apache-2.0

// The operations that sharding.hpp cuts: which columns or rows of their weights a shard has, and which exchange follows. Included by it.

#include "rheo/model/sharding.hpp"

namespace rheo::inline v0 {

namespace detail {

/// On the shard's strip.
constexpr void sharder::add_of_rows(std::size_t o)
{
    auto own = layer_.ops[o];
    for (auto& x : own.x) {
        if (x != no_slot) {
            if (!is(o, x, slot_form::strip)) {
                return;
            }
            x = at(x).slot;
        }
    }
    for (auto& z : own.z) {
        if (z != no_slot) {
            at(z).slot = add_slot(own.out_width, slot_form::strip);
            z = at(z).slot;
        }
    }
    for (auto& p : own.parameters) {
        p = add_whole(p);
    }
    result.ops.push_back({.own = own});
}

/// x[0] -> z[0], on the shard's columns of both.
constexpr void sharder::add_of_columns(std::size_t o)
{
    auto own = layer_.ops[o];
    if (!is(o, own.x[0], slot_form::cut)) {
        return;
    }
    auto const& read = at(own.x[0]);
    shard_op result_op{};
    column_cut cut = read.cut;
    if (own.kind == op_kind::attention || own.kind == op_kind::rope || own.kind == op_kind::qk_norm) {
        if (!heads_fit(o)) {
            return;
        }
        auto const heads = heads_of(own.heads, kv_heads_of(own), result.grid, result.shard);
        result_op.part = heads.queries;
        result_op.all = own.heads;
        if (own.kind == op_kind::attention) {
            cut.runs = {};
            cut.runs.push_back(read.cut.runs[0]);
        }
        own.kv_heads = own.kv_heads == 0 ? 0 : static_cast<int>(heads.keys.count());
        own.heads = static_cast<int>(heads.queries.count());
    } else if (own.kind == op_kind::swiglu) {
        cut.runs = {};
        cut.runs.push_back(read.cut.runs[0]);
    }
    own.in_width = static_cast<int>(read.cut.count());
    own.out_width = static_cast<int>(cut.count());
    own.x[0] = read.slot;
    for (auto& p : own.parameters) {  // of a norm of heads, which all shards have alike: each contributes its own heads'
        p = add_whole(p);
    }
    if (is_in_place(layer_.ops[o])) {
        own.z[0] = read.slot;
    } else {
        auto& written = at(own.z[0]);
        written = {.slot = add_slot(cut.count(), slot_form::cut), .gathered = no_slot, .cut = cut};
        own.z[0] = written.slot;
    }
    result_op.own = own;
    result.ops.push_back(result_op);
}

/// The shard writes the rows of its tokens; rows then go to their strips.
constexpr void sharder::add_embedding(std::size_t o)
{
    auto own = layer_.ops[o];
    auto const cut = cut_plainly(o, own.in_width);
    if (!fault.empty()) {
        return;
    }
    shard_op result_op{.part = cut.runs[0], .all = own.in_width};
    if (own.parameters[1] != no_parameter) {
        auto const context = layer_.parameters[static_cast<std::size_t>(own.parameters[1])].shape.rows;
        if (context < result.grid) {
            complain(o) << "has " << context << " positions, too few for " << result.grid << " shards";
            return;
        }
        result_op.positions = cut_evenly(context, result.grid, result.shard);
    }
    own.parameters[0] = add_part(own.parameters[0], cut, 0, 1, false, {result.shard, result.shard + 1});
    own.parameters[1] = add_whole(own.parameters[1]);
    own.in_width = static_cast<int>(cut.count());
    auto const written = add_slot(own.out_width, slot_form::scattered);
    at(own.z[0]).slot = add_slot(own.out_width, slot_form::strip);
    auto const strips = at(own.z[0]).slot;
    own.z[0] = written;
    result_op.own = own;
    result.ops.push_back(result_op);
    add_exchange(o, shard_op_kind::collect_rows, written, strips, no_parameter, own.out_width);
}

/// The columns of the weight that the readers of the result want; those that shards share are a product of their own, beside it in the slot.
constexpr void sharder::add_product_of_columns(std::size_t o)
{
    auto own = layer_.ops[o];
    auto const last = own.z[1] == no_slot ? own.z[0] : own.z[1];
    auto const cut = cut_for_reader(o, last);
    if (!fault.empty()) {
        return;
    }
    auto const read = gathered(o, own.x[0]);
    std::array<int, 2> written{no_slot, no_slot};
    for (std::size_t i = 0; i < 2; ++i) {
        if (own.z[i] != no_slot) {
            at(own.z[i]) = {.slot = add_slot(cut.count(), slot_form::cut), .gathered = no_slot, .cut = cut};
            written[i] = at(own.z[i]).slot;
        }
    }
    int column = 0;
    std::size_t const parts = cut.apart ? 2 : 1;
    for (std::size_t part = 0; part < parts; ++part) {
        std::size_t const first = part;
        std::size_t const end = cut.apart && part == 0 ? 1 : cut.runs.size();
        auto const holders = part == 0 ? shard_range{result.shard, result.shard + 1} : cut.shared;
        auto product = own;
        product.x = {read, no_slot};
        product.z = written;
        product.parameters = {add_part(own.parameters[0], cut, first, end, true, holders), add_part(own.parameters[1], cut, first, end, true, holders)};
        product.out_width = 0;
        for (auto r = first; r < end; ++r) {
            product.out_width += static_cast<int>(cut.runs[r].count());
        }
        result.ops.push_back({.own = product, .column = column});
        column += product.out_width;
    }
}

/// The rows of the weight that belong to the shard's columns of the input: a partial product, then the sum over the shards with the bias.
constexpr void sharder::add_product_of_rows(std::size_t o)
{
    auto own = layer_.ops[o];
    if (!is(o, own.x[0], slot_form::cut)) {
        return;
    }
    if (own.kind != op_kind::linear) {
        complain(o) << "activates a sum over shards, which is not rounded before: a linear and a gelu are wanted";
        return;
    }
    auto const& cut = at(own.x[0]).cut;
    auto const bias = add_whole(own.parameters[1]);
    auto const partial = add_slot(own.out_width, slot_form::partial);
    auto const strips = add_slot(own.out_width, slot_form::strip);
    at(own.z[0]) = {.slot = strips, .gathered = no_slot};
    own.x[0] = at(own.x[0]).slot;
    own.z[0] = partial;
    own.parameters = {add_part(own.parameters[0], cut, 0, cut.runs.size(), false, {result.shard, result.shard + 1}), no_parameter};
    own.in_width = static_cast<int>(cut.count());
    result.ops.push_back({.own = own});
    add_exchange(o, shard_op_kind::sum_shards, partial, strips, bias, own.out_width);
}

constexpr void sharder::add_unembed(std::size_t o)
{
    auto own = layer_.ops[o];
    if (!is(o, own.x[0], slot_form::strip)) {
        return;
    }
    auto const cut = cut_plainly(o, own.out_width);
    if (!fault.empty()) {
        return;
    }
    own.x[0] = gathered(o, own.x[0]);
    at(own.z[0]) = {.slot = add_slot(cut.count(), slot_form::cut), .gathered = no_slot, .cut = cut};
    own.z[0] = at(own.z[0]).slot;
    own.parameters[0] = add_part(own.parameters[0], cut, 0, 1, false, {result.shard, result.shard + 1});
    own.out_width = static_cast<int>(cut.count());
    result.ops.push_back({.own = own});
}

/// Over the shard's tokens; what the shards know of a row they exchange within it.
constexpr void sharder::add_loss(std::size_t o)
{
    auto own = layer_.ops[o];
    if (!is(o, own.x[0], slot_form::cut)) {
        return;
    }
    auto const& read = at(own.x[0]);
    shard_op result_op{.part = read.cut.runs[0], .all = own.in_width};
    own.x[0] = read.slot;
    own.in_width = static_cast<int>(read.cut.count());
    result_op.own = own;
    result.ops.push_back(result_op);
}

/// The layer as it is, as the only shard of its grid.
constexpr shard_layer only_shard(layer_description const& layer)
{
    shard_layer result{.output = layer.output};
    for (auto const& o : layer.ops) {
        result.ops.push_back({.own = o});
    }
    for (auto const width : layer.slot_widths) {
        result.slot_widths.push_back(width);
        result.forms.push_back(slot_form::whole);
    }
    for (std::size_t p = 0; p < layer.parameters.size(); ++p) {
        fixed_vector<index_box, 3> pieces;
        pieces.push_back(whole(layer.parameters[p].shape));
        result.parameters.push_back({.of = static_cast<int>(p), .shape = layer.parameters[p].shape, .pieces = pieces, .holders = {0, 1}});
    }
    return result;
}

}  // namespace detail

template <class OnlyWhenCalled>
constexpr layer_error sharding_error(layer_description const& layer, int grid)
{
    if (grid < 1 || grid > most_shards) {
        layer_error fault;
        fault << "a grid has 1 to " << most_shards << " shards, not " << grid;
        return fault;
    }
    return grid == 1 ? layer_error{} : detail::sharder{layer, grid, 0}.fault;
}

template <class OnlyWhenCalled>
constexpr shard_layer sharded(layer_description const& layer, int grid, int shard)
{
    if (auto const fault = sharding_error(layer, grid); !fault.empty()) {
        throw precondition_error{std::string{fault.view()}};
    }
    expects(shard >= 0 && shard < grid, "a shard is one of its grid");
    return grid == 1 ? detail::only_shard(layer) : detail::sharder{layer, grid, shard}.result;
}

#ifdef RHEO_COMPILED  // in rheo::compiled
extern template shard_layer sharded<>(layer_description const&, int, int);
#endif

}  // namespace rheo::inline v0
