#pragma once
// SPDX-License-Identifier: Apache-2.0

// The templates that are ready, at most one of each size. Which numbers of ranks they cover is a
// theorem about their sizes: see covers.hpp.

#include <array>
#include <cstddef>
#include <vector>

#include "rheo/pipeline/template.hpp"
#include "rheo/units/array_view.hpp"
#include "rheo/units/expects.hpp"

namespace rheo::inline v0 {

struct template_set_value {
    std::vector<template_value> templates;  ///< ascending by size, sizes distinct

    friend constexpr bool operator==(template_set_value const&, template_set_value const&) = default;
};

/// The sizes of the templates, ascending.
template <class OnlyWhenCalled = void>
constexpr std::vector<int> sizes_of(template_set_value const& ready)
{
    std::vector<int> sizes;
    for (auto const& shape : ready.templates) {
        sizes.push_back(size(shape));
    }
    return sizes;
}

/// True when the sizes ascend strictly from 1 or more.
constexpr bool are_template_sizes(array_view<int const> sizes)
{
    int before = 0;
    for (auto const n : sizes) {
        if (n <= before) {
            return false;
        }
        before = n;
    }
    return true;
}

/// The template of that size. @pre there is one. Cost: linear in the templates.
template <class OnlyWhenCalled = void>
constexpr template_value const& template_of_size(template_set_value const& ready, int ranks)
{
    std::size_t i = 0;
    while (i < ready.templates.size() && size(ready.templates[i]) != ranks) {
        ++i;
    }
    expects(i < ready.templates.size(), "there is no pipeline template of this size");
    return ready.templates[i];
}

/// What pipelines of these sizes cost, in their order. @pre there is a template of each size
template <class OnlyWhenCalled = void>
constexpr std::vector<pipeline_cost> costs_of_sizes(template_set_value const& ready, std::vector<int> const& sizes)
{
    std::vector<pipeline_cost> costs;
    for (auto const n : sizes) {
        costs.push_back(template_of_size(ready, n).cost);
    }
    return costs;
}

namespace detail {

template <bool Ascending, int... Sizes>
struct template_sizes_check {
    static_assert(Ascending, "rheo: the templates of a template_set must have distinct sizes, the smallest first");
    static constexpr bool passed = true;
};

}  // namespace detail

/// A set of templates as a type. Templates that are not ascending by size do not compile.
template <class... Templates>
struct template_set {
    static constexpr std::array<int, sizeof...(Templates)> sizes{Templates::size...};

    static_assert(detail::template_sizes_check<are_template_sizes(sizes), Templates::size...>::passed);

    /// Its value, given forward and backward times per layer. @pre one time per layer
    static constexpr template_set_value describe(array_view<seconds const> layer_times) { return {{Templates::describe(layer_times)...}}; }
};

}  // namespace rheo::inline v0
