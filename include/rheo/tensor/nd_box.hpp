#pragma once
// SPDX-License-Identifier: Apache-2.0

// A box of an n-dimensional array: one half-open range of indices per dimension, at most eight of them. Layouts are maps from ranks
// to boxes, and resharding is set algebra on them (Tenplex, SOSP'24, section 4). `index_box` is the same for the matrices of a model;
// arrays of research codes and checkpoints have more dimensions. Elements lie row-major: the last index changes first.

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "rheo/units/expects.hpp"

namespace rheo::inline v0 {

inline constexpr int most_dimensions = 8;

/// Half open: `begin` is in, `end` is not.
struct index_range {
    std::int64_t begin = 0;
    std::int64_t end = 0;

    friend constexpr bool operator==(index_range, index_range) = default;
    friend constexpr auto operator<=>(index_range, index_range) = default;
};

constexpr std::int64_t length(index_range range) { return range.end > range.begin ? range.end - range.begin : 0; }

constexpr index_range intersection(index_range a, index_range b) { return {std::max(a.begin, b.begin), std::min(a.end, b.end)}; }

/// The lengths of an array. An empty list is a scalar's: one element, written as one dimension of length 1.
struct nd_shape {
    int dimensions = 1;
    std::int64_t lengths[most_dimensions]{1};

    constexpr nd_shape() = default;
    /// @pre at most eight
    constexpr nd_shape(std::initializer_list<std::int64_t> of)
    {
        expects(of.size() <= most_dimensions, "an array has at most eight dimensions");
        dimensions = of.size() == 0 ? 1 : static_cast<int>(of.size());
        std::copy(of.begin(), of.end(), lengths);
    }

    constexpr std::int64_t& operator[](int dimension) { return lengths[dimension]; }
    constexpr std::int64_t operator[](int dimension) const { return lengths[dimension]; }
    friend constexpr bool operator==(nd_shape const&, nd_shape const&) = default;
};

/// One range per dimension; ranges beyond `dimensions` stay 0:0.
struct nd_box {
    int dimensions = 0;
    index_range ranges[most_dimensions]{};  // no std::array: the compiler counts each call of its operator[] against its limits

    constexpr nd_box() = default;
    /// @pre at most eight
    constexpr nd_box(std::initializer_list<index_range> of)
    {
        expects(of.size() <= most_dimensions, "a box has at most eight dimensions");
        dimensions = static_cast<int>(of.size());
        std::copy(of.begin(), of.end(), ranges);
    }

    constexpr index_range& operator[](int dimension) { return ranges[dimension]; }
    constexpr index_range const& operator[](int dimension) const { return ranges[dimension]; }
    friend constexpr bool operator==(nd_box const& a, nd_box const& b) { return (a <=> b) == 0; }
    /// By dimensions, then by range after range.
    friend constexpr std::strong_ordering operator<=>(nd_box const& a, nd_box const& b)
    {
        if (a.dimensions != b.dimensions) {
            return a.dimensions <=> b.dimensions;
        }
        for (int d = 0; d < a.dimensions; ++d) {
            if (a[d].begin != b[d].begin) {
                return a[d].begin <=> b[d].begin;
            }
            if (a[d].end != b[d].end) {
                return a[d].end <=> b[d].end;
            }
        }
        return std::strong_ordering::equal;
    }
};

constexpr nd_box whole(nd_shape const& shape)
{
    nd_box box;
    box.dimensions = shape.dimensions;
    for (int d = 0; d < shape.dimensions; ++d) {
        box[d] = {0, shape[d]};
    }
    return box;
}

/// The lengths of a box.
constexpr nd_shape shape_of(nd_box const& box)
{
    nd_shape shape;
    shape.dimensions = std::max(box.dimensions, 1);
    for (int d = 0; d < box.dimensions; ++d) {
        shape[d] = length(box[d]);
    }
    return shape;
}

constexpr bool is_empty(nd_box const& box)
{
    bool empty = box.dimensions == 0;
    for (int d = 0; d < box.dimensions && !empty; ++d) {
        empty = box.ranges[d].end <= box.ranges[d].begin;
    }
    return empty;
}

/// The number of elements, or nothing where 64 bits do not hold it.
constexpr std::optional<std::int64_t> count_elements(nd_box const& box)
{
    std::int64_t count = is_empty(box) ? 0 : 1;
    for (int d = 0; d < box.dimensions && count > 0; ++d) {
        if (__builtin_mul_overflow(count, length(box[d]), &count)) {
            return std::nullopt;
        }
    }
    return count;
}

/// @pre the number of elements fits into 64 bits
constexpr std::int64_t elements(nd_box const& box)
{
    auto const count = count_elements(box);
    expects(count.has_value(), "a box has more elements than 64 bits can count");
    return *count;
}

/// @pre both have equally many dimensions
constexpr nd_box intersection(nd_box const& a, nd_box const& b)
{
    expects(a.dimensions == b.dimensions, "boxes of arrays with different numbers of dimensions do not meet");
    nd_box common;
    common.dimensions = a.dimensions;
    for (int d = 0; d < a.dimensions; ++d) {
        common[d] = intersection(a[d], b[d]);
    }
    return common;
}

constexpr bool intersects(nd_box const& a, nd_box const& b)
{
    bool meet = a.dimensions == b.dimensions && a.dimensions > 0;
    for (int d = 0; d < a.dimensions && meet; ++d) {
        auto const& first = a.ranges[d];
        auto const& second = b.ranges[d];
        meet = first.begin < second.end && second.begin < first.end && first.begin < first.end && second.begin < second.end;
    }
    return meet;
}

/// Whether all elements of `inner` are in `outer`; an empty box is in every box.
constexpr bool contains(nd_box const& outer, nd_box const& inner)
{
    bool all = outer.dimensions == inner.dimensions;
    for (int d = 0; d < inner.dimensions && all; ++d) {
        all = outer.ranges[d].begin <= inner.ranges[d].begin && inner.ranges[d].end <= outer.ranges[d].end;
    }
    return all || is_empty(inner);
}

/// The elements of `a` that are not in `b` as disjoint boxes, at most two per dimension, cut by the first dimensions first.
template <class OnlyWhenCalled = void>
constexpr std::vector<nd_box> difference(nd_box const& a, nd_box const& b)
{
    std::vector<nd_box> rest;
    if (!intersects(a, b)) {
        if (!is_empty(a)) {
            rest.push_back(a);
        }
        return rest;
    }
    auto left = a;
    for (int d = 0; d < a.dimensions; ++d) {
        auto piece = left;
        piece[d] = {left[d].begin, b[d].begin};
        if (!is_empty(piece)) {
            rest.push_back(piece);
        }
        piece[d] = {b[d].end, left[d].end};
        if (!is_empty(piece)) {
            rest.push_back(piece);
        }
        left[d] = intersection(left[d], b[d]);
    }
    return rest;
}

/// Takes the elements of `b` out of every box of a list.
template <class OnlyWhenCalled = void>
constexpr void subtract(std::vector<nd_box>& from, nd_box const& b)
{
    std::vector<nd_box> rest;
    for (auto const& a : from) {
        for (auto const& piece : difference(a, b)) {
            rest.push_back(piece);
        }
    }
    from = rest;
}

/// "[0:4, 8:16]": half-open ranges, as Python writes slices.
template <class OnlyWhenCalled = void>
std::string to_string(nd_box const& box)
{
    std::string text = "[";
    for (int d = 0; d < box.dimensions; ++d) {
        text += (d == 0 ? "" : ", ") + std::to_string(box[d].begin) + ":" + std::to_string(box[d].end);
    }
    return text + "]";
}

#ifdef RHEO_COMPILED  // in rheo::compiled
extern template std::string to_string<>(nd_box const&);
#endif

}  // namespace rheo::inline v0
