#pragma once
// SPDX-License-Identifier: Apache-2.0

// A shard of a layer as a value: what one shard of the grid computes, alone, and where it exchanges with the others. The rows of an item are cut into
// strips, one for each shard, for what works row by row; products work on all rows and on the shard's own columns. Three exchanges stand between them:
// gather_rows (strips to all rows), sum_shards (partial products to strips: the fixed tree of shard_grid.hpp, then the bias, then one rounding) and
// collect_rows (each row from the shard that wrote it to its strip). Backward each is the other way round: strips of a gather's gradient are sums of
// the shards' partial ones, and the gradient of a sum or of collected rows is gathered.

#include <cstdint>

#include "rheo/model/layer.hpp"
#include "rheo/tensor/box.hpp"
#include "rheo/tensor/fixed_vector.hpp"
#include "rheo/tensor/shard_grid.hpp"

namespace rheo::inline v0 {

/// What a shard has of a slot.
enum class slot_form : std::uint8_t {
    whole,      ///< all of it: in a grid of one, and tokens
    strip,      ///< a strip of its rows, at their whole width
    gathered,   ///< all rows at their whole width, which all shards have alike
    cut,        ///< all rows of the shard's own columns
    partial,    ///< all rows at their whole width, in the type that is computed in: the shard's part of a sum
    scattered,  ///< the rows whose tokens are in the shard's rows of the token table
};

enum class shard_op_kind : std::uint8_t {
    operation,     ///< one of the layer's, on what the shard has
    gather_rows,   ///< x[0], strips -> z[0], gathered
    sum_shards,    ///< x[0], partial -> z[0], strips: + parameters[1], the bias, where there is one
    collect_rows,  ///< x[0], scattered -> z[0], strips
};

struct shard_op {
    shard_op_kind kind = shard_op_kind::operation;
    op own{};                 ///< with the shard's slots, parameters, widths and heads; its id is that of the layer's operation
    int column = 0;           ///< of z[0], where the columns of a linear begin that has a part of the slot
    shard_range part{};       ///< the shard's heads of an attention, its rows of a token table, its tokens of a loss
    std::int64_t all = 0;     ///< how many of these the whole layer has
    shard_range positions{};  ///< of an embedding with a table of positions: those to whose gradient the shard contributes

    friend constexpr bool operator==(shard_op const&, shard_op const&) = default;
};

/// A tensor that the shard holds: up to three boxes of a parameter of the layer, side by side or one below the other.
struct shard_parameter {
    int of = no_parameter;  ///< of the layer's list
    tensor_shape shape{};
    fixed_vector<index_box, 3> pieces{};
    shard_range holders{};  ///< the shards that hold it; of several each contributes to its gradient

    friend constexpr bool operator==(shard_parameter const&, shard_parameter const&) = default;
};

struct shard_layer {
    int grid = 1;
    int shard = 0;
    int output = no_slot;
    fixed_vector<shard_op, 24> ops{};
    fixed_vector<int, 24> slot_widths{};
    fixed_vector<slot_form, 24> forms{};  ///< of the slots
    fixed_vector<shard_parameter, 24> parameters{};

    friend constexpr bool operator==(shard_layer const&, shard_layer const&) = default;
};

}  // namespace rheo::inline v0
