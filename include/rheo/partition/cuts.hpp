#pragma once
// SPDX-License-Identifier: Apache-2.0

// Where a model is cut into stages: S + 1 ascending layers, the first 0 and the last the number of
// layers; stage s is [cuts[s], cuts[s+1]). As a type (`cuts<0, 5, 10, 14>`) it is part of a pipeline
// template's name; as a value it is a vector of layers, because plans are made at run time, too.

#include <cstddef>
#include <vector>

#include "rheo/topology/tagged_index.hpp"
#include "rheo/units/array_view.hpp"
#include "rheo/units/expects.hpp"

namespace rheo::inline v0 {

/// Consecutive layers, half open.
struct layer_span {
    layer_id begin;
    layer_id end;

    friend constexpr bool operator==(layer_span, layer_span) = default;
};

constexpr int size(layer_span span) { return span.end.value - span.begin.value; }
constexpr bool contains(layer_span span, layer_id layer) { return span.begin <= layer && layer < span.end; }

constexpr bool contains(array_view<layer_span const> spans, layer_id layer)
{
    bool found = false;
    for (auto const span : spans) {
        found = found || contains(span, layer);
    }
    return found;
}

/// True when the values ascend strictly from 0, so that each stage has at least one layer.
constexpr bool are_cuts(array_view<layer_id const> bounds)
{
    if (bounds.size() < 2 || bounds[0] != layer_id{0}) {
        return false;
    }
    for (std::size_t s = 1; s < bounds.size(); ++s) {
        if (bounds[s] <= bounds[s - 1]) {
            return false;
        }
    }
    return true;
}

/// The number of stages between the cuts. @pre there are at least two values.
constexpr int stage_count(array_view<layer_id const> bounds)
{
    expects(bounds.size() >= 2, "cuts need a beginning and an end");
    return static_cast<int>(bounds.size()) - 1;
}

/// The layers of a stage. @pre the stage is one of the cuts' stages.
constexpr layer_span layers_of(array_view<layer_id const> bounds, stage_id stage)
{
    expects(stage.value >= 0 && at(stage) + 1 < bounds.size(), "there is no such stage between these cuts");
    return {bounds[at(stage)], bounds[at(stage) + 1]};
}

namespace detail {

template <bool Ascending, int... Bounds>
struct cuts_check {
    static_assert(Ascending, "rheo: cuts must ascend strictly from layer 0, as in cuts<0, 5, 10, 14>");
};

}  // namespace detail

/// Cuts as a type.
template <int... Bounds>
struct cuts {
    static constexpr int stages = static_cast<int>(sizeof...(Bounds)) - 1;

    static constexpr std::vector<layer_id> describe()
    {
        constexpr layer_id bounds[] = {layer_id{Bounds}...};
        static_cast<void>(detail::cuts_check<are_cuts(bounds), Bounds...>{});
        return {layer_id{Bounds}...};
    }
};

}  // namespace rheo::inline v0
