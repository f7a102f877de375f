// SPDX-License-Identifier: Apache-2.0
#include "executor/checkpoint/convert/stored_state.hpp"

#include <algorithm>
#include <cstring>
#include <map>

#include <fmt/format.h>

#include "executor/checkpoint/checkpoint_entry.hpp"
#include "executor/checkpoint/huggingface.hpp"
#include "kernels/digest/digest.hpp"
#include "rheo/units/exit_error.hpp"

namespace rheo::inline v0 {

nd_box to_nd(index_box const& box) { return {{box.row_begin, box.row_end}, {box.column_begin, box.column_end}}; }

index_box to_index_box(nd_box const& box) { return {box[0].begin, box[0].end, box[1].begin, box[1].end}; }

tensor_name name_in_layout(std::string const& name, std::filesystem::path const& where)
{
    if (name.empty() || name.size() >= sizeof tensor_name::letters) {
        throw exit_error{exit_code::bad_data, fmt::format("'{}' has a tensor whose name has {} letters, '{}'; names of tensors that are converted have 1 to {}",
                                                          where.string(), name.size(), name.substr(0, 120), sizeof tensor_name::letters - 1)};
    }
    return tensor_name{std::string_view{name}};
}

stored_state stored_in(checkpoint const& from)
{
    auto const& manifest = from.manifest();
    stored_state state{.folder = from.folder(), .files = {}, .tensors = {}, .pieces = {}, .about = manifest};
    state.about->files.clear();
    std::map<std::string_view, tensor_id> known;
    for (auto const& tensor : manifest.tensors) {
        if (!tensor.is_parameter) {
            continue;
        }
        known.emplace(tensor.name, tensor_id{static_cast<std::int32_t>(state.tensors.size())});
        stored_tensor next;
        next.about.name = name_in_layout(tensor.name, from.folder());
        next.about.shape = {tensor.shape.rows, tensor.shape.columns};
        next.dimensions = static_cast<int>(huggingface_shape(tensor.name, tensor.shape).size());
        for (auto const role : {tensor_role::parameter, tensor_role::first_moment, tensor_role::second_moment}) {
            next.about.element[static_cast<std::size_t>(role)] = dtype::f32;
            next.dtype[static_cast<std::size_t>(role)] = "F32";
        }
        state.tensors.push_back(next);
    }
    for (std::size_t f = 0; f < manifest.files.size(); ++f) {
        auto const& file = from.files()[f];
        state.files.push_back(file.path());
        for (std::size_t e = 0; e < manifest.files[f].entries.size(); ++e) {
            auto const& entry = manifest.files[f].entries[e];
            state.pieces.push_back(
                {f, known.at(entry.tensor), entry.role, to_nd(entry.box), file.header().data_begin + file.header().entries[e].begin, entry.digest});
        }
    }
    return state;
}

array_layout layout_of(stored_state const& state)
{
    array_layout layout;
    for (auto const& tensor : state.tensors) {
        layout.tensors.push_back(tensor.about);
    }
    for (std::size_t f = 0; f < state.files.size(); ++f) {
        layout.places.push_back({{rank_id{static_cast<std::int32_t>(f)}}, {}});
    }
    for (auto const& piece : state.pieces) {
        layout.places[piece.file].parts.push_back({piece.tensor, piece.box, piece.role});
    }
    return layout;
}

std::string name_of(stored_state const& state, tensor_id tensor, tensor_role role)
{
    std::string const name{state.tensors[at(tensor)].about.name.view()};
    return role == tensor_role::parameter ? name : fmt::format("{}/{}", name_of(role), name);
}

state_digest digest_of_elements(std::string_view tensor, tensor_role role, std::int64_t first, std::span<std::byte const> values, std::int64_t element)
{
    auto const size = static_cast<std::size_t>(element);
    if (size == sizeof(float)) {
        return host::digest_of(tensor, role, first, {reinterpret_cast<float const*>(values.data()), values.size() / sizeof(float)});
    }
    constexpr std::size_t most = 256;
    auto const patterns = std::max<std::size_t>(1, size / 4);  // of an element
    auto const width = size / patterns;
    state_digest sum;
    auto position = first * static_cast<std::int64_t>(patterns);
    while (!values.empty()) {
        std::uint32_t words[most]{};
        auto const count = std::min(most, values.size() / width);
        for (std::size_t i = 0; i < count; ++i) {
            std::memcpy(&words[i], values.data() + i * width, width);
        }
        sum += digest_of(tensor, role, position, array_view<std::uint32_t const>{words, count});
        position += static_cast<std::int64_t>(count);
        values = values.subspan(count * width);
    }
    return sum;
}

}  // namespace rheo::inline v0
