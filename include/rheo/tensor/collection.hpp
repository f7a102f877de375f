#pragma once
// SPDX-License-Identifier: Apache-2.0

// The collection: all state of a job as named tensors with roles (Tenplex's "parallelizable tensor
// collection", SOSP'24, section 3). What a rank holds is a layout of it; what a checkpoint writes,
// what a recovery moves and what the digest sums are entries of it. A tensor that several layers
// share is one tensor with several layers: tying needs no special case anywhere else.
//
// A use is an (operation, parameter) pair. Gradients are summed per use, so each use has accumulators
// and the set of microbatches they hold; a tensor's gradient is the sum over its uses and holders. The
// training loss is a tensor of two elements (the fixed-point sum and the count of targets) with one use,
// that of the loss operation, and no parameter.

#include <cstdint>
#include <string>
#include <vector>

#include "rheo/tensor/parameter_part.hpp"
#include "rheo/tensor/shape.hpp"
#include "rheo/topology/tagged_index.hpp"

namespace rheo::inline v0 {

enum class tensor_role : std::uint8_t { parameter, first_moment, second_moment, accumulator };

/// Which roles of a tensor are committed state of its layers' holders. Where not all holders of a parameter keep its moments (plan/optimizer_shards.hpp) these
/// are a tensor of their own. Where stages read a copy (dtype_policy::stores_apart), the optimizer's parameter is kept with its moments, and all holders have
/// the copy.
enum class committed_roles : std::uint8_t { all, parameter, moments, copy, optimizer };

/// What not all holders of a parameter keep.
constexpr bool are_of_keepers(committed_roles roles) { return roles == committed_roles::moments || roles == committed_roles::optimizer; }

constexpr bool has_role(committed_roles roles, tensor_role role)
{
    switch (role) {
    case tensor_role::parameter: return roles != committed_roles::moments;
    case tensor_role::first_moment:
    case tensor_role::second_moment: return roles == committed_roles::all || are_of_keepers(roles);
    case tensor_role::accumulator: return roles == committed_roles::all;
    }
    return false;
}

/// How a tensor gets its first values.
struct initial_values {
    double mean = 0;
    double deviation = 0;  ///< of a normal distribution; 0: all elements are the mean

    friend constexpr bool operator==(initial_values, initial_values) = default;
};

struct tensor_info {
    std::string name;  ///< unique; Hugging Face's where it has one
    tensor_shape shape;
    initial_values initial;
    bool decays = false;           ///< weight decay applies
    bool is_parameter = true;      ///< false for the loss
    std::vector<layer_id> layers;  ///< ascending: every holder of one of them holds the tensor
    std::vector<use_id> uses;      ///< ascending
    parameter_part part{};         ///< which boxes of a parameter it is, on a grid of shards
    committed_roles committed = committed_roles::all;

    friend bool operator==(tensor_info const&, tensor_info const&) = default;
};

struct use_info {
    tensor_id tensor;
    layer_id layer;
    int parameter = 0;  ///< of the layer's list, on a grid of the shard's; -1: the loss
    int shard = 0;      ///< which contributes

    friend constexpr bool operator==(use_info const&, use_info const&) = default;
};

struct collection {
    std::vector<tensor_info> tensors;
    std::vector<use_info> uses;

    friend bool operator==(collection const&, collection const&) = default;
};

/// The name of the parameter that a tensor is, or is a part of.
inline std::string const& parameter_name(tensor_info const& tensor) { return tensor.part.parameter.empty() ? tensor.name : tensor.part.parameter; }

/// The shape of that parameter.
inline tensor_shape parameter_shape(tensor_info const& tensor) { return tensor.part.parameter.empty() ? tensor.shape : tensor.part.whole; }

/// Calls f(run of elements) for all of a tensor's elements, in ascending order of its own.
template <class F>
void for_each_run(tensor_info const& tensor, F f)
{
    if (tensor.part.parameter.empty()) {
        f(element_run{.own = 0, .in_parameter = 0, .count = elements(tensor.shape)});
    } else {
        for_each_run(tensor.part, tensor.shape, f);
    }
}

/// The same elements as runs at equal distances.
inline fixed_vector<strided_runs, 3> strided_runs_of(tensor_info const& tensor)
{
    if (!tensor.part.parameter.empty()) {
        return strided_runs_of(tensor.part, tensor.shape);
    }
    fixed_vector<strided_runs, 3> all;
    all.push_back({.first = {.own = 0, .in_parameter = 0, .count = elements(tensor.shape)}});
    return all;
}

}  // namespace rheo::inline v0
