// SPDX-License-Identifier: Apache-2.0
#include "executor/reshard/local_arrays.hpp"

#include <algorithm>

namespace rheo::inline v0::detail {

namespace {

auto first_from(std::vector<local_array> const& arrays, std::int64_t begin)
{
    return std::lower_bound(arrays.begin(), arrays.end(), begin, [](local_array const& a, std::int64_t place) { return a.box[0].begin < place; });
}

}  // namespace

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
            all.longest = std::max(all.longest, length(a->box[0]));
            for (auto b = a + 1; b != arrays.end() && b->box[0].begin < a->box[0].end; ++b) {
                if (intersects(a->box, b->box)) {
                    overlaps.emplace_back(std::min(a->number, b->number), std::max(a->number, b->number));
                }
            }
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
    auto const& arrays = found->second.arrays;
    for (auto a = first_from(arrays, box[0].begin - found->second.longest); a != arrays.end() && a->box[0].begin < box[0].end; ++a) {
        if (intersects(a->box, box)) {
            pieces.push_back({&*a, intersection(a->box, box)});
        }
    }
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
