#pragma once
// SPDX-License-Identifier: Apache-2.0

// Which kernels an operation becomes on a device, by name and in their order, as a value: so the compiler can say how many launches a
// layer takes. Backward is that of input and weights together; where an instruction has one of them alone, what is one launch here
// may be two. A weight whose gradient is computed in panels (kernels/linear/weight_panels.hpp) has the two of the gradient for each of them. So it is with sums
// of gradients in 64 bits; those in 32 join nothing and have their rows judged besides. A test counts what is really launched.

#include <cstdint>
#include <string_view>

#include "rheo/model/layer.hpp"
#include "rheo/tensor/dtype.hpp"

namespace rheo::inline v0::cuda {

enum class launch_pass : std::uint8_t { forward, backward };

using launch_list = fixed_vector<std::string_view, 64>;

namespace detail {

constexpr void add_forward(launch_list& list, op const& o, dtype_policy policy)
{
    bool const bias = o.parameters[1] != no_parameter;
    switch (o.kind) {
    case op_kind::linear:
    case op_kind::unembed: list.push_back(bias ? "product + bias" : "product"); break;
    case op_kind::linear_gelu:
        if (policy.storage == dtype::bf16) {
            list.push_back(bias ? "product + bias + gelu" : "product + gelu");
        } else {
            list.push_back(bias ? "product + bias" : "product");
            list.push_back("gelu");
        }
        break;
    default: list.push_back(name_of(o.kind)); break;
    }
}

constexpr void add_backward(launch_list& list, op const& o)
{
    bool const bias = o.parameters[1] != no_parameter;
    switch (o.kind) {
    case op_kind::embedding:
        list.push_back("embedding: tokens");
        if (bias) {
            list.push_back("embedding: positions");
        }
        break;
    case op_kind::linear_gelu: list.push_back("gelu"); [[fallthrough]];
    case op_kind::linear:
    case op_kind::unembed:
        list.push_back("product of the input's gradient");
        list.push_back("product of the weight's gradient");
        list.push_back(bias ? "exact sums + sums over the rows" : "exact sums");
        break;
    case op_kind::attention:
        list.push_back("attention: queries");
        list.push_back("attention: keys and values");
        break;
    case op_kind::qk_norm:
        list.push_back("sums over the rows and heads of q");
        list.push_back("sums over the rows and heads of k");
        list.push_back("norm of the heads");
        break;
    case op_kind::layer_norm:
    case op_kind::rms_norm:
    case op_kind::residual_norm:
    case op_kind::residual_rms_norm: list.push_back("norm of the rows + sums over them"); break;
    case op_kind::loss_gradient: break;  // forward left it
    default: list.push_back(name_of(o.kind)); break;
    }
}

}  // namespace detail

/// The launches of one operation. A residual sum's backward is none where nothing is dropped and the gradient of the branch is that of the sum.
constexpr launch_list launches(op const& o, launch_pass pass, dtype_policy policy)
{
    launch_list list;
    pass == launch_pass::forward ? detail::add_forward(list, o, policy) : detail::add_backward(list, o);
    return list;
}

/// The launches of a layer's operations, the last one first in its backward. In bf16 the slope of a GELU is in the epilogue of the product behind it.
constexpr launch_list launches_of(layer_description const& layer, launch_pass pass, dtype_policy policy)
{
    launch_list list;
    for (std::size_t i = 0; i < layer.ops.size(); ++i) {
        auto const at = pass == launch_pass::forward ? i : layer.ops.size() - 1 - i;
        auto const& o = layer.ops[at];
        bool const is_joined = pass == launch_pass::backward && policy.storage == dtype::bf16 && at + 1 < layer.ops.size() && o.kind == op_kind::linear_gelu &&
                               layer.ops[at + 1].kind == op_kind::linear && layer.ops[at + 1].x[0] == o.z[1];
        auto const own = launches(o, pass, policy);
        for (std::size_t n = is_joined ? 1 : 0; n < own.size(); ++n) {
            list.push_back(own[n]);
        }
    }
    return list;
}

}  // namespace rheo::inline v0::cuda
