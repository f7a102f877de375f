#pragma once
// SPDX-License-Identifier: Apache-2.0

// Slicing: how one tensor is cut into parts, Tenplex's first function (SOSP'24, section 4.1). Rules are values that are put one after the
// other, `slices_of({8, 6}) | segments(...) | cut(...)`; each acts on every part that the rules before it made. Part numbers count as
// nested loops do: the first rule is the outermost. Lengths go up to 2^63 - 1; a rule whose result would be longer is refused.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "rheo/reshard/array_layout.hpp"
#include "rheo/reshard/detail/expects_at.hpp"
#include "rheo/tensor/nd_box.hpp"
#include "rheo/units/expects.hpp"

namespace rheo::inline v0 {

/// A tensor in parts; a part may be several boxes, and parts may be equal.
struct slices {
    nd_shape shape;
    nd_shape padded;  ///< boxes may reach up to here
    std::vector<std::vector<nd_box>> parts;

    friend constexpr bool operator==(slices const&, slices const&) = default;
};

/// All of it in one part. @pre lengths of at least 0
template <class OnlyWhenCalled = void>
constexpr slices slices_of(nd_shape shape)
{
    for (int d = 0; d < shape.dimensions; ++d) {
        expects(shape[d] >= 0, "the lengths of a tensor that is cut are at least 0");
    }
    slices all{shape, shape, {}};
    all.parts.push_back({whole(shape)});
    return all;
}

struct cut_rule {
    int dimension = 0;
    int parts = 1;                      ///< of ceil(length / parts), the last ones shorter or empty, as PyTorch's chunk
    std::vector<std::int64_t> sizes{};  ///< instead of `parts`: one length for each, in sum that of the dimension
    std::int64_t multiple = 1;          ///< with `parts`: all but the last edge are multiples of it
};

/// Each part in so many along a dimension. Every box of a part is cut: after segments(), a part has its share of each segment.
constexpr cut_rule cut(cut_rule const& rule) { return rule; }

struct segment_rule {
    int dimension = 0;
    std::vector<std::int64_t> sizes{};  ///< in sum the length of the dimension
};

/// The boxes of each part in segments that later rules cut one by one: fused queries, keys and values; gate and value.
constexpr segment_rule segments(segment_rule const& rule) { return rule; }

struct cyclic_rule {
    int dimension = 0;
    std::int64_t block = 1;
    int parts = 1;
};

inline constexpr std::int64_t most_blocks = 1 << 24;  ///< of a cyclic rule in a box

/// Blocks of a dimension dealt in turn; one rule for each of two dimensions is ScaLAPACK's block-cyclic layout with a row-major process grid.
constexpr cyclic_rule cyclic(cyclic_rule rule) { return rule; }

struct padding_rule {
    int dimension = 0;
    std::int64_t multiple = 1;
};

/// The dimension is lengthened to a multiple before it is cut, as vocabularies are. No padding is moved. @pre the first rule
constexpr padding_rule padded(padding_rule rule) { return rule; }

struct replication_rule {
    int copies = 1;
};

/// Each part so many times.
constexpr replication_rule replicated(int copies) { return {copies}; }

struct head_rule {
    int dimension = 0;
    int query = 1;      ///< heads
    int key_value = 1;  ///< heads of keys, and as many of values
    int parts = 1;
};

/// A fused matrix of query, key and value heads in parts: heads of queries are cut; heads of keys and values are cut, or, where there are
/// more parts than them, first replicated (grouped-query attention, Ainslie et al. 2023). @pre the parts divide the query heads, and
/// parts and key_value heads divide one another
constexpr head_rule heads(head_rule rule) { return rule; }

namespace detail {

constexpr void expects_dimension(slices const& of, int dimension)
{
    expects(0 <= dimension && dimension < of.shape.dimensions, "a slicing rule names a dimension that the tensor does not have");
}

/// The edges of a cut, from 0 to the length.
template <class OnlyWhenCalled = void>
constexpr std::vector<std::int64_t> edges_of(cut_rule const& rule, std::int64_t length)
{
    std::vector<std::int64_t> edges(1, 0);
    if (!rule.sizes.empty()) {
        for (auto const size : rule.sizes) {
            ruled_dimension const where{rule.dimension, length, "cut with a size of", size};
            expects_at(where, size >= 0, "a size is at least 0");
            expects_at(where, size <= length - edges.back(), "with it, the sizes add up to more than the length");
            edges.push_back(edges.back() + size);
        }
        expects_at({rule.dimension, length, "cut into sizes that end at", edges.back()}, edges.back() == length, "the sizes add up to less than the length");
        return edges;
    }
    expects(rule.parts >= 1, "a cut has at least one part");
    expects(rule.multiple >= 1, "the edges of a cut are multiples of at least 1");
    auto const each = divide_up(divide_up(length, rule.multiple), rule.parts);  // in multiples
    for (int p = 1; p <= rule.parts; ++p) {
        auto const rest = length - edges.back();
        edges.push_back(each > rest / rule.multiple ? length : edges.back() + each * rule.multiple);
    }
    return edges;
}

}  // namespace detail

template <class OnlyWhenCalled = void>
constexpr slices operator|(slices const& of, cut_rule const& rule)
{
    detail::expects_dimension(of, rule.dimension);
    slices result{of.shape, of.padded, {}};
    auto const count = rule.sizes.empty() ? static_cast<std::size_t>(std::max(rule.parts, 1)) : rule.sizes.size();
    for (auto const& part : of.parts) {
        auto const first = result.parts.size();
        result.parts.resize(first + count);
        for (auto const& box : part) {
            auto const edges = detail::edges_of(rule, length(box[rule.dimension]));
            for (std::size_t p = 0; p < count; ++p) {
                auto piece = box;
                piece[rule.dimension] = {box[rule.dimension].begin + edges[p], box[rule.dimension].begin + edges[p + 1]};
                if (!is_empty(piece)) {
                    result.parts[first + p].push_back(piece);
                }
            }
        }
    }
    return result;
}

template <class OnlyWhenCalled = void>
constexpr slices operator|(slices const& of, segment_rule const& rule)
{
    detail::expects_dimension(of, rule.dimension);
    slices result{of.shape, of.padded, {}};
    for (auto const& part : of.parts) {
        result.parts.emplace_back();
        for (auto const& box : part) {
            cut_rule sizes;
            sizes.dimension = rule.dimension;
            sizes.sizes = rule.sizes;
            auto const edges = detail::edges_of(sizes, length(box[rule.dimension]));
            for (std::size_t p = 0; p + 1 < edges.size(); ++p) {
                auto piece = box;
                piece[rule.dimension] = {box[rule.dimension].begin + edges[p], box[rule.dimension].begin + edges[p + 1]};
                result.parts.back().push_back(piece);
            }
        }
    }
    return result;
}

template <class OnlyWhenCalled = void>
constexpr slices operator|(slices const& of, cyclic_rule rule)
{
    detail::expects_dimension(of, rule.dimension);
    expects(rule.block >= 1 && rule.parts >= 1, "a cyclic layout has blocks of at least one element and at least one part");
    slices result{of.shape, of.padded, {}};
    for (auto const& part : of.parts) {
        auto const first = result.parts.size();
        result.parts.resize(first + static_cast<std::size_t>(rule.parts));
        for (auto const& box : part) {
            auto left = box[rule.dimension];
            detail::expects_at({rule.dimension, length(left), "cyclic in blocks of", rule.block}, length(left) / rule.block < most_blocks,
                               "a box has fewer than 16777216 blocks; make them larger");
            for (std::size_t p = 0; left.begin < left.end; p = (p + 1) % static_cast<std::size_t>(rule.parts)) {
                auto piece = box;
                piece[rule.dimension].begin = left.begin;
                left.begin += std::min(rule.block, length(left));
                piece[rule.dimension].end = left.begin;
                result.parts[first + p].push_back(piece);
            }
        }
    }
    return result;
}

template <class OnlyWhenCalled = void>
constexpr slices operator|(slices of, padding_rule rule)
{
    detail::expects_dimension(of, rule.dimension);
    expects(rule.multiple >= 1, "a dimension is padded to a multiple of at least 1");
    expects(of.parts.size() == 1 && of.parts.front().size() == 1, "a tensor is padded before it is cut");
    auto& length = of.padded[rule.dimension];
    auto const rest = length % rule.multiple;
    auto const more = rest == 0 ? 0 : rule.multiple - rest;
    detail::expects_at({rule.dimension, length, "padded to a multiple of", rule.multiple}, more <= std::numeric_limits<std::int64_t>::max() - length,
                       "the padded length does not fit into 64 bits; it is at most 9223372036854775807");
    length += more;
    of.parts.front().front()[rule.dimension].end = length;
    return of;
}

template <class OnlyWhenCalled = void>
constexpr slices operator|(slices const& of, replication_rule rule)
{
    expects(rule.copies >= 1, "a tensor is replicated at least once");
    slices result{of.shape, of.padded, {}};
    for (auto const& part : of.parts) {
        result.parts.insert(result.parts.end(), static_cast<std::size_t>(rule.copies), part);
    }
    return result;
}

template <class OnlyWhenCalled = void>
constexpr slices operator|(slices const& of, head_rule rule)
{
    detail::expects_dimension(of, rule.dimension);
    expects(rule.query >= 1 && rule.key_value >= 1 && rule.parts >= 1 && rule.query % rule.parts == 0,
            "heads are cut into parts whose number divides the query heads");
    expects(rule.key_value % rule.parts == 0 || rule.parts % rule.key_value == 0, "parts and heads of keys and values divide one another");
    std::int64_t const query = rule.query;
    std::int64_t const key_value = rule.key_value;
    auto const width = of.shape[rule.dimension] / (query + 2 * key_value);
    expects(width * (query + 2 * key_value) == of.shape[rule.dimension], "the heads do not divide the length of the dimension");
    slices result{of.shape, of.padded, {}};
    auto const cuts = std::min(rule.parts, rule.key_value);  // of keys and values
    for (auto const& part : of.parts) {
        expects(part.size() == 1 && length(part.front()[rule.dimension]) == of.shape[rule.dimension], "a dimension of heads is cut by heads only");
        for (std::int64_t p = 0; p < rule.parts; ++p) {
            auto const take = [&](std::int64_t first, std::int64_t count, std::int64_t number, std::int64_t of_parts) {
                auto piece = part.front();
                auto const each = count * width / of_parts;
                piece[rule.dimension] = {first * width + number * each, first * width + (number + 1) * each};
                return piece;
            };
            auto const group = p * cuts / rule.parts;
            result.parts.push_back({take(0, query, p, rule.parts), take(query, key_value, group, cuts), take(query + key_value, key_value, group, cuts)});
        }
    }
    return result;
}

}  // namespace rheo::inline v0
