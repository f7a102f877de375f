#pragma once
// SPDX-License-Identifier: Apache-2.0

// The norms of a layer, with and without the sum before them, for stage_on_pass.hpp: forward, and the gradients of their inputs and parameters, which backends
// that join gradients compute at once. Each shard computes its strip of the rows.

#include "executor/stage/stage_on.hpp"
#include "kernels/layer_norm/layer_norm.hpp"
#include "kernels/residual_norm/residual_norm.hpp"
#include "kernels/residual_rms_norm/residual_rms_norm.hpp"
#include "kernels/rms_norm/rms_norm.hpp"

namespace rheo::inline v0 {

template <class Kernels>
typename stage_on<Kernels>::pass::norm_place stage_on<Kernels>::pass::norm_at(std::size_t j, std::size_t index) const
{
    auto const [begin, end] = strip(j);
    auto* const of_rows = saved(j, index) + begin;
    return {.rows = end - begin,
            .width = op_of(j, index).own.in_width,
            .gamma = parameter(j, index, 0),
            .beta = parameter(j, index, 1),
            .mean = of_rows,
            .rstd = of_rows + rows()};
}

template <class Kernels>
void stage_on<Kernels>::pass::norm_forward(std::size_t j, std::size_t index)
{
    auto const& o = op_of(j, index).own;
    auto const at = norm_at(j, index);
    if (at.rows == 0) {
        return;
    }
    auto const first = strip(j).begin;
    switch (o.kind) {
    case op_kind::layer_norm:
        by.layer_norm_forward({.rows = at.rows,
                               .width = at.width,
                               .epsilon = epsilon_of(o),
                               .input = strip_of(j, o.x[0]),
                               .gamma = at.gamma,
                               .beta = at.beta,
                               .output = strip_of(j, o.z[0]),
                               .mean = at.mean,
                               .rstd = at.rstd});
        break;
    case op_kind::rms_norm:
        by.rms_norm_forward({.rows = at.rows,
                             .width = at.width,
                             .epsilon = epsilon_of(o),
                             .input = strip_of(j, o.x[0]),
                             .gamma = at.gamma,
                             .output = strip_of(j, o.z[0]),
                             .rstd = at.mean});
        break;
    case op_kind::residual_rms_norm:
        by.residual_rms_norm_forward({.rows = at.rows,
                                      .width = at.width,
                                      .epsilon = epsilon_of(o),
                                      .stream = strip_of(j, o.x[0]),
                                      .branch = strip_of(j, o.x[1]),
                                      .drop = drop(o, first),
                                      .gamma = at.gamma,
                                      .residual = strip_of(j, o.z[0]),
                                      .output = strip_of(j, o.z[1]),
                                      .rstd = at.mean});
        break;
    case op_kind::residual_norm:
        by.residual_norm_forward({.rows = at.rows,
                                  .width = at.width,
                                  .epsilon = epsilon_of(o),
                                  .stream = strip_of(j, o.x[0]),
                                  .branch = strip_of(j, o.x[1]),
                                  .drop = drop(o, first),
                                  .gamma = at.gamma,
                                  .beta = at.beta,
                                  .residual = strip_of(j, o.z[0]),
                                  .output = strip_of(j, o.z[1]),
                                  .mean = at.mean,
                                  .rstd = at.rstd});
        break;
    default: break;  // has no norm
    }
}

template <class Kernels>
void stage_on<Kernels>::pass::norm_input_gradient(std::size_t j, std::size_t index)
{
    auto const& o = op_of(j, index).own;
    auto const at = norm_at(j, index);
    bool const with_sum = o.kind == op_kind::residual_norm || o.kind == op_kind::residual_rms_norm;
    if (at.rows > 0) {
        auto const first = strip(j).begin;
        switch (o.kind) {
        case op_kind::layer_norm:
            by.layer_norm_backward_input({.rows = at.rows,
                                          .width = at.width,
                                          .input = strip_of(j, o.x[0]),
                                          .gamma = at.gamma,
                                          .mean = at.mean,
                                          .rstd = at.rstd,
                                          .output_gradient = strip_gradient(j, o.z[0]),
                                          .bypass_gradient = bypass(j, o.x[0]),
                                          .input_gradient = strip_gradient(j, o.x[0])});
            break;
        case op_kind::rms_norm:
            by.rms_norm_backward_input({.rows = at.rows,
                                        .width = at.width,
                                        .input = strip_of(j, o.x[0]),
                                        .gamma = at.gamma,
                                        .rstd = at.mean,
                                        .output_gradient = strip_gradient(j, o.z[0]),
                                        .bypass_gradient = bypass(j, o.x[0]),
                                        .input_gradient = strip_gradient(j, o.x[0])});
            break;
        case op_kind::residual_rms_norm:
            by.residual_rms_norm_backward({.rows = at.rows,
                                           .width = at.width,
                                           .residual = strip_of(j, o.z[0]),
                                           .gamma = at.gamma,
                                           .rstd = at.mean,
                                           .output_gradient = strip_gradient(j, o.z[1]),
                                           .bypass_gradient = bypass(j, o.z[0]),
                                           .drop = drop(o, first),
                                           .stream_gradient = strip_gradient(j, o.x[0]),
                                           .branch_gradient = strip_gradient(j, o.x[1])});
            break;
        case op_kind::residual_norm:
            by.residual_norm_backward({.rows = at.rows,
                                       .width = at.width,
                                       .residual = strip_of(j, o.z[0]),
                                       .gamma = at.gamma,
                                       .mean = at.mean,
                                       .rstd = at.rstd,
                                       .output_gradient = strip_gradient(j, o.z[1]),
                                       .bypass_gradient = bypass(j, o.z[0]),
                                       .drop = drop(o, first),
                                       .stream_gradient = strip_gradient(j, o.x[0]),
                                       .branch_gradient = strip_gradient(j, o.x[1])});
            break;
        default: break;  // has no norm
        }
    }
    gave(j, o.x[0]);
    if (with_sum) {
        gave(j, o.x[1]);
    }
}

template <class Kernels>
void stage_on<Kernels>::pass::norm_weights(std::size_t j, std::size_t index, std::function<bool(use_id)> const& adds)
{
    auto const& o = op_of(j, index).own;
    bool const with_sum = o.kind == op_kind::residual_norm;
    auto const at = norm_at(j, index);
    auto const gamma = target(j, index, 0, adds);
    auto const beta = target(j, index, 1, adds);
    if (at.rows > 0 && (gamma.sums != nullptr || beta.sums != nullptr)) {  // a recovery may have kept one of them
        by.layer_norm_backward_weight({.rows = at.rows,
                                       .width = at.width,
                                       .input = strip_of(j, with_sum ? o.z[0] : o.x[0]),
                                       .mean = at.mean,
                                       .rstd = at.rstd,
                                       .output_gradient = strip_gradient(j, with_sum ? o.z[1] : o.z[0]),
                                       .gamma_gradient = gamma,
                                       .beta_gradient = beta});
    }
}

template <class Kernels>
void stage_on<Kernels>::pass::rms_weights(std::size_t j, std::size_t index, std::function<bool(use_id)> const& adds)
{
    auto const& o = op_of(j, index).own;
    bool const with_sum = o.kind == op_kind::residual_rms_norm;
    auto const at = norm_at(j, index);
    if (auto const gamma = target(j, index, 0, adds); at.rows > 0 && gamma.sums != nullptr) {
        by.rms_norm_backward_weight({.rows = at.rows,
                                     .width = at.width,
                                     .input = strip_of(j, with_sum ? o.z[0] : o.x[0]),
                                     .rstd = at.mean,
                                     .output_gradient = strip_gradient(j, with_sum ? o.z[1] : o.z[0]),
                                     .gamma_gradient = gamma});
    }
}

template <class Kernels>
bool stage_on<Kernels>::pass::both_gradients(std::size_t index, std::function<bool(use_id)> const& adds)
{
    if constexpr (Kernels::joins_gradients) {
        switch (op_of(0, index).own.kind) {
        case op_kind::layer_norm:
        case op_kind::rms_norm:
        case op_kind::residual_norm:
        case op_kind::residual_rms_norm: break;
        default: return false;
        }
        for (std::size_t j = 0; j < shards(); ++j) {
            both_gradients_of(j, index, adds);
        }
        return true;
    } else {
        return false;
    }
}

/// @pre it is a norm
template <class Kernels>
void stage_on<Kernels>::pass::both_gradients_of(std::size_t j, std::size_t index, std::function<bool(use_id)> const& adds)
    requires Kernels::joins_gradients
{
    auto const& o = op_of(j, index).own;
    auto const at = norm_at(j, index);
    bool const with_sum = o.kind == op_kind::residual_norm || o.kind == op_kind::residual_rms_norm;
    if (at.rows > 0) {
        auto const first = strip(j).begin;
        auto const gamma = target(j, index, 0, adds);
        switch (o.kind) {
        case op_kind::layer_norm:
            by.layer_norm_backward({.rows = at.rows,
                                    .width = at.width,
                                    .input = strip_of(j, o.x[0]),
                                    .gamma = at.gamma,
                                    .mean = at.mean,
                                    .rstd = at.rstd,
                                    .output_gradient = strip_gradient(j, o.z[0]),
                                    .bypass_gradient = bypass(j, o.x[0]),
                                    .input_gradient = strip_gradient(j, o.x[0])},
                                   gamma, target(j, index, 1, adds));
            break;
        case op_kind::rms_norm:
            by.rms_norm_backward({.rows = at.rows,
                                  .width = at.width,
                                  .input = strip_of(j, o.x[0]),
                                  .gamma = at.gamma,
                                  .rstd = at.mean,
                                  .output_gradient = strip_gradient(j, o.z[0]),
                                  .bypass_gradient = bypass(j, o.x[0]),
                                  .input_gradient = strip_gradient(j, o.x[0])},
                                 gamma);
            break;
        case op_kind::residual_norm:
            by.residual_norm_backward({.rows = at.rows,
                                       .width = at.width,
                                       .residual = strip_of(j, o.z[0]),
                                       .gamma = at.gamma,
                                       .mean = at.mean,
                                       .rstd = at.rstd,
                                       .output_gradient = strip_gradient(j, o.z[1]),
                                       .bypass_gradient = bypass(j, o.z[0]),
                                       .drop = drop(o, first),
                                       .stream_gradient = strip_gradient(j, o.x[0]),
                                       .branch_gradient = strip_gradient(j, o.x[1])},
                                      gamma, target(j, index, 1, adds));
            break;
        default:
            by.residual_rms_norm_backward({.rows = at.rows,
                                           .width = at.width,
                                           .residual = strip_of(j, o.z[0]),
                                           .gamma = at.gamma,
                                           .rstd = at.mean,
                                           .output_gradient = strip_gradient(j, o.z[1]),
                                           .bypass_gradient = bypass(j, o.z[0]),
                                           .drop = drop(o, first),
                                           .stream_gradient = strip_gradient(j, o.x[0]),
                                           .branch_gradient = strip_gradient(j, o.x[1])},
                                          gamma);
            break;
        }
    }
    gave(j, o.x[0]);
    if (with_sum) {
        gave(j, o.x[1]);
    }
}

}  // namespace rheo::inline v0
