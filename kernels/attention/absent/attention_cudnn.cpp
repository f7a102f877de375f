// SPDX-License-Identifier: Apache-2.0
// In place of attention_cudnn.cpp where cuDNN or its frontend was not found.
#include "kernels/attention/attention_cudnn.hpp"

namespace rheo::inline v0::cuda {

namespace {
[[noreturn]] void refuse()
{
    throw error{-1, "attention by cuDNN is not compiled in: its headers (cudnn.h) or those of its frontend (cudnn_frontend.h, 1.32 or later) were not found"};
}
}  // namespace

struct cudnn_attention::impl {};

std::string cudnn_attention::version() { refuse(); }
cudnn_attention::cudnn_attention(order_of_sums) { refuse(); }
cudnn_attention::cudnn_attention(order_of_sums, described_device const&) { refuse(); }
cudnn_attention::~cudnn_attention() = default;
cudnn_attention::cudnn_attention(cudnn_attention&&) noexcept = default;
cudnn_attention& cudnn_attention::operator=(cudnn_attention&&) noexcept = default;
std::int64_t cudnn_attention::choose(attention_shape const&) { refuse(); }
void cudnn_attention::forward(stream, workspace, attention_forward_arguments<bf16> const&) { refuse(); }
void cudnn_attention::backward(stream, workspace, attention_backward_arguments<bf16> const&) { refuse(); }

}  // namespace rheo::inline v0::cuda
