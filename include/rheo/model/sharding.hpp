#pragma once
// SPDX-License-Identifier: Apache-2.0

// Sharding as a rewrite of a layer's operation list, as fusion is, and after it or without it: a product of strips has the shard's columns of its weight
// (the heads that attend, in units of 16 columns before an activation), the product behind it the same rows of the next weight. The shapes of a shard
// follow from the grid and its number alone, never from how many ranks a stage has. A grid of one inserts nothing.
//
// Fewer heads of keys and values than shards: each head's columns are a tensor of their own, which the shards that use it share.

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "rheo/model/layer_error.hpp"
#include "rheo/model/op_shapes.hpp"
#include "rheo/model/shard_layer.hpp"
#include "rheo/units/expects.hpp"

namespace rheo::inline v0 {

/// Columns and rows of the token table are cut at multiples of this.
inline constexpr int shard_unit = 16;

/// The heads of a shard. @pre the heads can be cut into the grid
struct shard_heads {
    shard_range queries;
    shard_range keys;    ///< and values
    shard_range shared;  ///< the shards that have these keys and values
};

constexpr shard_heads heads_of(int heads, int kv_heads, int grid, int shard)
{
    if (grid <= kv_heads) {
        auto const keys = cut_evenly(kv_heads, grid, shard);
        auto const group = heads / kv_heads;
        return {.queries = {keys.begin * group, keys.end * group}, .keys = keys, .shared = {shard, shard + 1}};
    }
    auto const each = grid / kv_heads;
    auto const key = shard / each;
    return {.queries = cut_evenly(heads, grid, shard), .keys = {key, key + 1}, .shared = {std::int64_t{key} * each, std::int64_t{key + 1} * each}};
}

namespace detail {

/// Which columns of a slot a shard has, in up to three runs; `apart` runs behind the first are shared with other shards.
struct column_cut {
    fixed_vector<shard_range, 3> runs{};
    shard_range shared{};
    bool apart = false;

    constexpr std::int64_t count() const
    {
        std::int64_t all = 0;
        for (auto const& run : runs) {
            all += run.count();
        }
        return all;
    }
};

/// Walks through the operations once; stops at what cannot be sharded and leaves the sentence.
class sharder {
public:
    constexpr sharder(layer_description const& layer, int grid, int shard) : layer_{layer}
    {
        result.grid = grid;
        result.shard = shard;
        for (auto& none : places_) {
            none = {no_slot, no_slot};
        }
        places_[0].slot = add_slot(layer.in_width, layer.in_width == 0 ? slot_form::whole : slot_form::strip);
        for (std::size_t o = 0; o < layer.ops.size() && fault.empty(); ++o) {
            add(o);
        }
        refuse_two_ways();
        result.output = layer.output == no_slot ? no_slot : places_[static_cast<std::size_t>(layer.output)].slot;
    }

    shard_layer result{};
    layer_error fault{};

private:
    struct slot_place {
        int slot;      ///< of the shard's layer
        int gathered;  ///< the same with all rows
        column_cut cut{};
    };

    constexpr slot_place& at(int slot) { return places_[static_cast<std::size_t>(slot)]; }
    constexpr slot_form form_of(int slot) { return result.forms[static_cast<std::size_t>(at(slot).slot)]; }
    constexpr layer_error& complain(std::size_t o)
    {
        return fault << "operation " << static_cast<std::int64_t>(o) << " (" << name_of(layer_.ops[o].kind) << ") ";
    }

    constexpr int add_slot(std::int64_t width, slot_form form)
    {
        result.slot_widths.push_back(static_cast<int>(width));
        result.forms.push_back(form);
        return static_cast<int>(result.slot_widths.size()) - 1;
    }

    /// The tensor of these boxes; the same one where an operation before has it.
    constexpr int add_parameter(int of, fixed_vector<index_box, 3> const& pieces, tensor_shape shape, shard_range holders)
    {
        if (of == no_parameter) {
            return no_parameter;
        }
        shard_parameter const wanted{.of = of, .shape = shape, .pieces = pieces, .holders = holders};
        for (std::size_t p = 0; p < result.parameters.size(); ++p) {
            if (result.parameters[p] == wanted) {
                return static_cast<int>(p);
            }
        }
        result.parameters.push_back(wanted);
        return static_cast<int>(result.parameters.size()) - 1;
    }
    constexpr int add_whole(int of)
    {
        if (of == no_parameter) {
            return no_parameter;
        }
        auto const shape = layer_.parameters[static_cast<std::size_t>(of)].shape;
        fixed_vector<index_box, 3> pieces;
        pieces.push_back(whole(shape));
        return add_parameter(of, pieces, shape, {0, result.grid});
    }
    /// Columns, or rows, `first` .. of the runs.
    constexpr int add_part(int of, column_cut const& cut, std::size_t first, std::size_t last, bool columns, shard_range holders)
    {
        if (of == no_parameter) {
            return no_parameter;
        }
        auto shape = layer_.parameters[static_cast<std::size_t>(of)].shape;
        fixed_vector<index_box, 3> pieces;
        std::int64_t count = 0;
        for (auto r = first; r < last; ++r) {
            auto const run = cut.runs[r];
            pieces.push_back(columns ? index_box{0, shape.rows, run.begin, run.end} : index_box{run.begin, run.end, 0, shape.columns});
            count += run.count();
        }
        (columns ? shape.columns : shape.rows) = count;
        return add_parameter(of, pieces, shape, holders);
    }

    constexpr column_cut cut_plainly(std::size_t o, std::int64_t width)
    {
        column_cut cut;
        if ((width + shard_unit - 1) / shard_unit < result.grid) {
            complain(o) << "is " << width << " wide, too few for " << result.grid << " shards: they are cut at multiples of " << shard_unit;
        } else {
            cut.runs.push_back(cut_in_units(width, shard_unit, result.grid, result.shard));
        }
        return cut;
    }

    constexpr bool heads_fit(std::size_t o)
    {
        auto const& op = layer_.ops[o];
        auto const kv = kv_heads_of(op);
        if (op.heads < result.grid) {
            complain(o) << "has " << op.heads << " heads, too few for " << result.grid << " shards: each has one or more";
            return false;
        }
        if (result.grid > kv && result.grid % kv != 0) {
            complain(o) << "has " << kv << " heads of keys and values: shards are at most as many, or a multiple of them, not " << result.grid;
            return false;
        }
        return true;
    }

    /// What the shard has of a slot that operation `writer` writes: what the operation wants that reads it.
    constexpr column_cut cut_for_reader(std::size_t writer, int slot)
    {
        for (std::size_t o = writer + 1; o < layer_.ops.size(); ++o) {
            auto const& op = layer_.ops[o];
            if (op.x[0] != slot) {
                continue;
            }
            if (op.kind == op_kind::rope || op.kind == op_kind::attention || op.kind == op_kind::qk_norm) {
                return heads_fit(o) ? cut_heads(op) : column_cut{};
            }
            if (op.kind == op_kind::swiglu) {
                auto cut = cut_plainly(o, op.out_width);
                if (fault.empty()) {
                    auto const gate = cut.runs[0];
                    cut.runs.push_back({gate.begin + op.out_width, gate.end + op.out_width});
                }
                return cut;
            }
            break;
        }
        return cut_plainly(writer, layer_.slot_widths[static_cast<std::size_t>(slot)]);
    }
    constexpr column_cut cut_heads(op const& o) const
    {
        auto const heads = heads_of(o.heads, kv_heads_of(o), result.grid, result.shard);
        std::int64_t const d = head_width(o), k = o.heads * d, v = k + kv_heads_of(o) * d;
        column_cut cut{.shared = heads.shared, .apart = heads.shared.count() > 1};
        cut.runs.push_back({heads.queries.begin * d, heads.queries.end * d});
        cut.runs.push_back({k + heads.keys.begin * d, k + heads.keys.end * d});
        cut.runs.push_back({v + heads.keys.begin * d, v + heads.keys.end * d});
        return cut;
    }

    /// All rows of a slot of strips, gathered once.
    constexpr int gathered(std::size_t o, int slot)
    {
        auto& known = at(slot);
        if (known.gathered == no_slot) {
            auto const width = layer_.slot_widths[static_cast<std::size_t>(slot)];
            known.gathered = add_slot(width, slot_form::gathered);
            add_exchange(o, shard_op_kind::gather_rows, known.slot, known.gathered, no_parameter, width);
        }
        return known.gathered;
    }
    constexpr void add_exchange(std::size_t o, shard_op_kind kind, int from, int to, int bias, int width)
    {
        result.ops.push_back(
            {.kind = kind,
             .own = {
                 .id = layer_.ops[o].id, .x = {from, no_slot}, .z = {to, no_slot}, .parameters = {no_parameter, bias}, .in_width = width, .out_width = width}});
    }

    constexpr bool is(std::size_t o, int slot, slot_form wanted)
    {
        if (form_of(slot) == wanted) {
            return true;
        }
        complain(o) << "reads slot " << slot << (wanted == slot_form::strip ? ", of which a shard has columns alone" : ", of which a shard has no columns");
        return false;
    }

    constexpr void add(std::size_t o)
    {
        switch (layer_.ops[o].kind) {
        case op_kind::embedding: return add_embedding(o);
        case op_kind::linear:
        case op_kind::linear_gelu: return form_of(layer_.ops[o].x[0]) == slot_form::strip ? add_product_of_columns(o) : add_product_of_rows(o);
        case op_kind::unembed: return add_unembed(o);
        case op_kind::gelu:
        case op_kind::swiglu:
        case op_kind::rope:
        case op_kind::qk_norm:
        case op_kind::attention: return add_of_columns(o);
        case op_kind::cross_entropy:
        case op_kind::loss_gradient: return add_loss(o);
        case op_kind::layer_norm:
        case op_kind::rms_norm:
        case op_kind::residual_add:
        case op_kind::residual_norm:
        case op_kind::residual_rms_norm: return add_of_rows(o);
        }
    }

    /// A gradient would come to the strips from both sides, in an order that the layer does not say.
    constexpr void refuse_two_ways()
    {
        for (auto const& gather : result.ops) {
            for (std::size_t o = 0; o < result.ops.size() && fault.empty() && gather.kind == shard_op_kind::gather_rows; ++o) {
                auto const& other = result.ops[o];
                if (other.kind == shard_op_kind::operation && (other.own.x[0] == gather.own.x[0] || other.own.x[1] == gather.own.x[0])) {
                    fault << "operation " << std::int64_t{other.own.id.value} << " (" << name_of(other.own.kind)
                          << ") reads row by row what a product reads, too: on a grid of shards a norm comes between";
                }
            }
        }
    }

    constexpr void add_of_rows(std::size_t o);
    constexpr void add_of_columns(std::size_t o);
    constexpr void add_embedding(std::size_t o);
    constexpr void add_product_of_columns(std::size_t o);
    constexpr void add_product_of_rows(std::size_t o);
    constexpr void add_unembed(std::size_t o);
    constexpr void add_loss(std::size_t o);

    layer_description const& layer_;
    std::array<slot_place, 16> places_{};
};

}  // namespace detail

/// Why a layer cannot be cut into a grid of shards, as one sentence; empty: it can. @pre error_of(layer) is empty
template <class OnlyWhenCalled = void>
constexpr layer_error sharding_error(layer_description const& layer, int grid);

/// What shard `shard` of the grid computes of the layer. @throws precondition_error with sharding_error's sentence. @pre error_of(layer) is empty
template <class OnlyWhenCalled = void>
constexpr shard_layer sharded(layer_description const& layer, int grid, int shard);

}  // namespace rheo::inline v0

#include "rheo/model/detail/sharder.hpp"
