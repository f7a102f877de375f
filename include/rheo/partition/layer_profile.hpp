#pragma once
// SPDX-License-Identifier: Apache-2.0

// What planning knows of each layer: times on one device, memory, the message after it, and what it takes
// to share it between devices of a node. It is measured (layer_profile_csv.hpp), or follows from the model's
// operations on a described device.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "rheo/model/footprint.hpp"
#include "rheo/model/model.hpp"
#include "rheo/topology/cluster.hpp"
#include "rheo/units/expects.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

struct layer_profile {
    seconds forward;                    ///< of a microbatch, on one device
    seconds backward;                   ///< the same, whole
    bytes persistent;                   ///< parameters, gradients, optimizer
    bytes per_microbatch;               ///< activations kept from its forward to its backward
    bytes boundary;                     ///< the message when the model is cut after this layer
    std::vector<seconds> all_reduce{};  ///< entry d - 2: in each direction, when d devices of a node share the layer
    bytes recompute_buffer{};           ///< of an item in its backward, when not all that was computed is kept
    bytes input{};                      ///< of per_microbatch, what the layer before computed: a stage of both keeps it once. 0: not known
    bytes kept_gradients{};             ///< of a microbatch, between the halves of its split backward
    int tied_to = -1;                   ///< an earlier layer with a parameter of this one
    bytes tied{};                       ///< of persistent, what a rank that has both keeps once

    friend constexpr bool operator==(layer_profile const&, layer_profile const&) = default;
};

/// Forward and backward time of each layer together.
template <class OnlyWhenCalled = void>
constexpr std::vector<seconds> times_of(std::vector<layer_profile> const& layers)
{
    std::vector<seconds> times;
    for (auto const& layer : layers) {
        times.push_back(layer.forward + layer.backward);
    }
    return times;
}

namespace detail {

/// The longer of computing and moving (the roofline of Williams, Waterman, Patterson 2009).
constexpr seconds roofline(flops work, bytes moved, device_description device) { return std::max(work / device.compute, moved / device.traffic); }

}  // namespace detail

/// The layers of a model on a described cluster. A forward reads the parameters that it multiplies with and writes the
/// activations, those of all slices; a backward moves twice as much. Devices that share a layer sum up its output (backward: its input's gradient) over their link.
/// @pre rates above zero, at least one device per node
template <class OnlyWhenCalled = void>
constexpr std::vector<layer_profile> profile_of(model_description const& model, microbatch_shape shape, cluster_description const& on,
                                                dtype_policy const& policy = fp32)
{
    expects(on.device.compute.count > 0.0 && on.device.traffic.count > 0.0, "a device computes and moves more than nothing per second");
    expects(on.devices_per_node >= 1, "a node has at least one device");
    std::vector<layer_profile> result;
    auto const slices = shape.slices;
    auto const slice = shape;
    shape.slices = 1;
    for (auto const& layer : model.layers) {
        auto const kept = activation_bytes(layer, slice, policy) * slices;
        auto const work = forward_flops(layer, shape);
        bytes const moved{(work > flops{0} ? parameter_count(layer) * size_of(policy.storage) : 0) +
                          kept.count};  // an embedding reads a few rows of its tables
        layer_profile profile{detail::roofline(work, moved, on.device), detail::roofline(backward_flops(layer, shape), moved * 2, on.device),
                              persistent_bytes(layer, policy), kept, boundary_bytes(layer, shape, policy)};
        for (int devices = 2; devices <= on.devices_per_node; ++devices) {
            profile.all_reduce.push_back(reduction_time(on.in_node, profile.boundary, devices));
        }
        result.push_back(profile);
    }
    return result;
}

}  // namespace rheo::inline v0
