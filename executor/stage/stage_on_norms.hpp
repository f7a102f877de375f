#pragma once
// SPDX-License-Identifier: Apache-2.0

// The norms of a layer, with and without the sum before them, for stage_on_pass.hpp: forward, and the gradients of their inputs and parameters, which backends
// that join gradients compute at once.

#include "executor/stage/stage_on.hpp"
#include "kernels/layer_norm/layer_norm.hpp"
#include "kernels/residual_norm/residual_norm.hpp"
#include "kernels/residual_rms_norm/residual_rms_norm.hpp"
#include "kernels/rms_norm/rms_norm.hpp"

namespace rheo::inline v0 {

template <class Kernels>
void stage_on<Kernels>::pass::norm_forward(std::size_t index)
{
    auto const& o = description().ops[index];
    switch (o.kind) {
    case op_kind::layer_norm:
        by.layer_norm_forward({.rows = rows(),
                               .width = o.in_width,
                               .input = slot(o.x[0]),
                               .gamma = parameter(index, 0),
                               .beta = parameter(index, 1),
                               .output = slot(o.z[0]),
                               .mean = saved(index),
                               .rstd = saved(index) + rows()});
        break;
    case op_kind::rms_norm:
        by.rms_norm_forward(
            {.rows = rows(), .width = o.in_width, .input = slot(o.x[0]), .gamma = parameter(index, 0), .output = slot(o.z[0]), .rstd = saved(index)});
        break;
    case op_kind::residual_rms_norm:
        by.residual_rms_norm_forward({.rows = rows(),
                                      .width = o.in_width,
                                      .stream = slot(o.x[0]),
                                      .branch = slot(o.x[1]),
                                      .drop = drop(o),
                                      .gamma = parameter(index, 0),
                                      .residual = slot(o.z[0]),
                                      .output = slot(o.z[1]),
                                      .rstd = saved(index)});
        break;
    case op_kind::residual_norm:
        by.residual_norm_forward({.rows = rows(),
                                  .width = o.in_width,
                                  .stream = slot(o.x[0]),
                                  .branch = slot(o.x[1]),
                                  .drop = drop(o),
                                  .gamma = parameter(index, 0),
                                  .beta = parameter(index, 1),
                                  .residual = slot(o.z[0]),
                                  .output = slot(o.z[1]),
                                  .mean = saved(index),
                                  .rstd = saved(index) + rows()});
        break;
    default: break;  // has no norm
    }
}

template <class Kernels>
void stage_on<Kernels>::pass::norm_input_gradient(std::size_t index)
{
    auto const& o = description().ops[index];
    switch (o.kind) {
    case op_kind::layer_norm:
        by.layer_norm_backward_input({.rows = rows(),
                                      .width = o.in_width,
                                      .input = slot(o.x[0]),
                                      .gamma = parameter(index, 0),
                                      .mean = saved(index),
                                      .rstd = saved(index) + rows(),
                                      .output_gradient = gradient_of(o.z[0]),
                                      .bypass_gradient = has_gradient(o.x[0]) ? gradient_of(o.x[0]) : nullptr,
                                      .input_gradient = gradient_of(o.x[0])});
        gave(o.x[0]);
        break;
    case op_kind::rms_norm:
        by.rms_norm_backward_input({.rows = rows(),
                                    .width = o.in_width,
                                    .input = slot(o.x[0]),
                                    .gamma = parameter(index, 0),
                                    .rstd = saved(index),
                                    .output_gradient = gradient_of(o.z[0]),
                                    .bypass_gradient = has_gradient(o.x[0]) ? gradient_of(o.x[0]) : nullptr,
                                    .input_gradient = gradient_of(o.x[0])});
        gave(o.x[0]);
        break;
    case op_kind::residual_rms_norm:
        by.residual_rms_norm_backward({.rows = rows(),
                                       .width = o.in_width,
                                       .residual = slot(o.z[0]),
                                       .gamma = parameter(index, 0),
                                       .rstd = saved(index),
                                       .output_gradient = gradient_of(o.z[1]),
                                       .bypass_gradient = has_gradient(o.z[0]) ? gradient_of(o.z[0]) : nullptr,
                                       .drop = drop(o),
                                       .stream_gradient = gradient_of(o.x[0]),
                                       .branch_gradient = gradient_of(o.x[1])});
        gave(o.x[0]);
        gave(o.x[1]);
        break;
    case op_kind::residual_norm:
        by.residual_norm_backward({.rows = rows(),
                                   .width = o.in_width,
                                   .residual = slot(o.z[0]),
                                   .gamma = parameter(index, 0),
                                   .mean = saved(index),
                                   .rstd = saved(index) + rows(),
                                   .output_gradient = gradient_of(o.z[1]),
                                   .bypass_gradient = has_gradient(o.z[0]) ? gradient_of(o.z[0]) : nullptr,
                                   .drop = drop(o),
                                   .stream_gradient = gradient_of(o.x[0]),
                                   .branch_gradient = gradient_of(o.x[1])});
        gave(o.x[0]);
        gave(o.x[1]);
        break;
    default: break;  // has no norm
    }
}

template <class Kernels>
void stage_on<Kernels>::pass::norm_weights(std::size_t index, storage const* input, storage const* output_gradient, std::function<bool(use_id)> const& adds)
{
    auto const gamma = target(index, 0, adds);
    auto const beta = target(index, 1, adds);
    if (gamma.sums != nullptr || beta.sums != nullptr) {  // a recovery may have kept one of them
        by.layer_norm_backward_weight({.rows = rows(),
                                       .width = description().ops[index].in_width,
                                       .input = input,
                                       .mean = saved(index),
                                       .rstd = saved(index) + rows(),
                                       .output_gradient = output_gradient,
                                       .gamma_gradient = gamma,
                                       .beta_gradient = beta});
    }
}

template <class Kernels>
void stage_on<Kernels>::pass::rms_weights(std::size_t index, storage const* input, storage const* output_gradient, std::function<bool(use_id)> const& adds)
{
    if (auto const gamma = target(index, 0, adds); gamma.sums != nullptr) {
        by.rms_norm_backward_weight({.rows = rows(),
                                     .width = description().ops[index].in_width,
                                     .input = input,
                                     .rstd = saved(index),
                                     .output_gradient = output_gradient,
                                     .gamma_gradient = gamma});
    }
}

template <class Kernels>
bool stage_on<Kernels>::pass::both_gradients(std::size_t index, std::function<bool(use_id)> const& adds)
{
    if constexpr (Kernels::joins_gradients) {
        auto const& o = description().ops[index];
        auto const bypass = [&](int s) { return has_gradient(s) ? gradient_of(s) : nullptr; };
        switch (o.kind) {
        case op_kind::layer_norm:
            by.layer_norm_backward({.rows = rows(),
                                    .width = o.in_width,
                                    .input = slot(o.x[0]),
                                    .gamma = parameter(index, 0),
                                    .mean = saved(index),
                                    .rstd = saved(index) + rows(),
                                    .output_gradient = gradient_of(o.z[0]),
                                    .bypass_gradient = bypass(o.x[0]),
                                    .input_gradient = gradient_of(o.x[0])},
                                   target(index, 0, adds), target(index, 1, adds));
            break;
        case op_kind::rms_norm:
            by.rms_norm_backward({.rows = rows(),
                                  .width = o.in_width,
                                  .input = slot(o.x[0]),
                                  .gamma = parameter(index, 0),
                                  .rstd = saved(index),
                                  .output_gradient = gradient_of(o.z[0]),
                                  .bypass_gradient = bypass(o.x[0]),
                                  .input_gradient = gradient_of(o.x[0])},
                                 target(index, 0, adds));
            break;
        case op_kind::residual_norm:
            by.residual_norm_backward({.rows = rows(),
                                       .width = o.in_width,
                                       .residual = slot(o.z[0]),
                                       .gamma = parameter(index, 0),
                                       .mean = saved(index),
                                       .rstd = saved(index) + rows(),
                                       .output_gradient = gradient_of(o.z[1]),
                                       .bypass_gradient = bypass(o.z[0]),
                                       .drop = drop(o),
                                       .stream_gradient = gradient_of(o.x[0]),
                                       .branch_gradient = gradient_of(o.x[1])},
                                      target(index, 0, adds), target(index, 1, adds));
            gave(o.x[1]);
            break;
        case op_kind::residual_rms_norm:
            by.residual_rms_norm_backward({.rows = rows(),
                                           .width = o.in_width,
                                           .residual = slot(o.z[0]),
                                           .gamma = parameter(index, 0),
                                           .rstd = saved(index),
                                           .output_gradient = gradient_of(o.z[1]),
                                           .bypass_gradient = bypass(o.z[0]),
                                           .drop = drop(o),
                                           .stream_gradient = gradient_of(o.x[0]),
                                           .branch_gradient = gradient_of(o.x[1])},
                                          target(index, 0, adds));
            gave(o.x[1]);
            break;
        default: return false;
        }
        gave(o.x[0]);
        return true;
    } else {
        return false;
    }
}

}  // namespace rheo::inline v0
