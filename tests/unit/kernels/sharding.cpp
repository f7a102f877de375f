// SPDX-License-Identifier: Apache-2.0
// The operations of all shards of a layer, run one after the other by the definitions of the kernels in double, compute what the layer's own list computes:
// its output, the gradient of its input, and the gradients of its parameters.
#include "rheo/model/sharding.hpp"

#include <functional>
#include <initializer_list>

#include "kernels/attention/attention.hpp"
#include "kernels/cross_entropy/cross_entropy.hpp"
#include "kernels/embedding/embedding.hpp"
#include "kernels/layer_norm/layer_norm.hpp"
#include "kernels/linear/linear.hpp"
#include "kernels/qk_norm/qk_norm.hpp"
#include "kernels/residual_add/residual_add.hpp"
#include "kernels/rms_norm/rms_norm.hpp"
#include "kernels/rope/rope.hpp"
#include "kernels/shard_sum/shard_sum.hpp"
#include "kernels/swiglu/swiglu.hpp"
#include "rheo/model/fusion.hpp"
#include "rheo/model/gpt.hpp"
#include "rheo/model/llama.hpp"
#include "support.hpp"

using namespace rheo;
using namespace support;

namespace {

constexpr std::int64_t batch = 2, length = 5, rows = batch * length;
constexpr double epsilon = 1e-5;
constexpr std::int64_t rope_width = 8;  // of a head

/// What goes into a layer, and what comes out.
struct item {
    doubles input;           // [rows, in_width]
    int32s tokens, targets;  // [rows]
    std::vector<doubles> parameters;
    doubles output_gradient;  // [rows, out_width]
};
struct results {
    doubles output, input_gradient;
    std::vector<doubles> parameter_gradients;
    loss_sum loss;
};

/// The operations that a fused one stands for.
std::vector<shard_op> unfused(shard_op const& o)
{
    std::vector<shard_op> parts{o, o};
    auto& first = parts[0].own;
    auto& second = parts[1].own;
    switch (o.own.kind) {
    case op_kind::linear_gelu:
        first.kind = op_kind::linear;
        second.kind = op_kind::gelu;
        second.in_width = second.out_width;
        break;
    case op_kind::residual_norm:
    case op_kind::residual_rms_norm:
        first.kind = op_kind::residual_add;
        second.kind = o.own.kind == op_kind::residual_norm ? op_kind::layer_norm : op_kind::rms_norm;
        break;
    case op_kind::loss_gradient: first.kind = op_kind::cross_entropy; [[fallthrough]];
    default: parts.pop_back(); return parts;
    }
    first.z = {o.own.z[0], no_slot};
    second.x = {o.own.z[0], no_slot};
    second.z = {o.own.z[1], no_slot};
    return parts;
}

/// All shards of a layer on one rank. What shards have alike, or each a strip of, lies once; what is a shard's own lies apart.
class shards_on_one_rank {
public:
    shards_on_one_rank(layer_description const& layer, int grid, item const& in) : layer_{layer}, grid_{grid}, in_{in}
    {
        for (int j = 0; j < grid; ++j) {
            auto& s = shards_.emplace_back();
            s.is = sharded(layer, grid, j);
            for (std::size_t i = 0; i < s.is.slot_widths.size(); ++i) {
                s.slots.emplace_back(size(rows * s.is.slot_widths[i]));
                s.gradients.emplace_back(s.slots.back().size());
            }
            for (auto const& p : s.is.parameters) {
                s.parameters.push_back(packed(p));
                s.parameter_gradients.emplace_back(s.parameters.back().size());
            }
            s.saved.resize(s.is.ops.size());
        }
        has_.resize(shards_[0].is.forms.size());
        statistics_.resize(size(grid * rows));
        floats turns(size(length * rope_width));
        fill_rope_table(length, rope_width, 10000, turns.data());
        turns_ = wide(turns);
    }

    results run()
    {
        auto const ops = shards_[0].is.ops.size();
        if (layer_.in_width > 0) {
            slot(0, 0) = in_.input;
        }
        for (std::size_t o = 0; o < ops; ++o) {
            exchange_forward(o);
            for (int j = 0; j < grid_; ++j) {
                forward(o, j);
            }
            for (int j = 0; j < grid_ && is_loss(shards_[0].is.ops[o].own.kind); ++j) {
                finish_loss(o, j);
            }
        }
        auto const output = shards_[0].is.output;
        results r{.output = output == no_slot ? doubles{} : slot(0, output), .input_gradient = {}, .parameter_gradients = {}, .loss = loss_};
        if (output != no_slot) {
            gradient(0, output) = in_.output_gradient;
        }
        for (std::size_t o = ops; o-- > 0;) {
            exchange_backward(o);
            for (int j = 0; j < grid_; ++j) {
                backward(o, j);
            }
            for (auto const x : shards_[0].is.ops[o].own.x) {
                if (x != no_slot) {
                    has_[size(x)] = true;
                }
            }
        }
        r.input_gradient = layer_.in_width > 0 ? gradient(0, 0) : doubles{};
        collect(r);
        return r;
    }

private:
    struct one_shard {
        shard_layer is;
        std::vector<doubles> slots, gradients, parameters, parameter_gradients;
        std::vector<doubles> saved;  // by its operations
    };

    /// Calls f(element of the tensor, element of the whole parameter): the pieces lie side by side, or one below the other.
    template <class F>
    void walk(shard_parameter const& p, F f) const
    {
        auto const whole_shape = layer_.parameters[size(p.of)].shape;
        bool const below = p.shape.columns == whole_shape.columns;
        std::int64_t row = 0, column = 0;
        for (auto const& box : p.pieces) {
            for (auto r = box.row_begin; r < box.row_end; ++r) {
                for (auto c = box.column_begin; c < box.column_end; ++c) {
                    f(size((row + r - box.row_begin) * p.shape.columns + column + c - box.column_begin), size(r * whole_shape.columns + c));
                }
            }
            (below ? row : column) += below ? box.row_end - box.row_begin : box.column_end - box.column_begin;
        }
    }
    doubles packed(shard_parameter const& p) const
    {
        doubles result(size(elements(p.shape)));
        walk(p, [&](std::size_t own, std::size_t all) { result[own] = in_.parameters[size(p.of)][all]; });
        return result;
    }

    slot_form form(int s) const { return shards_[0].is.forms[size(s)]; }
    doubles& slot(int j, int s)
    {
        bool const apart = form(s) == slot_form::cut || form(s) == slot_form::partial;
        return shards_[apart ? size(j) : 0].slots[size(s)];
    }
    /// A gathered slot's gradient is partial, a partial slot's is gathered.
    doubles& gradient(int j, int s)
    {
        bool const apart = form(s) == slot_form::cut || form(s) == slot_form::gathered;
        return shards_[apart ? size(j) : 0].gradients[size(s)];
    }
    /// The rows that a shard has of what is row-wise.
    shard_range strip(int j) const { return cut_evenly(rows, grid_, j); }
    double const* parameter(int j, int p) const { return p == no_parameter ? nullptr : shards_[size(j)].parameters[size(p)].data(); }
    gradient_sum<fp64> to_parameter(int j, int p) { return {p == no_parameter ? nullptr : shards_[size(j)].parameter_gradients[size(p)].data()}; }
    dropout drop(op const& o, std::int64_t first_row) const
    {
        return {.probability = o.dropout_per_mille / 1000.0, .key = {.seed = 3, .op = o.id}, .rows = {.begin = first_row}};
    }
    void add_up(std::function<doubles&(int)> const& of, double const* bias, doubles& to) const
    {
        shard_sum_arguments<fp64> a{.rows = rows, .width = std::ssize(to) / rows, .count = grid_, .nodes = {}, .bias = bias, .output = to.data()};
        for (int j = 0; j < grid_; ++j) {
            a.nodes[size(j)].values = of(j).data();
        }
        definition::shard_sum(a);
    }

    void exchange_forward(std::size_t index)
    {
        auto const& o = shards_[0].is.ops[index];
        auto const x = o.own.x[0], z = o.own.z[0];
        switch (o.kind) {
        case shard_op_kind::operation: break;
        case shard_op_kind::gather_rows:
        case shard_op_kind::collect_rows: slot(0, z) = slot(0, x); break;
        case shard_op_kind::sum_shards: add_up([&](int j) -> doubles& { return slot(j, x); }, parameter(0, o.own.parameters[1]), slot(0, z)); break;
        }
    }
    void exchange_backward(std::size_t index)
    {
        auto const& o = shards_[0].is.ops[index];
        auto const x = o.own.x[0], z = o.own.z[0];
        if (o.kind == shard_op_kind::gather_rows) {
            add_up([&](int j) -> doubles& { return gradient(j, z); }, nullptr, gradient(0, x));
        } else if (o.kind != shard_op_kind::operation) {
            gradient(0, x) = gradient(0, z);
        }
    }

    void forward(std::size_t index, int j)
    {
        for (auto const& o : unfused(shards_[size(j)].is.ops[index])) {
            forward_of(o, index, j);
        }
    }
    void backward(std::size_t index, int j)
    {
        auto const parts = unfused(shards_[size(j)].is.ops[index]);
        for (auto o = parts.size(); o-- > 0;) {
            backward_of(parts[o], index, j);
        }
    }
    void forward_of(shard_op const& o, std::size_t index, int j);
    void backward_of(shard_op const& o, std::size_t index, int j);
    void norm_backward(shard_op const& o, std::size_t index, int j);
    void linear_backward(shard_op const& o, int j);
    void finish_loss(std::size_t index, int j);
    void turn(op const& o, doubles const& from, doubles& to, bool back) const;
    void collect(results& r) const;

    layer_description const& layer_;
    int grid_;
    item const& in_;
    std::vector<one_shard> shards_;
    std::vector<bool> has_;  ///< of each slot whether it has a gradient
    std::vector<row_statistics> statistics_;
    doubles turns_;
    loss_sum loss_{};
};

/// Row-wise operations run on the shard's strip, which a grid of one has whole.
void shards_on_one_rank::forward_of(shard_op const& o, std::size_t index, int j)
{
    auto& s = shards_[size(j)];
    auto const& own = o.own;
    if (o.kind != shard_op_kind::operation) {
        return;
    }
    auto const [begin, end] = strip(j);
    auto const count = end - begin, at = begin * own.in_width;
    auto& saved = s.saved[index];
    switch (own.kind) {
    case op_kind::embedding:
        definition::embedding_forward<fp64>({.batch = batch,
                                             .length = length,
                                             .width = own.out_width,
                                             .vocabulary = grid_ == 1 ? own.in_width : o.all,
                                             .tokens = in_.tokens.data(),
                                             .token_table = parameter(j, own.parameters[0]),
                                             .position_table = parameter(j, own.parameters[1]),
                                             .drop = drop(own, 0),
                                             .output = slot(j, own.z[0]).data(),
                                             .token_begin = o.part.begin,
                                             .token_end = o.part.end});
        break;
    case op_kind::layer_norm:
        saved.resize(size(2 * rows));
        definition::layer_norm_forward<fp64>({.rows = count,
                                              .width = own.in_width,
                                              .epsilon = epsilon,
                                              .input = slot(j, own.x[0]).data() + at,
                                              .gamma = parameter(j, own.parameters[0]),
                                              .beta = parameter(j, own.parameters[1]),
                                              .output = slot(j, own.z[0]).data() + at,
                                              .mean = saved.data() + begin,
                                              .rstd = saved.data() + rows + begin});
        break;
    case op_kind::rms_norm:
        saved.resize(size(rows));
        definition::rms_norm_forward<fp64>({.rows = count,
                                            .width = own.in_width,
                                            .epsilon = epsilon,
                                            .input = slot(j, own.x[0]).data() + at,
                                            .gamma = parameter(j, own.parameters[0]),
                                            .output = slot(j, own.z[0]).data() + at,
                                            .rstd = saved.data() + begin});
        break;
    case op_kind::residual_add:
        definition::residual_add_forward<fp64>({.rows = count,
                                                .width = own.in_width,
                                                .stream = slot(j, own.x[0]).data() + at,
                                                .branch = slot(j, own.x[1]).data() + at,
                                                .drop = drop(own, begin),
                                                .output = slot(j, own.z[0]).data() + at});
        break;
    case op_kind::linear:
    case op_kind::unembed: {
        bool const partial = form(own.z[0]) == slot_form::partial;
        auto* const to = slot(j, own.z[0]).data() + o.column;
        definition::linear_forward<fp64>({.rows = rows,
                                          .in = own.in_width,
                                          .out = own.out_width,
                                          .order = own.kind == op_kind::linear ? weight_order::in_out : weight_order::out_in,
                                          .input = slot(j, own.x[0]).data(),
                                          .weight = parameter(j, own.parameters[0]),
                                          .bias = parameter(j, own.parameters[1]),
                                          .output = partial ? nullptr : to,
                                          .partial = partial ? to : nullptr,
                                          .output_row = partial ? 0 : s.is.slot_widths[size(own.z[0])]});
        break;
    }
    case op_kind::gelu:
        definition::gelu_forward<fp64>({.count = rows * own.in_width, .input = slot(j, own.x[0]).data(), .output = slot(j, own.z[0]).data()});
        break;
    case op_kind::swiglu:
        definition::swiglu_forward<fp64>({.rows = rows, .width = own.out_width, .input = slot(j, own.x[0]).data(), .output = slot(j, own.z[0]).data()});
        break;
    case op_kind::qk_norm:
        saved.resize(size((own.heads + kv_heads_of(own)) * rows));
        definition::qk_norm_forward<fp64>({.rows = rows,
                                           .heads = own.heads,
                                           .kv_heads = kv_heads_of(own),
                                           .head_width = head_width(own),
                                           .epsilon = epsilon,
                                           .input = slot(j, own.x[0]).data(),
                                           .query_gamma = parameter(j, own.parameters[0]),
                                           .key_gamma = parameter(j, own.parameters[1]),
                                           .output = slot(j, own.z[0]).data(),
                                           .rstd = saved.data()});
        break;
    case op_kind::rope: turn(own, slot(j, own.x[0]), slot(j, own.z[0]), false); break;
    case op_kind::attention:
        saved.resize(size(batch * own.heads * length));
        definition::attention_forward<fp64>({.batch = batch,
                                             .length = length,
                                             .width = own.out_width,
                                             .heads = own.heads,
                                             .kv_heads = own.kv_heads,
                                             .qkv = slot(j, own.x[0]).data(),
                                             .drop = drop(own, 0),
                                             .first_head = o.part.begin,
                                             .all_heads = o.all,
                                             .output = slot(j, own.z[0]).data(),
                                             .log_sum_exp = saved.data()});
        break;
    case op_kind::cross_entropy:
        definition::cross_entropy_statistics<fp64>(
            {.rows = rows, .vocabulary = own.in_width, .logits = slot(j, own.x[0]).data(), .statistics = statistics_.data() + j * rows});
        break;
    default: FAIL("an operation that no layer of these tests has");
    }
}

void shards_on_one_rank::turn(op const& o, doubles const& from, doubles& to, bool back) const
{
    auto const kept = kv_heads_of(o);
    definition::rope<fp64>({.rows = rows,
                            .length = length,
                            .turned = o.heads + kept,
                            .kept = kept,
                            .head_width = head_width(o),
                            .table = turns_.data(),
                            .input = from.data(),
                            .output = to.data(),
                            .back = back});
}

void shards_on_one_rank::finish_loss(std::size_t index, int j)
{
    auto const& o = shards_[size(j)].is.ops[index];
    definition::cross_entropy_finish<fp64>({.rows = rows,
                                            .vocabulary = o.own.in_width,
                                            .first_token = o.part.begin,
                                            .all_tokens = grid_ == 1 ? o.own.in_width : o.all,
                                            .shards = grid_,
                                            .statistics = statistics_.data(),
                                            .logits = slot(j, o.own.x[0]).data(),
                                            .targets = in_.targets.data(),
                                            .logits_gradient = gradient(j, o.own.x[0]).data(),
                                            .loss = &loss_});
}

void shards_on_one_rank::norm_backward(shard_op const& o, std::size_t index, int j)
{
    auto& s = shards_[size(j)];
    auto const& own = o.own;
    auto const [begin, end] = strip(j);
    auto const at = begin * own.in_width;
    auto const& saved = s.saved[index];
    auto* const dx = gradient(j, own.x[0]).data() + at;
    auto const* const bypass = has_[size(own.x[0])] ? dx : nullptr;
    auto const* const x = slot(j, own.x[0]).data() + at;
    auto const* const dy = gradient(j, own.z[0]).data() + at;
    if (own.kind == op_kind::layer_norm) {
        definition::layer_norm_backward_weight<fp64>({.rows = end - begin,
                                                      .width = own.in_width,
                                                      .input = x,
                                                      .mean = saved.data() + begin,
                                                      .rstd = saved.data() + rows + begin,
                                                      .output_gradient = dy,
                                                      .gamma_gradient = to_parameter(j, own.parameters[0]),
                                                      .beta_gradient = to_parameter(j, own.parameters[1])});
        definition::layer_norm_backward_input<fp64>({.rows = end - begin,
                                                     .width = own.in_width,
                                                     .input = x,
                                                     .gamma = parameter(j, own.parameters[0]),
                                                     .mean = saved.data() + begin,
                                                     .rstd = saved.data() + rows + begin,
                                                     .output_gradient = dy,
                                                     .bypass_gradient = bypass,
                                                     .input_gradient = dx});
        return;
    }
    definition::rms_norm_backward_weight<fp64>({.rows = end - begin,
                                                .width = own.in_width,
                                                .input = x,
                                                .rstd = saved.data() + begin,
                                                .output_gradient = dy,
                                                .gamma_gradient = to_parameter(j, own.parameters[0])});
    definition::rms_norm_backward_input<fp64>({.rows = end - begin,
                                               .width = own.in_width,
                                               .input = x,
                                               .gamma = parameter(j, own.parameters[0]),
                                               .rstd = saved.data() + begin,
                                               .output_gradient = dy,
                                               .bypass_gradient = bypass,
                                               .input_gradient = dx});
}

void shards_on_one_rank::linear_backward(shard_op const& o, int j)
{
    auto const& own = o.own;
    auto const order = own.kind == op_kind::linear ? weight_order::in_out : weight_order::out_in;
    auto const* const dy = gradient(j, own.z[0]).data() + o.column;
    std::int64_t const step = shards_[size(j)].is.slot_widths[size(own.z[0])];
    bool const partial = form(own.x[0]) == slot_form::gathered;
    auto* const dx = gradient(j, own.x[0]).data();
    definition::linear_backward_input<fp64>({.rows = rows,
                                             .in = own.in_width,
                                             .out = own.out_width,
                                             .order = order,
                                             .weight = parameter(j, own.parameters[0]),
                                             .output_gradient = dy,
                                             .input_gradient = partial ? nullptr : dx,
                                             .accumulate = has_[size(own.x[0])],
                                             .partial = partial ? dx : nullptr,
                                             .output_gradient_row = step});
    definition::linear_backward_weight<fp64>({.rows = rows,
                                              .in = own.in_width,
                                              .out = own.out_width,
                                              .order = order,
                                              .input = slot(j, own.x[0]).data(),
                                              .output_gradient = dy,
                                              .weight_gradient = to_parameter(j, own.parameters[0]),
                                              .output_gradient_row = step});
    if (own.parameters[1] != no_parameter) {
        definition::linear_backward_bias<fp64>(
            {.rows = rows, .out = own.out_width, .output_gradient = dy, .bias_gradient = to_parameter(j, own.parameters[1]), .output_gradient_row = step});
    }
}

void shards_on_one_rank::backward_of(shard_op const& o, std::size_t index, int j)
{
    auto& s = shards_[size(j)];
    auto const& own = o.own;
    auto const [begin, end] = strip(j);
    auto const at = begin * own.in_width;
    if (o.kind == shard_op_kind::sum_shards && own.parameters[1] != no_parameter) {  // the bias, of the shard's strip
        definition::linear_backward_bias<fp64>({.rows = end - begin,
                                                .out = own.out_width,
                                                .output_gradient = gradient(j, own.z[0]).data() + at,
                                                .bias_gradient = to_parameter(j, own.parameters[1])});
    }
    if (o.kind != shard_op_kind::operation) {
        return;
    }
    switch (own.kind) {
    case op_kind::embedding:
        definition::embedding_backward_weight<fp64>({.batch = batch,
                                                     .length = length,
                                                     .width = own.out_width,
                                                     .vocabulary = grid_ == 1 ? own.in_width : o.all,
                                                     .tokens = in_.tokens.data(),
                                                     .output_gradient = gradient(j, own.z[0]).data(),
                                                     .drop = drop(own, 0),
                                                     .token_gradient = to_parameter(j, own.parameters[0]),
                                                     .position_gradient = to_parameter(j, own.parameters[1]),
                                                     .token_begin = o.part.begin,
                                                     .token_end = o.part.end,
                                                     .position_begin = o.positions.begin,
                                                     .position_end = o.positions.end});
        break;
    case op_kind::layer_norm:
    case op_kind::rms_norm: norm_backward(o, index, j); break;
    case op_kind::residual_add:
        definition::residual_add_backward<fp64>({.rows = end - begin,
                                                 .width = own.in_width,
                                                 .output_gradient = gradient(j, own.z[0]).data() + at,
                                                 .drop = drop(own, begin),
                                                 .branch_gradient = gradient(j, own.x[1]).data() + at});
        std::copy(gradient(j, own.z[0]).begin() + at, gradient(j, own.z[0]).begin() + end * own.in_width, gradient(j, own.x[0]).begin() + at);
        break;
    case op_kind::linear:
    case op_kind::unembed: linear_backward(o, j); break;
    case op_kind::gelu:
        definition::gelu_backward<fp64>({.count = rows * own.in_width,
                                         .input = slot(j, own.x[0]).data(),
                                         .output_gradient = gradient(j, own.z[0]).data(),
                                         .input_gradient = gradient(j, own.x[0]).data()});
        break;
    case op_kind::swiglu:
        definition::swiglu_backward<fp64>({.rows = rows,
                                           .width = own.out_width,
                                           .input = slot(j, own.x[0]).data(),
                                           .output_gradient = gradient(j, own.z[0]).data(),
                                           .input_gradient = gradient(j, own.x[0]).data()});
        break;
    case op_kind::qk_norm:
        definition::qk_norm_backward_weight<fp64>({.rows = rows,
                                                   .heads = own.heads,
                                                   .kv_heads = kv_heads_of(own),
                                                   .head_width = head_width(own),
                                                   .input = slot(j, own.x[0]).data(),
                                                   .rstd = s.saved[index].data(),
                                                   .output_gradient = gradient(j, own.z[0]).data(),
                                                   .query_gradient = to_parameter(j, own.parameters[0]),
                                                   .key_gradient = to_parameter(j, own.parameters[1])});
        definition::qk_norm_backward_input<fp64>({.rows = rows,
                                                  .heads = own.heads,
                                                  .kv_heads = kv_heads_of(own),
                                                  .head_width = head_width(own),
                                                  .input = slot(j, own.x[0]).data(),
                                                  .query_gamma = parameter(j, own.parameters[0]),
                                                  .key_gamma = parameter(j, own.parameters[1]),
                                                  .rstd = s.saved[index].data(),
                                                  .output_gradient = gradient(j, own.z[0]).data(),
                                                  .input_gradient = gradient(j, own.x[0]).data()});
        break;
    case op_kind::rope: turn(own, gradient(j, own.z[0]), gradient(j, own.x[0]), true); break;
    case op_kind::attention:
        definition::attention_backward<fp64>({.batch = batch,
                                              .length = length,
                                              .width = own.out_width,
                                              .heads = own.heads,
                                              .kv_heads = own.kv_heads,
                                              .qkv = slot(j, own.x[0]).data(),
                                              .output = slot(j, own.z[0]).data(),
                                              .log_sum_exp = s.saved[index].data(),
                                              .output_gradient = gradient(j, own.z[0]).data(),
                                              .drop = drop(own, 0),
                                              .first_head = o.part.begin,
                                              .all_heads = o.all,
                                              .qkv_gradient = gradient(j, own.x[0]).data()});
        break;
    default: break;  // the loss left its gradient
    }
}

/// The gradients of whole parameters: what several shards hold is the sum of what each contributes.
void shards_on_one_rank::collect(results& r) const
{
    for (auto const& p : layer_.parameters) {
        r.parameter_gradients.emplace_back(size(elements(p.shape)));
    }
    for (auto const& s : shards_) {
        for (std::size_t p = 0; p < s.is.parameters.size(); ++p) {
            auto& to = r.parameter_gradients[size(s.is.parameters[p].of)];
            walk(s.is.parameters[p], [&](std::size_t own, std::size_t all) { to[all] += s.parameter_gradients[p][own]; });
        }
    }
}

item item_for(layer_description const& layer, std::int32_t vocabulary)
{
    item in{.input = wide(normal(rows * layer.in_width, 1)),
            .tokens = tokens(rows, vocabulary, 2),
            .targets = tokens(rows, vocabulary, 3),
            .parameters = {},
            .output_gradient = wide(normal(rows * layer.out_width, 4))};
    in.targets[3] = ignored_target;
    unsigned seed = 10;
    for (auto const& p : layer.parameters) {
        in.parameters.push_back(wide(normal(elements(p.shape), seed++, 0.3F, p.initial.mean == 1 ? 1.0F : 0.1F)));
    }
    return in;
}

void check_close(doubles const& got, doubles const& expected)
{
    REQUIRE(got.size() == expected.size());
    double largest = 0;
    for (double const e : expected) {
        largest = std::max(largest, std::fabs(e));
    }
    for (std::size_t i = 0; i < got.size(); ++i) {
        if (!(std::fabs(got[i] - expected[i]) <= 1e-11 * (1 + largest))) {
            FAIL_CHECK("element " << i << ": " << got[i] << ", of the layer " << expected[i]);
            return;
        }
    }
}

/// The layer in each grid, and fused in each and in one.
std::vector<std::pair<layer_description const*, int>> forms_of(layer_description const& layer, layer_description const& together,
                                                               std::initializer_list<int> grids)
{
    std::vector<std::pair<layer_description const*, int>> forms{{&together, 1}};
    for (int const grid : grids) {
        forms.emplace_back(&layer, grid);
        forms.emplace_back(&together, grid);
    }
    return forms;
}

/// Sums in another order, in double: a few thousand terms of order one.
void check_sharding(layer_description const& layer, std::int32_t vocabulary, std::initializer_list<int> grids)
{
    auto const in = item_for(layer, vocabulary);
    auto const expected = shards_on_one_rank{layer, 1, in}.run();
    auto const together = fused(layer);
    for (auto const& [form, grid] : forms_of(layer, together, grids)) {
        INFO(layer.name << (form == &together ? " fused," : "") << " in " << grid << " shards");
        auto const got = shards_on_one_rank{*form, grid, in}.run();
        check_close(got.output, expected.output);
        check_close(got.input_gradient, expected.input_gradient);
        for (std::size_t p = 0; p < layer.parameters.size(); ++p) {
            INFO(layer.parameters[p].name);
            check_close(got.parameter_gradients[p], expected.parameter_gradients[p]);
        }
        CHECK(got.loss.targets == expected.loss.targets);
        CHECK(std::abs(got.loss.fixed - expected.loss.fixed) <= got.loss.targets);
    }
}

}  // namespace

TEST_CASE("sharding: shards of GPT-2 compute what its layers compute")
{
    constexpr gpt_shape shape{.vocabulary = 83, .context = 7, .width = 64, .heads = 8, .blocks = 1, .dropout_per_mille = 200};
    check_sharding(embedding_layer(shape), shape.vocabulary, {2, 3, 4});
    check_sharding(block_layer(shape), shape.vocabulary, {2, 3, 4, 8});
    check_sharding(classifier_layer(shape), shape.vocabulary, {2, 3, 4});
}

TEST_CASE("sharding: shards of a Llama compute what its layers compute")
{
    for (int const kv : {1, 2, 4, 8}) {
        llama_shape const shape{.vocabulary = 83, .context = 7, .width = 64, .heads = 8, .kv_heads = kv, .blocks = 1, .mlp_width = 72};
        auto of_families = shape;  // heads of the same width, 12 of them in 64 columns
        of_families.heads = 12;
        of_families.kv_heads = kv == 8 ? 12 : kv;
        of_families.head_dim = rope_width;
        of_families.qkv_bias = of_families.qk_norm = true;
        INFO(kv << " heads of keys and values");
        for (int const grid : {2, 3, 4}) {
            if (grid <= kv || grid % kv == 0) {
                check_sharding(llama_block_layer(shape), shape.vocabulary, {grid});
                check_sharding(llama_block_layer(of_families), shape.vocabulary, {grid});
            }
        }
    }
    llama_shape const shape{.vocabulary = 83, .context = 7, .width = 64, .heads = 8, .blocks = 1};
    check_sharding(llama_embedding_layer(shape), shape.vocabulary, {2, 3, 4});
    check_sharding(llama_classifier_layer(shape), shape.vocabulary, {2, 3, 4});
}
