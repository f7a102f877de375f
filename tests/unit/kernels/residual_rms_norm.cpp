// SPDX-License-Identifier: Apache-2.0
// residual_rms_norm against its parts, whose gradients are tested by themselves: fusion changes no bit.
#include "kernels/residual_rms_norm/residual_rms_norm.hpp"

#include <tuple>

#include "support.hpp"

using namespace rheo;
using namespace support;

TEST_CASE("residual rms norm: fused equals its parts, any threads")
{
    struct shape {
        std::int64_t rows;
        std::int64_t width;
    };
    for (shape const s : {shape{1, 1}, shape{1, 5}, shape{3, 64}, shape{33, 100}, shape{70, 769}}) {
        for (double const p : {0.0, 0.1}) {
            std::int64_t const n = s.rows * s.width;
            dropout const drop{.probability = p, .key = {.seed = 5, .step = step_id{3}, .microbatch = microbatch_id{1}, .layer = layer_id{2}, .op = op_id{4}}};
            auto const stream = normal(n, 1);
            auto const branch = normal(n, 2);
            auto const gamma = normal(s.width, 3);
            auto const dy = normal(n, 5);
            auto const bypass = normal(n, 6);
            struct result {
                floats residual, output, rstd, stream, branch;
                auto all() const { return std::tuple{bits(residual), bits(output), bits(rstd), bits(stream), bits(branch)}; }
            };
            auto const untouched = [&] { return result{poison(n), poison(n), poison(s.rows), poison(n), poison(n)}; };
            tile_pool one{1};
            auto parts = untouched();
            host::residual_add_forward(
                one, {.rows = s.rows, .width = s.width, .stream = stream.data(), .branch = branch.data(), .drop = drop, .output = parts.residual.data()});
            host::rms_norm_forward(one, {.rows = s.rows,
                                         .width = s.width,
                                         .input = parts.residual.data(),
                                         .gamma = gamma.data(),
                                         .output = parts.output.data(),
                                         .rstd = parts.rstd.data()});
            host::rms_norm_backward_input(one, {.rows = s.rows,
                                                .width = s.width,
                                                .input = parts.residual.data(),
                                                .gamma = gamma.data(),
                                                .rstd = parts.rstd.data(),
                                                .output_gradient = dy.data(),
                                                .bypass_gradient = bypass.data(),
                                                .input_gradient = parts.stream.data()});
            host::residual_add_backward(
                one, {.rows = s.rows, .width = s.width, .output_gradient = parts.stream.data(), .drop = drop, .branch_gradient = parts.branch.data()});
            auto const forward = [&](result& r) {
                return residual_rms_norm_forward_arguments<fp32>{.rows = s.rows,
                                                                 .width = s.width,
                                                                 .stream = stream.data(),
                                                                 .branch = branch.data(),
                                                                 .drop = drop,
                                                                 .gamma = gamma.data(),
                                                                 .residual = r.residual.data(),
                                                                 .output = r.output.data(),
                                                                 .rstd = r.rstd.data()};
            };
            auto const backward = [&](result& r) {
                return residual_rms_norm_backward_arguments<fp32>{.rows = s.rows,
                                                                  .width = s.width,
                                                                  .residual = r.residual.data(),
                                                                  .gamma = gamma.data(),
                                                                  .rstd = r.rstd.data(),
                                                                  .output_gradient = dy.data(),
                                                                  .bypass_gradient = bypass.data(),
                                                                  .drop = drop,
                                                                  .stream_gradient = r.stream.data(),
                                                                  .branch_gradient = r.branch.data()};
            };
            check_threads_change_no_bit([&](tile_pool& pool) {
                auto fused = untouched();
                host::residual_rms_norm_forward(pool, forward(fused));
                host::residual_rms_norm_backward(pool, backward(fused));
                CHECK(fused.all() == parts.all());
                return fused.all();
            });
            // The definition's parts are those of residual_add and rms_norm, in float as in double.
            auto defined = untouched();
            auto separate = untouched();
            definition::residual_rms_norm_forward(forward(defined));
            definition::residual_rms_norm_backward(backward(defined));
            definition::residual_add_forward<fp32>(
                {.rows = s.rows, .width = s.width, .stream = stream.data(), .branch = branch.data(), .drop = drop, .output = separate.residual.data()});
            definition::rms_norm_forward<fp32>({.rows = s.rows,
                                                .width = s.width,
                                                .input = separate.residual.data(),
                                                .gamma = gamma.data(),
                                                .output = separate.output.data(),
                                                .rstd = separate.rstd.data()});
            definition::rms_norm_backward_input<fp32>({.rows = s.rows,
                                                       .width = s.width,
                                                       .input = separate.residual.data(),
                                                       .gamma = gamma.data(),
                                                       .rstd = separate.rstd.data(),
                                                       .output_gradient = dy.data(),
                                                       .bypass_gradient = bypass.data(),
                                                       .input_gradient = separate.stream.data()});
            definition::residual_add_backward<fp32>(
                {.rows = s.rows, .width = s.width, .output_gradient = separate.stream.data(), .drop = drop, .branch_gradient = separate.branch.data()});
            CHECK(defined.all() == separate.all());
        }
    }
}
