// SPDX-License-Identifier: Apache-2.0
#include "layer_on_device.hpp"

#include "kernels/attention/attention.hpp"
#include "kernels/residual_norm/residual_norm.hpp"
#include "kernels/residual_rms_norm/residual_rms_norm.hpp"
#include "kernels/rope/rope.hpp"
#include "kernels/swiglu/swiglu.hpp"

namespace bench {

namespace {

std::int64_t heads_kept(op const& o) { return o.kv_heads == 0 ? o.heads : o.kv_heads; }

std::vector<std::int32_t> some_tokens(std::int64_t count, std::int64_t vocabulary)
{
    std::mt19937 random{1};
    std::vector<std::int32_t> ids(static_cast<std::size_t>(count));
    for (auto& id : ids) {
        id = static_cast<std::int32_t>(random() % static_cast<unsigned>(vocabulary));
    }
    return ids;
}

/// The most workspace that an operation of the layer wants.
std::int64_t room_for(layer_description const& layer, sequences of)
{
    auto most = cuda::workspace::counter_bytes + cuda::products::room_bytes;
    for (auto const& o : layer.ops) {
        most = std::max({most, cuda::layer_norm_backward_weight_room(of.rows(), o.in_width), o.heads > 0 ? cuda::attention_backward_room(of.batch, o.heads, of.length) : 0,
                         o.kind == op_kind::linear || o.kind == op_kind::linear_gelu || o.kind == op_kind::unembed ? cuda::linear_backward_parameters_room(of.rows(), o.in_width, o.out_width) : 0});
    }
    return most;
}

std::int64_t vocabulary_of(layer_description const& layer) { return layer.in_width == 0 ? layer.ops[0].in_width : layer.out_width == 0 ? layer.slot_widths.back() : 1; }

}  // namespace

template <class T>
layer_on_device<T>::layer_on_device(layer_description const& layer, sequences of)
    : layer_{fused(layer)}, of_{of}, turns_{numbers<float>(of.length * 256)}, tokens_{some_tokens(of.rows(), vocabulary_of(layer))},
      order_{order_of(some_tokens(of.rows(), vocabulary_of(layer)), vocabulary_of(layer))}, order_rows_{order_.rows}, order_first_{order_.first}, order_tokens_{order_.tokens},
      bytes_{room_for(layer, of)}, room_{workspace_of(bytes_)}
{
    for (auto const width : layer_.slot_widths) {
        slots_.push_back(numbers<T>(of.rows() * width));
        gradients_.push_back(numbers<T>(of.rows() * width));
    }
    for (auto const& p : layer_.parameters) {
        std::int64_t const count = std::int64_t{p.shape.rows} * p.shape.columns;
        parameters_.push_back({.value = numbers<T>(count), .sum = exact_memory{count}});
    }
    for (auto const& o : layer_.ops) {
        saved_.emplace(o.id.value, memory<float>{std::max<std::int64_t>(2, o.heads) * of.rows()});
    }
}

template <class T>
void layer_on_device<T>::forward()
{
    for (auto const& o : layer_.ops) {
        forward(o);
    }
}

template <class T>
void layer_on_device<T>::backward()
{
    for (std::size_t i = layer_.ops.size(); i-- > 0;) {
        backward(layer_.ops[i]);
    }
}

template <class T>
void layer_on_device<T>::forward(op const& o)
{
    std::int64_t const rows = of_.rows();
    std::int64_t const width = o.in_width;
    switch (o.kind) {
    case op_kind::embedding: cuda::embedding_forward<policy>({}, {.batch = of_.batch, .length = of_.length, .width = o.out_width, .vocabulary = width, .tokens = tokens_.data(), .token_table = parameter(o, 0), .position_table = parameter(o, 1), .drop = drop(o), .output = slot(o.z[0])}); break;
    case op_kind::layer_norm: cuda::layer_norm_forward<policy>({}, {.rows = rows, .width = width, .input = slot(o.x[0]), .gamma = parameter(o, 0), .beta = parameter(o, 1), .output = slot(o.z[0]), .mean = saved(o), .rstd = saved(o) + rows}); break;
    case op_kind::rms_norm: cuda::rms_norm_forward<policy>({}, {.rows = rows, .width = width, .input = slot(o.x[0]), .gamma = parameter(o, 0), .output = slot(o.z[0]), .rstd = saved(o)}); break;
    case op_kind::residual_norm: cuda::residual_norm_forward<policy>({}, {.rows = rows, .width = width, .stream = slot(o.x[0]), .branch = slot(o.x[1]), .drop = drop(o), .gamma = parameter(o, 0), .beta = parameter(o, 1), .residual = slot(o.z[0]), .output = slot(o.z[1]), .mean = saved(o), .rstd = saved(o) + rows}); break;
    case op_kind::residual_rms_norm: cuda::residual_rms_norm_forward<policy>({}, {.rows = rows, .width = width, .stream = slot(o.x[0]), .branch = slot(o.x[1]), .drop = drop(o), .gamma = parameter(o, 0), .residual = slot(o.z[0]), .output = slot(o.z[1]), .rstd = saved(o)}); break;
    case op_kind::residual_add: cuda::residual_add_forward<policy>({}, {.rows = rows, .width = width, .stream = slot(o.x[0]), .branch = slot(o.x[1]), .drop = drop(o), .output = slot(o.z[0])}); break;
    case op_kind::linear:
    case op_kind::linear_gelu:
    case op_kind::unembed: cuda::linear_forward<policy>({}, room_, by_, {.rows = rows, .in = width, .out = o.out_width, .order = order(o), .input = slot(o.x[0]), .weight = parameter(o, 0), .bias = parameter(o, 1), .output = slot(o.z[0]), .activated = o.kind == op_kind::linear_gelu ? slot(o.z[1]) : nullptr}); break;
    case op_kind::gelu: cuda::gelu_forward<policy>({}, {.count = rows * width, .input = slot(o.x[0]), .output = slot(o.z[0])}); break;
    case op_kind::attention: cuda::attention_forward<policy>({}, {.batch = of_.batch, .length = of_.length, .width = o.out_width, .heads = o.heads, .kv_heads = o.kv_heads, .qkv = slot(o.x[0]), .drop = drop(o), .output = slot(o.z[0]), .log_sum_exp = saved(o)}); break;
    case op_kind::rope: cuda::rope<policy>({}, {.rows = rows, .length = of_.length, .turned = o.heads + heads_kept(o), .kept = heads_kept(o), .head_width = head_width(o), .table = turns_.data(), .input = slot(o.x[0]), .output = slot(o.z[0])}); break;
    case op_kind::swiglu: cuda::swiglu_forward<policy>({}, {.rows = rows, .width = o.out_width, .input = slot(o.x[0]), .output = slot(o.z[0])}); break;
    case op_kind::cross_entropy:
    case op_kind::loss_gradient: cuda::cross_entropy_fused<policy>({}, {.rows = rows, .vocabulary = width, .logits = slot(o.x[0]), .targets = tokens_.data(), .loss = loss_.data()}); break;
    }
}

template <class T>
void layer_on_device<T>::backward(op const& o)
{
    std::int64_t const rows = of_.rows();
    std::int64_t const width = o.in_width;
    cuda::stream const q{};
    switch (o.kind) {
    case op_kind::embedding:
        cuda::embedding_backward_weight<policy>(q, {.segments = std::ssize(order_.tokens), .rows = order_rows_.data(), .first = order_first_.data(), .tokens = order_tokens_.data()},
                                                {.batch = of_.batch, .length = of_.length, .width = o.out_width, .vocabulary = width, .tokens = tokens_.data(), .output_gradient = gradient(o.z[0]), .drop = drop(o), .token_gradient = sum(o, 0), .position_gradient = sum(o, 1)});
        break;
    case op_kind::layer_norm: cuda::layer_norm_backward(q, room_, layer_norm_backward_input_arguments<policy>{.rows = rows, .width = width, .input = slot(o.x[0]), .gamma = parameter(o, 0), .mean = saved(o), .rstd = saved(o) + rows, .output_gradient = gradient(o.z[0]), .bypass_gradient = gradient(o.x[0]), .input_gradient = gradient(o.x[0])}, sum(o, 0), sum(o, 1)); break;
    case op_kind::rms_norm: cuda::rms_norm_backward(q, room_, rms_norm_backward_input_arguments<policy>{.rows = rows, .width = width, .input = slot(o.x[0]), .gamma = parameter(o, 0), .rstd = saved(o), .output_gradient = gradient(o.z[0]), .bypass_gradient = gradient(o.x[0]), .input_gradient = gradient(o.x[0])}, sum(o, 0)); break;
    case op_kind::residual_norm: cuda::residual_norm_backward(q, room_, residual_norm_backward_arguments<policy>{.rows = rows, .width = width, .residual = slot(o.z[0]), .gamma = parameter(o, 0), .mean = saved(o), .rstd = saved(o) + rows, .output_gradient = gradient(o.z[1]), .bypass_gradient = gradient(o.z[0]), .drop = drop(o), .stream_gradient = gradient(o.x[0]), .branch_gradient = gradient(o.x[1])}, sum(o, 0), sum(o, 1)); break;
    case op_kind::residual_rms_norm: cuda::residual_rms_norm_backward(q, room_, residual_rms_norm_backward_arguments<policy>{.rows = rows, .width = width, .residual = slot(o.z[0]), .gamma = parameter(o, 0), .rstd = saved(o), .output_gradient = gradient(o.z[1]), .bypass_gradient = gradient(o.z[0]), .drop = drop(o), .stream_gradient = gradient(o.x[0]), .branch_gradient = gradient(o.x[1])}, sum(o, 0)); break;
    case op_kind::residual_add:  // the stream's gradient is the sum's where it lies, and so is the branch's where nothing is dropped
        if (o.dropout_per_mille > 0) {
            cuda::residual_add_backward<policy>(q, {.rows = rows, .width = width, .output_gradient = gradient(o.z[0]), .drop = drop(o), .branch_gradient = gradient(o.x[1])});
        }
        break;
    case op_kind::linear_gelu: cuda::gelu_backward<policy>(q, {.count = rows * o.out_width, .input = slot(o.z[0]), .output_gradient = gradient(o.z[1]), .input_gradient = gradient(o.z[0])}); [[fallthrough]];
    case op_kind::linear:
    case op_kind::unembed: {
        auto const* const dy = o.kind == op_kind::unembed ? slot(o.z[0]) : gradient(o.z[0]);  // the loss has left its gradient in place of the logits
        cuda::linear_backward_input<policy>(q, room_, by_, {.rows = rows, .in = width, .out = o.out_width, .order = order(o), .weight = parameter(o, 0), .output_gradient = dy, .input_gradient = gradient(o.x[0])});
        cuda::linear_backward_parameters(q, room_, by_, linear_backward_weight_arguments<policy>{.rows = rows, .in = width, .out = o.out_width, .order = order(o), .input = slot(o.x[0]), .output_gradient = dy, .weight_gradient = sum(o, 0)}, sum(o, 1));
        break;
    }
    case op_kind::gelu: cuda::gelu_backward<policy>(q, {.count = rows * width, .input = slot(o.x[0]), .output_gradient = gradient(o.z[0]), .input_gradient = gradient(o.x[0])}); break;
    case op_kind::attention: cuda::attention_backward<policy>(q, room_, {.batch = of_.batch, .length = of_.length, .width = o.out_width, .heads = o.heads, .kv_heads = o.kv_heads, .qkv = slot(o.x[0]), .output = slot(o.z[0]), .log_sum_exp = saved(o), .output_gradient = gradient(o.z[0]), .drop = drop(o), .qkv_gradient = gradient(o.x[0])}); break;
    case op_kind::rope: cuda::rope<policy>(q, {.rows = rows, .length = of_.length, .turned = o.heads + heads_kept(o), .kept = heads_kept(o), .head_width = head_width(o), .table = turns_.data(), .input = gradient(o.z[0]), .output = gradient(o.x[0]), .back = true}); break;
    case op_kind::swiglu: cuda::swiglu_backward<policy>(q, {.rows = rows, .width = o.out_width, .input = slot(o.x[0]), .output_gradient = gradient(o.z[0]), .input_gradient = gradient(o.x[0])}); break;
    case op_kind::cross_entropy:
    case op_kind::loss_gradient: break;
    }
}

template class layer_on_device<bfloat16>;

}  // namespace bench
