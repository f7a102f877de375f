#pragma once
// SPDX-License-Identifier: Apache-2.0

// The part of a parameter that is a tensor of its own, because a shard of a grid computes with it alone: up to three boxes, packed side by side (columns of
// queries, keys and values), or one below the other where they are as wide as the parameter. Initial values, digests and files go by the elements of the
// whole parameter, so that they are the same on every grid.

#include <cstdint>
#include <string>

#include "rheo/tensor/box.hpp"
#include "rheo/tensor/fixed_vector.hpp"
#include "rheo/tensor/shape.hpp"
#include "rheo/topology/tagged_index.hpp"

namespace rheo::inline v0 {

struct parameter_part {
    std::string parameter;  ///< its name; empty: the tensor is the whole parameter
    tensor_shape whole{};   ///< shape of the parameter
    fixed_vector<index_box, 3> pieces{};
    tensor_id number{-1};  ///< of the parameter on a grid of one, which keys its initial values

    friend bool operator==(parameter_part const&, parameter_part const&) = default;
};

/// Elements that follow each other in a tensor and in the parameter that it is a part of.
struct element_run {
    std::int64_t own = 0;           ///< of the first one in the tensor, row-major
    std::int64_t in_parameter = 0;  ///< of the first one in the parameter
    std::int64_t count = 0;

    friend constexpr bool operator==(element_run, element_run) = default;
};

/// Runs of equal length at equal distances.
struct strided_runs {
    element_run first{};
    std::int64_t runs = 1;
    std::int64_t own_stride = 0;
    std::int64_t stride_in_parameter = 0;

    friend constexpr bool operator==(strided_runs, strided_runs) = default;
};

constexpr std::int64_t elements(strided_runs const& all) { return all.runs * all.first.count; }

/// The elements of a part packed as `shape`, box by box. @pre the boxes fill the shape
constexpr fixed_vector<strided_runs, 3> strided_runs_of(parameter_part const& part, tensor_shape shape)
{
    fixed_vector<strided_runs, 3> all;
    bool const as_wide = shape.columns == part.whole.columns;
    std::int64_t own = 0;
    for (auto const& box : part.pieces) {
        auto const begin = box.row_begin * part.whole.columns + (as_wide ? 0 : box.column_begin);
        auto const count = as_wide ? elements(box) : box.column_end - box.column_begin;
        all.push_back({.first = {own, begin, count}, .runs = as_wide ? 1 : shape.rows, .own_stride = shape.columns, .stride_in_parameter = part.whole.columns});
        own += count;
    }
    return all;
}

/// Calls f(run) for all elements of a part packed as `shape`, in ascending order of `own`. Boxes as wide as the parameter are one run each.
/// @pre the boxes fill the shape
template <class F>
constexpr void for_each_run(parameter_part const& part, tensor_shape shape, F f)
{
    auto const all = strided_runs_of(part, shape);
    for (std::int64_t r = 0; r < (all.empty() ? 0 : all[0].runs); ++r) {
        for (auto const& one : all) {
            f(element_run{one.first.own + r * one.own_stride, one.first.in_parameter + r * one.stride_in_parameter, one.first.count});
        }
    }
}

}  // namespace rheo::inline v0
