#pragma once
// SPDX-License-Identifier: Apache-2.0

// Attention by the definition, in double: what the kernels are compared with.

#include "kernels/attention/attention.hpp"
#include "support.hpp"

namespace support {

using rheo::dropout, rheo::fp64;
namespace definition = rheo::definition;

struct attention_reference {
    doubles output, log_sum_exp, gradient;

    /// @param s has batch, length, width and heads
    template <class Shape>
    attention_reference(Shape const& s, doubles const& qkv, doubles const& dout, dropout const& drop)
        : output(size(s.batch * s.length * s.width)), log_sum_exp(size(s.batch * s.heads * s.length)), gradient(qkv.size())
    {
        definition::attention_forward<fp64>({.batch = s.batch, .length = s.length, .width = s.width, .heads = s.heads, .qkv = qkv.data(),
                                             .drop = drop, .output = output.data(), .log_sum_exp = log_sum_exp.data()});
        definition::attention_backward<fp64>({.batch = s.batch, .length = s.length, .width = s.width, .heads = s.heads, .qkv = qkv.data(),
                                              .output = output.data(), .log_sum_exp = log_sum_exp.data(), .output_gradient = dout.data(),
                                              .drop = drop, .qkv_gradient = gradient.data()});
    }
};

}  // namespace support
