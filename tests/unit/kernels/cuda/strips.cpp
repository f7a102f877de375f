// SPDX-License-Identifier: Apache-2.0
// Kernels that work row by row give a row the same bits in any strip: on the device.
#include "../strips.hpp"

#include "laws.hpp"

using namespace rheo;
using namespace laws;

namespace {

template <class T>
struct device_kernels {
    using stored = T;
    template <class Value>
    using array = device::array<Value>;

    void layer_norm_forward(layer_norm_forward_arguments<laws::policy<T>> const& a) { cuda::layer_norm_forward(device::queue(), a); }
    void layer_norm_backward_input(layer_norm_backward_input_arguments<laws::policy<T>> const& a) { cuda::layer_norm_backward_input(device::queue(), a); }
    void rms_norm_forward(rms_norm_forward_arguments<laws::policy<T>> const& a) { cuda::rms_norm_forward(device::queue(), a); }
    void rms_norm_backward_input(rms_norm_backward_input_arguments<laws::policy<T>> const& a) { cuda::rms_norm_backward_input(device::queue(), a); }
    void residual_add_forward(residual_add_forward_arguments<laws::policy<T>> const& a) { cuda::residual_add_forward(device::queue(), a); }
    void residual_add_backward(residual_add_backward_arguments<laws::policy<T>> const& a) { cuda::residual_add_backward(device::queue(), a); }
    void residual_norm_forward(residual_norm_forward_arguments<laws::policy<T>> const& a) { cuda::residual_norm_forward(device::queue(), a); }
    void residual_norm_backward(residual_norm_backward_arguments<laws::policy<T>> const& a) { cuda::residual_norm_backward(device::queue(), a); }
    void residual_rms_norm_forward(residual_rms_norm_forward_arguments<laws::policy<T>> const& a) { cuda::residual_rms_norm_forward(device::queue(), a); }
    void residual_rms_norm_backward(residual_rms_norm_backward_arguments<laws::policy<T>> const& a) { cuda::residual_rms_norm_backward(device::queue(), a); }
    void gelu_forward(gelu_forward_arguments<laws::policy<T>> const& a) { cuda::gelu_forward(device::queue(), a); }
    void gelu_backward(gelu_backward_arguments<laws::policy<T>> const& a) { cuda::gelu_backward(device::queue(), a); }
    void swiglu_forward(swiglu_forward_arguments<laws::policy<T>> const& a) { cuda::swiglu_forward(device::queue(), a); }
    void swiglu_backward(swiglu_backward_arguments<laws::policy<T>> const& a) { cuda::swiglu_backward(device::queue(), a); }
    void embedding_forward(embedding_forward_arguments<laws::policy<T>> const& a) { cuda::embedding_forward(device::queue(), a); }
    void rope(rope_arguments<laws::policy<T>> const& a) { cuda::rope(device::queue(), a); }
};

}  // namespace

TEMPLATE_TEST_CASE("cuda strips: rows have the same bits in any strip", "", float, bfloat16)
{
    device_kernels<TestType> by;
    // rows of whole chunks and of none, a warp each and a block each
    for (auto const s : {strip_shape{5, 36}, strip_shape{11, 264}, strip_shape{5, 2056}}) {
        check_strips(by, s, 4);
    }
}
