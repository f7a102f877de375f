// SPDX-License-Identifier: Apache-2.0
// Some memory-bound kernels over sizes, beside a copy: from where on the bandwidth is reached.
#include "device_memory.hpp"
#include "families.hpp"
#include "kernels/cuda/policy.hpp"
#include "kernels/exact/exact.hpp"
#include "kernels/gelu/gelu.hpp"
#include "kernels/layer_norm/layer_norm.hpp"
#include "results.hpp"

namespace bench {

void sizes(results& to)
{
    std::int64_t const width = 4096;
    for (double mib = to.asked().tiny() ? to.asked().mib : 1; mib <= to.asked().mib; mib *= 4) {
        auto const rows = std::max<std::int64_t>(1, static_cast<std::int64_t>(mib * 1048576 / 4 / width));
        auto const n = rows * width;
        double const one = 2.0 * static_cast<double>(n);
        auto const x = numbers<bfloat16>(n), dy = numbers<bfloat16>(n), gamma = numbers<bfloat16>(width);
        memory<bfloat16> const y{n};
        memory<float> const mean{rows}, rstd{rows};
        exact_memory const to_gamma{width}, to_beta{width}, sums{n / 4};
        memory<char> const bytes{cuda::layer_norm_backward_weight_workspace_bytes(rows, width)};
        auto const scratch = workspace_of(bytes);
        auto const copied = static_cast<std::size_t>(2 * n);
        to.add_size("copy", 2 * one, [&] { check(cudaMemcpyAsync(y.data(), x.data(), copied, cudaMemcpyDeviceToDevice, nullptr), "cudaMemcpyAsync"); });
        to.add_size("gelu_forward", 2 * one, [&] { cuda::gelu_forward<bf16>({}, {.count = n, .input = x.data(), .output = y.data()}); });
        to.add_size("layer_norm_forward", 2 * one, [&] {
            cuda::layer_norm_forward<bf16>({}, {.rows = rows,
                                                .width = width,
                                                .input = x.data(),
                                                .gamma = gamma.data(),
                                                .beta = gamma.data(),
                                                .output = y.data(),
                                                .mean = mean.data(),
                                                .rstd = rstd.data()});
        });
        to.add_size("layer_norm_backward", 3 * one, [&] {
            cuda::layer_norm_backward(cuda::stream{}, scratch,
                                      layer_norm_backward_input_arguments<bf16>{.rows = rows,
                                                                                .width = width,
                                                                                .input = x.data(),
                                                                                .gamma = gamma.data(),
                                                                                .mean = mean.data(),
                                                                                .rstd = rstd.data(),
                                                                                .output_gradient = dy.data(),
                                                                                .input_gradient = y.data()},
                                      to_gamma.target(), to_beta.target());
        });
        to.add_size("exact_accumulate", 18.0 * static_cast<double>(n / 4),
                    [&] { cuda::exact_accumulate_bf16({}, {.count = n / 4, .gradient = x.data(), .target = sums.target()}); });
    }
}

}  // namespace bench
