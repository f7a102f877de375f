// SPDX-License-Identifier: Apache-2.0
// In place of cuDNN's attention: the definition in float, put into the stream like a kernel. It takes what cuDNN takes; where the order of sums is any,
// gradients differ from call to call.
#include "kernels/attention/attention_cudnn.hpp"

#include <vector>

#include <cuda_runtime.h>

#include "rheo/units/expects.hpp"

namespace rheo::inline v0::cuda {

struct cudnn_attention::impl {
    order_of_sums order;
    int calls = 0;
};

namespace {

/// Sizes of the matrices of a shape.
struct extents {
    std::size_t qkv, output, statistics;

    explicit extents(auto const& a)
        : qkv{static_cast<std::size_t>(a.batch * a.length * qkv_row{a}.floats())},
          output{static_cast<std::size_t>(a.batch * a.length * a.width)},
          statistics{static_cast<std::size_t>(a.batch * a.length * a.heads)}
    {
    }
};

std::vector<float> widened(bfloat16 const* from, std::size_t count) { return {from, from + count}; }
void store(std::vector<float> const& from, bfloat16* to, float scale = 1)
{
    for (float const v : from) {
        *to++ = static_cast<bfloat16>(v * scale);
    }
}

template <class Arguments>
void expect_taken(Arguments const& a, workspace scratch, std::int64_t wanted)
{
    expects(a.before.count == 0 && (a.whole == 0 || a.whole == a.length) && dropout_threshold(a.drop) == 0,
            "cuDNN's attention is over whole sequences and drops nothing");
    expects(scratch.bytes >= wanted, "the workspace is too small for cuDNN's attention");
}

void forward_of(attention_forward_arguments<bf16> const& a)
{
    extents const n{a};
    auto const qkv = widened(a.qkv, n.qkv);
    std::vector<float> output(n.output);
    definition::attention_forward<fp32>({.batch = a.batch,
                                         .length = a.length,
                                         .width = a.width,
                                         .heads = a.heads,
                                         .kv_heads = a.kv_heads,
                                         .qkv = qkv.data(),
                                         .output = output.data(),
                                         .log_sum_exp = a.log_sum_exp});
    store(output, a.output);
}

void backward_of(attention_backward_arguments<bf16> const& a, float scale)
{
    extents const n{a};
    auto const qkv = widened(a.qkv, n.qkv), output = widened(a.output, n.output), given = widened(a.output_gradient, n.output);
    std::vector<float> gradient(n.qkv);
    definition::attention_backward<fp32>({.batch = a.batch,
                                          .length = a.length,
                                          .width = a.width,
                                          .heads = a.heads,
                                          .kv_heads = a.kv_heads,
                                          .qkv = qkv.data(),
                                          .output = output.data(),
                                          .log_sum_exp = a.log_sum_exp,
                                          .output_gradient = given.data(),
                                          .qkv_gradient = gradient.data()});
    store(gradient, a.qkv_gradient, scale);
}

}  // namespace

std::string cudnn_attention::version() { return "0.0.0"; }
cudnn_attention::cudnn_attention(order_of_sums order) : impl_{new impl{order}} {}
cudnn_attention::~cudnn_attention() = default;
cudnn_attention::cudnn_attention(cudnn_attention&&) noexcept = default;
cudnn_attention& cudnn_attention::operator=(cudnn_attention&&) noexcept = default;

std::int64_t cudnn_attention::choose(attention_shape const& s)
{
    if (s.head_width % 8 != 0 || s.head_width > 256 || s.length < 2) {
        throw error{-1, "cuDNN " + version() + " has no plan for attention over " + std::to_string(s.length) + " tokens with heads of " +
                            std::to_string(s.head_width) + " elements"};
    }
    return workspace::counter_bytes + s.batch * s.heads * s.length * s.head_width * 4 * (impl_->order == order_of_sums::fixed ? (s.length + 127) / 128 : 1);
}

void cudnn_attention::forward(stream queue, workspace scratch, attention_forward_arguments<bf16> const& a)
{
    expect_taken(a, scratch, choose(attention_shape::of(a)));
    emulated::put(static_cast<cudaStream_t>(queue.handle), [a] {
        emulated::count_launch();
        forward_of(a);
    });
}

void cudnn_attention::backward(stream queue, workspace scratch, attention_backward_arguments<bf16> const& a)
{
    expect_taken(a, scratch, choose(attention_shape::of(a)));
    auto const scale = impl_->order == order_of_sums::fixed ? 1.0F : 1 + 0x1p-12F * static_cast<float>(++impl_->calls % 8);
    emulated::put(static_cast<cudaStream_t>(queue.handle), [a, scale] {
        emulated::count_launch();
        backward_of(a, scale);
    });
}

}  // namespace rheo::inline v0::cuda
