#pragma once
// SPDX-License-Identifier: Apache-2.0

// Where the elements of a box lie in two larger boxes that are stored row-major, as the longest runs that are without gap in both. And the
// other direction: a box in pieces of a bounded size, each of which is one run of it.

#include <algorithm>
#include <cstdint>

#include "rheo/tensor/nd_box.hpp"

namespace rheo::inline v0 {

/// Elements that follow each other in two boxes.
struct box_run {
    std::int64_t in_first = 0;   ///< offset of its first element in the first box
    std::int64_t in_second = 0;  ///< the same in the second
    std::int64_t count = 0;
};

/// The offset of an element in a box. @param at one index per dimension
inline std::int64_t offset_in(nd_box const& box, std::int64_t const* at)
{
    std::int64_t offset = 0;
    for (int d = 0; d < box.dimensions; ++d) {
        offset = offset * length(box[d]) + at[d] - box[d].begin;
    }
    return offset;
}

/// Calls visit(box_run) for all elements of a box, ascending. @pre the box is in both of the others; their sizes fit into 64 bits
template <class Visit>
void for_each_run(nd_box const& box, nd_box const& first, nd_box const& second, Visit const& visit)
{
    if (is_empty(box)) {
        return;
    }
    int inner = box.dimensions - 1;  // the run goes over this dimension and all behind it
    auto count = length(box[inner]);
    while (inner > 0 && box[inner] == first[inner] && box[inner] == second[inner]) {
        count *= length(box[--inner]);
    }
    std::int64_t at[most_dimensions]{};
    for (int d = 0; d < box.dimensions; ++d) {
        at[d] = box[d].begin;
    }
    for (;;) {
        visit(box_run{offset_in(first, at), offset_in(second, at), count});
        int d = inner - 1;
        for (; d >= 0 && ++at[d] == box[d].end; --d) {
            at[d] = box[d].begin;
        }
        if (d < 0) {
            return;
        }
    }
}

/// Calls visit(nd_box) for consecutive pieces of a box, none with more than `most` elements. @pre most is at least the length of its last dimension
template <class Visit>
void for_each_piece(nd_box const& box, std::int64_t most, Visit const& visit, int dimension = 0)
{
    if (is_empty(box)) {
        return;
    }
    auto const count = elements(box);
    if (count <= most) {
        visit(box);
        return;
    }
    auto const slice = count / length(box[dimension]);
    auto const step = std::max<std::int64_t>(1, most / slice);
    for (auto begin = box[dimension].begin; begin < box[dimension].end; begin += step) {
        auto piece = box;
        piece[dimension] = {begin, std::min(begin + step, box[dimension].end)};
        for_each_piece(piece, most, visit, dimension + 1);
    }
}

}  // namespace rheo::inline v0
