// SPDX-License-Identifier: Apache-2.0
#include "executor/checkpoint/checkpoint_entry.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "kernels/digest/digest.hpp"

namespace rheo::inline v0 {

std::string_view name_of(tensor_role role)
{
    constexpr std::string_view names[] = {"parameter", "first_moment", "second_moment", "accumulator"};
    return names[static_cast<std::size_t>(role)];
}

std::string entry_name(checkpoint_entry const& entry, tensor_shape shape)
{
    auto name = entry.role == tensor_role::parameter ? entry.tensor : fmt::format("{}/{}", name_of(entry.role), entry.tensor);
    auto const& b = entry.box;
    return b == whole(shape) ? name : fmt::format("{}[{}:{},{}:{}]", name, b.row_begin, b.row_end, b.column_begin, b.column_end);
}

state_digest digest_of_box(checkpoint_entry const& entry, tensor_shape shape, std::span<float const> values)
{
    auto const& box = entry.box;
    auto const full_rows = box.column_begin == 0 && box.column_end == shape.columns;
    auto const run = full_rows ? elements(box) : box.column_end - box.column_begin;  // elements that follow each other in the tensor
    state_digest sum;
    for (auto row = box.row_begin; !values.empty(); ++row) {
        auto const count = std::min(static_cast<std::size_t>(run), values.size());
        sum += host::digest_of(entry.tensor, entry.role, row * shape.columns + box.column_begin, values.first(count));
        values = values.subspan(count);
    }
    return sum;
}

}  // namespace rheo::inline v0
