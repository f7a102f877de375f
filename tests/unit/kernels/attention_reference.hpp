#pragma once
// SPDX-License-Identifier: Apache-2.0

// Attention by the definition, in double: what the kernels are compared with.

#include "kernels/attention/attention.hpp"
#include "support.hpp"

namespace support {

using rheo::dropout, rheo::fp64;
namespace definition = rheo::definition;

/// Columns of qkv, and how many heads of queries share one of keys.
template <class Shape>
std::int64_t qkv_columns(Shape const& s)
{
    return rheo::qkv_row{s}.floats();
}

template <class Shape>
double heads_in_a_group(Shape const& s)
{
    return static_cast<double>(rheo::qkv_row{s}.group);
}

struct attention_reference {
    doubles output, log_sum_exp, gradient;

    /// @param s has batch, length, width, heads and kv_heads
    template <class Shape>
    attention_reference(Shape const& s, doubles const& qkv, doubles const& dout, dropout const& drop)
        : output(size(s.batch * s.length * s.width)), log_sum_exp(size(s.batch * s.heads * s.length)), gradient(qkv.size())
    {
        definition::attention_forward<fp64>({.batch = s.batch,
                                             .length = s.length,
                                             .width = s.width,
                                             .heads = s.heads,
                                             .kv_heads = s.kv_heads,
                                             .qkv = qkv.data(),
                                             .drop = drop,
                                             .output = output.data(),
                                             .log_sum_exp = log_sum_exp.data()});
        definition::attention_backward<fp64>({.batch = s.batch,
                                              .length = s.length,
                                              .width = s.width,
                                              .heads = s.heads,
                                              .kv_heads = s.kv_heads,
                                              .qkv = qkv.data(),
                                              .output = output.data(),
                                              .log_sum_exp = log_sum_exp.data(),
                                              .output_gradient = dout.data(),
                                              .drop = drop,
                                              .qkv_gradient = gradient.data()});
    }
};

}  // namespace support
