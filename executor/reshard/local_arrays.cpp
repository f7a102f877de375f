// SPDX-License-Identifier: Apache-2.0
#include "executor/reshard/local_arrays.hpp"

#include <algorithm>

namespace rheo::inline v0::detail {

namespace {

/// Of arrays that ascend in a dimension, the first one from an index on.
template <class Iterator>
Iterator first_from(Iterator begin, Iterator end, int dimension, std::int64_t index)
{
    return std::lower_bound(begin, end, index, [&](local_array const& a, std::int64_t place) { return a.box[dimension].begin < place; });
}

}  // namespace

/// Blocks of a grid are many in a row: of those with the same rows, the columns are looked up, too.
template <class Use>
void local_arrays::same_role::for_each_meeting(nd_box const& box, Use const& use) const
{
    auto a = first_from(arrays.begin(), arrays.end(), 0, box[0].begin - longest[0]);
    while (a != arrays.end() && a->box[0].begin < box[0].end) {
        auto row_end = a + 1;
        if (row_end != arrays.end() && row_end->box[0] == a->box[0]) {
            row_end = std::upper_bound(row_end, arrays.end(), a->box[0], [](index_range const& rows, local_array const& other) { return rows < other.box[0]; });
        }
        auto const by_column = box.dimensions > 1 && row_end - a > 1;
        for (auto b = by_column ? first_from(a, row_end, 1, box[1].begin - longest[1]) : a; b != row_end; ++b) {
            if (by_column && b->box[1].begin >= box[1].end) {
                break;
            }
            if (intersects(b->box, box)) {
                use(*b);
            }
        }
        a = row_end;
    }
}

std::byte* array_piece::data() const
{
    auto* first = array->data;
    for (int d = 0; d < box.dimensions; ++d) {
        first += array->stride[static_cast<std::size_t>(d)] * static_cast<std::ptrdiff_t>(box[d].begin - array->box[d].begin);
    }
    return first;
}

void local_arrays::add(tensor_id tensor, tensor_role role, local_array const& array)
{
    if (!is_empty(array.box)) {
        roles_[{tensor, role}].arrays.push_back(array);
    }
}

std::vector<std::pair<std::size_t, std::size_t>> local_arrays::sort()
{
    std::vector<std::pair<std::size_t, std::size_t>> overlaps;
    for (auto& [key, all] : roles_) {
        auto& arrays = all.arrays;
        std::sort(arrays.begin(), arrays.end(), [](local_array const& a, local_array const& b) { return a.box < b.box; });
        for (auto a = arrays.begin(); a != arrays.end(); ++a) {
            for (int d = 0; d < std::min(a->box.dimensions, 2); ++d) {
                auto& longest = all.longest[static_cast<std::size_t>(d)];
                longest = std::max(longest, length(a->box[d]));
            }
        }
        for (auto const& a : arrays) {
            all.for_each_meeting(a.box, [&](local_array const& b) {
                if (a.number < b.number) {
                    overlaps.emplace_back(a.number, b.number);
                }
            });
        }
    }
    return overlaps;
}

std::vector<array_piece> local_arrays::find(tensor_id tensor, tensor_role role, nd_box const& box) const
{
    std::vector<array_piece> pieces;
    auto const found = roles_.find({tensor, role});
    if (found == roles_.end() || is_empty(box)) {
        return pieces;
    }
    found->second.for_each_meeting(box, [&](local_array const& a) { pieces.push_back({&a, intersection(a.box, box)}); });
    std::sort(pieces.begin(), pieces.end(), [](array_piece const& a, array_piece const& b) { return a.box < b.box; });
    return pieces;
}

nd_box local_arrays::missing(tensor_id tensor, tensor_role role, nd_box const& box) const
{
    auto const pieces = find(tensor, role, box);
    std::int64_t there = 0;
    for (auto const& piece : pieces) {
        there += elements(piece.box);  // arrays are disjoint
    }
    if (there == elements(box)) {
        return {};
    }
    std::vector<nd_box> rest{box};
    for (auto const& piece : pieces) {
        subtract(rest, piece.box);
    }
    return rest.front();
}

}  // namespace rheo::inline v0::detail
