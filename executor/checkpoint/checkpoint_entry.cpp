// SPDX-License-Identifier: Apache-2.0
#include "executor/checkpoint/checkpoint_entry.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "kernels/digest/digest.hpp"
#include "rheo/units/exit_error.hpp"

namespace rheo::inline v0 {

tensor_shape shape_of(checkpoint_manifest const& manifest, std::string_view tensor)
{
    auto const found = std::find_if(manifest.tensors.begin(), manifest.tensors.end(), [&](auto const& t) { return t.name == tensor; });
    if (found == manifest.tensors.end() || !found->is_parameter) {
        throw exit_error{exit_code::bad_data, fmt::format("the checkpoint of step {} has no tensor '{}'", manifest.step.value, tensor)};
    }
    return found->shape;
}

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
