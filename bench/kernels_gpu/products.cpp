// SPDX-License-Identifier: Apache-2.0
// Linear layers and attention, in the shapes of models.
#include <string>

#include "device_memory.hpp"
#include "families.hpp"
#include "kernels/attention/attention_cudnn.hpp"
#include "kernels/cuda/policy.hpp"
#include "kernels/linear/linear.hpp"
#include "results.hpp"

namespace bench {

namespace {

std::string sizes_of(std::int64_t a, std::int64_t b, std::int64_t c) { return std::to_string(a) + " x " + std::to_string(b) + " x " + std::to_string(c); }

template <class T>
void linear(results& to, char const* type, std::int64_t rows, std::int64_t in, std::int64_t out)
{
    constexpr auto policy = cuda::policy_storing<T>;
    auto const x = numbers<T>(rows * in), w = numbers<T>(in * out), b = numbers<T>(out), dy = numbers<T>(rows * out);
    memory<T> const y{rows * out}, activated{rows * out}, dx{rows * in};
    exact_memory const dw{in * out}, db{out};
    row_memory const dw_rows{in, out};
    memory<char> const bytes{cuda::linear_backward_parameters_workspace_bytes(rows, in, out)};
    auto const scratch = workspace_of(bytes);
    cuda::products by;
    double const flops = 2.0 * static_cast<double>(rows) * static_cast<double>(in) * static_cast<double>(out);
    double const matrices = static_cast<double>(rows * in + in * out + rows * out) * sizeof(T);
    double const sums = 16.0 * static_cast<double>(in * out);  // exact sums, read and written; the float gradient is meant to stay in the cache
    auto const shape = sizes_of(rows, in, out);
    auto const forward = [&](T* gelu) {
        cuda::linear_forward<policy>(
            {}, scratch, by,
            {.rows = rows, .in = in, .out = out, .input = x.data(), .weight = w.data(), .bias = b.data(), .output = y.data(), .activated = gelu});
    };
    to.add({.kernel = "linear_forward", .type = type, .shape = shape, .bytes = matrices, .flops = flops}, [&] { forward(nullptr); });
    to.add(
        {.kernel = "linear_forward with gelu", .type = type, .shape = shape, .bytes = matrices + static_cast<double>(rows * out) * sizeof(T), .flops = flops},
        [&] { forward(activated.data()); });
    to.add({.kernel = "linear_backward_input", .type = type, .shape = shape, .bytes = matrices, .flops = flops}, [&] {
        cuda::linear_backward_input<policy>(
            {}, scratch, by, {.rows = rows, .in = in, .out = out, .weight = w.data(), .output_gradient = dy.data(), .input_gradient = dx.data()});
    });
    linear_backward_weight_arguments<policy> const weight{
        .rows = rows, .in = in, .out = out, .input = x.data(), .output_gradient = dy.data(), .weight_gradient = dw.target()};
    to.add({.kernel = "linear_backward_weight", .type = type, .shape = shape, .bytes = matrices + sums, .flops = flops},
           [&] { cuda::linear_backward_weight(cuda::stream{}, scratch, by, weight); });
    linear_backward_weight_arguments<cuda::policy_of<T, std::int32_t>> const in_rows{
        .rows = rows, .in = in, .out = out, .input = x.data(), .output_gradient = dy.data(), .weight_gradient = dw_rows.target()};
    to.add({.kernel = "linear_backward_weight, 32-bit sums", .type = type, .shape = shape, .bytes = matrices + sums / 2, .flops = flops},
           [&] { cuda::linear_backward_weight(cuda::stream{}, scratch, by, in_rows); });
    to.add({.kernel = "linear_backward_parameters", .type = type, .shape = shape, .bytes = matrices + sums, .flops = flops},
           [&] { cuda::linear_backward_parameters(cuda::stream{}, scratch, by, weight, db.target()); });
}

struct attention_shape {
    std::int64_t batch;
    std::int64_t length;
    std::int64_t heads;
    std::int64_t kv_heads;
    std::int64_t head_width;
    double dropped = 0;
};

/// @param forward, backward called with their arguments, backward with a workspace of so many bytes before them
template <class T>
void attention(results& to, char const* type, attention_shape const& s, std::string how, std::int64_t workspace_bytes, auto const& forward,
               auto const& backward)
{
    constexpr auto policy = cuda::policy_storing<T>;
    auto const width = s.heads * s.head_width;
    auto const rows = s.batch * s.length;
    auto const columns = width + 2 * s.kv_heads * s.head_width;
    auto const qkv = numbers<T>(rows * columns), dout = numbers<T>(rows * width);
    memory<T> const out{rows * width}, gradient{rows * columns};
    memory<float> const log_sum{rows * s.heads};
    memory<char> const bytes{workspace_bytes};
    auto const scratch = workspace_of(bytes);
    dropout const drop{.probability = s.dropped};
    double const pairs = static_cast<double>(s.batch * s.heads) * static_cast<double>(s.length) * static_cast<double>(s.length + 1) / 2;
    double const product = 2 * pairs * static_cast<double>(s.head_width);
    double const one = static_cast<double>(rows) * sizeof(T);
    auto const shape = std::to_string(s.batch) + " x " + std::to_string(s.length) + ", " + std::to_string(s.heads) + "/" + std::to_string(s.kv_heads) + " of " +
                       std::to_string(s.head_width);
    how += s.dropped > 0 ? ", dropout" : "";
    to.add({.kernel = "attention_forward" + how, .type = type, .shape = shape, .bytes = one * static_cast<double>(columns + width), .flops = 2 * product}, [&] {
        forward(scratch, attention_forward_arguments<policy>{.batch = s.batch,
                                                             .length = s.length,
                                                             .width = width,
                                                             .heads = s.heads,
                                                             .kv_heads = s.kv_heads,
                                                             .qkv = qkv.data(),
                                                             .drop = drop,
                                                             .output = out.data(),
                                                             .log_sum_exp = log_sum.data()});
    });
    to.add({.kernel = "attention_backward" + how,
            .type = type,
            .shape = shape,
            .bytes = one * static_cast<double>(2 * columns + 2 * width),
            .flops = 5 * product},  // five are the least
           [&] {
               backward(scratch, attention_backward_arguments<policy>{.batch = s.batch,
                                                                      .length = s.length,
                                                                      .width = width,
                                                                      .heads = s.heads,
                                                                      .kv_heads = s.kv_heads,
                                                                      .qkv = qkv.data(),
                                                                      .output = out.data(),
                                                                      .log_sum_exp = log_sum.data(),
                                                                      .output_gradient = dout.data(),
                                                                      .drop = drop,
                                                                      .qkv_gradient = gradient.data()});
           });
}

template <class T>
void attention_by(results& to, char const* type, attention_shape const& s, cuda::tensor_cores by = cuda::tensor_cores::of_warps)
{
    constexpr auto policy = cuda::policy_storing<T>;
    attention<T>(
        to, type, s, by == cuda::tensor_cores::of_warpgroups ? ", warpgroups" : "", cuda::attention_backward_workspace_bytes(s.batch, s.heads, s.length),
        [&](cuda::workspace, auto const& a) { cuda::attention_forward<policy>({}, a, by); },
        [&](cuda::workspace scratch, auto const& a) { cuda::attention_backward<policy>({}, scratch, a, by); });
}

/// By each kind of tensor cores that the device has, and by cuDNN where it is and takes it.
void attention_by_all(results& to, attention_shape const& s)
{
    for (auto const by : {cuda::tensor_cores::of_warps, cuda::tensor_cores::of_warpgroups}) {
        if (cuda::has(by)) {
            attention_by<bfloat16>(to, "bf16", s, by);
        }
    }
    if (s.dropped > 0 || !cuda::has_cudnn()) {
        return;
    }
    for (auto const order : {cuda::order_of_sums::fixed, cuda::order_of_sums::any}) {
        cuda::cudnn_attention by{order};
        attention<bfloat16>(
            to, "bf16", s, order == cuda::order_of_sums::fixed ? ", cuDNN" : ", cuDNN in any order",
            by.choose({s.batch, s.length, s.heads, s.kv_heads, s.head_width}), [&](cuda::workspace scratch, auto const& a) { by.forward({}, scratch, a); },
            [&](cuda::workspace scratch, auto const& a) { by.backward({}, scratch, a); });
    }
}

}  // namespace

void products(results& to)
{
    if (to.asked().tiny()) {
        linear<bfloat16>(to, "bf16", 16, 24, 32);
        linear<float>(to, "fp32", 16, 24, 32);
        attention_by_all(to, {1, 20, 2, 1, 16});
        attention_by_all(to, {1, 20, 2, 1, 16, 0.1});
        attention_by<float>(to, "fp32", {1, 20, 2, 1, 16});
        return;
    }
    for (std::int64_t const rows : {2048, 16384}) {
        for (std::int64_t const width : {768, 1600, 4096}) {
            linear<bfloat16>(to, "bf16", rows, width, 4 * width);
            linear<bfloat16>(to, "bf16", rows, 4 * width, width);
        }
    }
    linear<float>(to, "fp32", 4096, 768, 3072);
    for (std::int64_t const length : {1024, 2048, 4096, 8192}) {
        attention_by_all(to, {16384 / length, length, 12, 12, 64});
        attention_by_all(to, {16384 / length, length, 32, 32, 128});
        attention_by_all(to, {16384 / length, length, 32, 8, 128});
    }
    attention_by_all(to, {16, 1024, 12, 12, 64, 0.1});
    attention_by<float>(to, "fp32", {4, 1024, 12, 12, 64});
}

}  // namespace bench
