// SPDX-License-Identifier: Apache-2.0
#include "executor/checkpoint/convert/distributed_checkpoint.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "executor/checkpoint/checkpoint_files.hpp"
#include "executor/checkpoint/huggingface.hpp"
#include "executor/config/strict_json.hpp"
#include "rheo/reshard/detail/box_sets.hpp"
#include "rheo/units/exit_error.hpp"

namespace rheo::inline v0 {

namespace {

namespace fs = std::filesystem;
using json = nlohmann::json;

constexpr char const* sharding_key = "DCP_SHARDING_INFO";
constexpr char const* offsets_key = "saved_offsets";
constexpr std::string_view suffix = ".safetensors";
constexpr std::int64_t most_length = std::int64_t{1} << 58;
constexpr std::int64_t most_state_bytes = std::int64_t{1} << 30;

[[noreturn]] void refuse(fs::path const& file, std::string const& reason)
{
    throw exit_error{exit_code::bad_data, fmt::format("'{}' {}", file.string(), reason)};
}

/// The box of an entry in its tensor; a scalar is a vector of one element.
nd_box box_of(safetensors_entry const& entry, json const& offsets)
{
    if (entry.shape.size() > static_cast<std::size_t>(most_dimensions)) {
        throw json_error{fmt::format("has '{}' with {} dimensions; at most {} can be converted", entry.name, entry.shape.size(), most_dimensions)};
    }
    if (offsets.size() != entry.shape.size()) {
        throw json_error{fmt::format("has '{}' with {} dimensions and {} offsets", entry.name, entry.shape.size(), offsets.size())};
    }
    nd_box box;
    box.dimensions = std::max(1, static_cast<int>(entry.shape.size()));
    box[0] = {0, 1};
    for (std::size_t d = 0; d < entry.shape.size(); ++d) {
        auto const begin = integer_of(offsets[d], offsets_key, {0, most_length});
        if (entry.shape[d] > most_length) {
            throw json_error{fmt::format("has '{}' with the length {}", entry.name, entry.shape[d])};
        }
        box[static_cast<int>(d)] = {begin, begin + entry.shape[d]};
    }
    return box;
}

/// Offsets of each entry of a file, by its name; zeros where the file says nothing.
json offsets_of(safetensors_header const& header)
{
    auto const said = header.metadata.find(sharding_key);
    auto const known = said == header.metadata.end() ? json() : parse_strict(said->second, 4);
    json offsets = json::object();
    for (auto const& entry : header.entries) {
        offsets[entry.name] =
            said == header.metadata.end() ? json(std::vector<int>(entry.shape.size(), 0)) : list_member(member(known, entry.name.c_str()), offsets_key);
    }
    return offsets;
}

struct key_parts {
    std::size_t tensor;
    std::vector<std::size_t> pieces;
};

/// Adds an entry to its tensor, which spans all its shards.
void add_piece(stored_state& state, std::map<std::string, key_parts>& keys, std::size_t file, safetensors_entry const& entry, nd_box const& box,
               std::int64_t data_begin)
{
    auto const [found, is_new] = keys.try_emplace(entry.name, key_parts{state.tensors.size(), {}});
    auto const element = static_cast<std::size_t>(tensor_role::parameter);
    if (is_new) {
        stored_tensor next;
        next.about.name = name_in_layout(entry.name, state.files[file]);
        next.about.shape = {};
        next.about.shape.dimensions = box.dimensions;
        next.about.element = {element_format{bytes{safetensors_element_bytes(entry.dtype)}}};
        next.dtype[element] = entry.dtype;
        next.dimensions = static_cast<int>(entry.shape.size());
        std::fill_n(next.about.shape.lengths, most_dimensions, 0);
        state.tensors.push_back(next);
    }
    auto& tensor = state.tensors[found->second.tensor];
    if (tensor.dtype[element] != entry.dtype || tensor.dimensions != static_cast<int>(entry.shape.size())) {
        throw json_error{fmt::format("has '{}' in {} with {} dimensions; other files have it in {} with {}", entry.name, entry.dtype, entry.shape.size(),
                                     tensor.dtype[element], tensor.dimensions)};
    }
    for (int d = 0; d < box.dimensions; ++d) {
        tensor.about.shape[d] = std::max(tensor.about.shape[d], box[d].end);
    }
    if (!is_empty(box)) {
        found->second.pieces.push_back(state.pieces.size());
        state.pieces.push_back({file, tensor_id{static_cast<std::int32_t>(found->second.tensor)}, tensor_role::parameter, box, data_begin + entry.begin, {}});
    }
}

/// Each element is in exactly one shard.
void check_coverage(stored_state const& state, std::string const& key, key_parts const& parts)
{
    auto const all = whole(state.tensors[parts.tensor].about.shape);
    if (!count_elements(all) || *count_elements(all) > most_length) {
        refuse(state.folder, fmt::format("has '{}' with more elements than can be counted: {}", key, to_string(all)));
    }
    if (is_empty(all)) {
        refuse(state.folder, fmt::format("has '{}' without an element, {}; it cannot be converted", key, to_string(all)));
    }
    std::vector<nd_box> boxes;
    for (auto const p : parts.pieces) {
        boxes.push_back(state.pieces[p].box);
    }
    if (auto const two = detail::overlapping(boxes)) {
        auto const& [a, b] = *two;
        refuse(state.folder, fmt::format("has elements of '{}' twice: {} in '{}' and {} in '{}'", key, to_string(boxes[a]),
                                         state.files[state.pieces[parts.pieces[a]].file].filename().string(), to_string(boxes[b]),
                                         state.files[state.pieces[parts.pieces[b]].file].filename().string()));
    }
    std::sort(boxes.begin(), boxes.end());
    if (auto const gap = detail::first_gap(all, boxes)) {
        refuse(state.folder, fmt::format("lacks {} of '{}', which is {}: a shard's file is missing", to_string(*gap), key, to_string(all)));
    }
}

/// A matrix of the checkpoint's shape, which may be a vector in its files. @returns nothing when the shapes differ
std::optional<nd_box> as_matrix(nd_box const& box, nd_shape const& whole_shape, tensor_shape shape)
{
    if (whole_shape == nd_shape{shape.rows, shape.columns}) {
        return box;
    }
    if (shape.rows == 1 && whole_shape == nd_shape{shape.columns}) {
        return nd_box{{0, 1}, box[0]};
    }
    return std::nullopt;
}

/// What PyTorch's optimizers keep beside the moments, which the step of a checkpoint says.
bool is_step_count(std::string_view key) { return key.starts_with("state.") && key.ends_with(".step"); }

}  // namespace

stored_state assemble_shards(fs::path const& folder, std::vector<shard_header> const& shards)
{
    stored_state state{.folder = folder, .files = {}, .tensors = {}, .pieces = {}};
    std::map<std::string, key_parts> keys;
    for (std::size_t f = 0; f < shards.size(); ++f) {
        auto const& [path, header] = shards[f];
        state.files.push_back(path);
        try {
            auto const offsets = offsets_of(header);
            for (auto const& entry : header.entries) {
                add_piece(state, keys, f, entry, box_of(entry, offsets.at(entry.name)), header.data_begin);
            }
        } catch (json_error const& error) {
            refuse(path, error.what());
        }
    }
    for (auto const& [key, parts] : keys) {
        check_coverage(state, key, parts);
    }
    return state;
}

bool looks_distributed(fs::path const& folder)
{
    std::error_code error;
    for (fs::directory_iterator entry{folder, error}; !error && entry != fs::directory_iterator{}; entry.increment(error)) {
        if (auto const name = entry->path().filename(); name == ".metadata" || name.string().ends_with(suffix)) {
            return true;
        }
    }
    return false;
}

stored_state read_distributed_checkpoint(fs::path const& folder)
{
    std::vector<fs::path> files;
    std::error_code error;
    for (fs::directory_iterator entry{folder, error}; !error && entry != fs::directory_iterator{}; entry.increment(error)) {
        if (entry->path().filename().string().ends_with(suffix)) {
            files.push_back(entry->path());
        }
    }
    if (error) {
        refuse(folder, fmt::format("cannot be listed: {}", error.message()));
    }
    if (files.empty()) {
        refuse(folder, "is a PyTorch checkpoint in its pickled form (.metadata); save it with HuggingFaceStorageWriter, whose form can be read");
    }
    std::sort(files.begin(), files.end());
    std::vector<shard_header> shards;
    for (auto const& file : files) {
        shards.push_back({file, safetensors_file{file}.header()});
    }
    return assemble_shards(folder, shards);
}

std::optional<state_manifest> read_state_manifest(fs::path const& folder)
{
    auto const path = folder / state_file_name;
    std::error_code error;
    if (!fs::exists(path, error)) {
        return std::nullopt;
    }
    return parse_state(read_file(path, most_state_bytes), path.string());
}

std::string distributed_key(std::string_view tensor, tensor_role role)
{
    return role == tensor_role::parameter ? std::string{tensor}
                                          : fmt::format("state.{}.{}", tensor, role == tensor_role::first_moment ? "exp_avg" : "exp_avg_sq");
}

stored_state named_like(stored_state const& keys, checkpoint_manifest const& about)
{
    std::map<std::string_view, std::size_t> by_key;
    for (std::size_t t = 0; t < keys.tensors.size(); ++t) {
        by_key.emplace(keys.tensors[t].about.name.view(), t);
    }
    stored_state state{.folder = keys.folder, .files = keys.files, .tensors = {}, .pieces = {}, .about = about};
    state.about->files.clear();
    std::vector<std::pair<tensor_id, tensor_role>> meaning(keys.tensors.size(), {tensor_id{-1}, tensor_role::parameter});
    for (auto const& tensor : about.tensors) {
        if (!tensor.is_parameter) {
            continue;
        }
        tensor_id const number{static_cast<std::int32_t>(state.tensors.size())};
        stored_tensor next;
        next.about.name = name_in_layout(tensor.name, keys.folder);
        next.about.shape = {tensor.shape.rows, tensor.shape.columns};
        next.dimensions = static_cast<int>(huggingface_shape(tensor.name, tensor.shape).size());
        for (auto const role : {tensor_role::parameter, tensor_role::first_moment, tensor_role::second_moment}) {
            auto found = by_key.find(distributed_key(tensor.name, role));
            found = found == by_key.end() ? by_key.find(distributed_key(huggingface_name(tensor.name), role)) : found;
            if (found == by_key.end()) {
                refuse(keys.folder, fmt::format("has no '{}', which the checkpoint of step {} has", distributed_key(tensor.name, role), about.step.value));
            }
            auto const& is = keys.tensors[found->second];
            if (is.dtype.front() != "F32" || !as_matrix(whole(is.about.shape), is.about.shape, tensor.shape)) {
                refuse(keys.folder, fmt::format("has '{}' as {} {}; the checkpoint has {} x {} in F32", found->first, is.dtype.front(),
                                                to_string(whole(is.about.shape)), tensor.shape.rows, tensor.shape.columns));
            }
            next.about.element[static_cast<std::size_t>(role)] = dtype::f32;
            next.dtype[static_cast<std::size_t>(role)] = "F32";
            meaning[found->second] = {number, role};
        }
        state.tensors.push_back(next);
    }
    for (auto const& piece : keys.pieces) {
        auto const& key = keys.tensors[at(piece.tensor)].about;
        auto const [tensor, role] = meaning[at(piece.tensor)];
        if (tensor.value >= 0) {
            auto const& shape = state.tensors[at(tensor)].about.shape;
            state.pieces.push_back({piece.file, tensor, role, *as_matrix(piece.box, key.shape, {shape[0], shape[1]}), piece.begin, {}});
        } else if (!is_step_count(key.name.view())) {
            refuse(keys.folder, fmt::format("has '{}', which the checkpoint of step {} does not have", key.name.view(), about.step.value));
        }
    }
    return state;
}

std::map<std::string, std::string> sharding_metadata(std::map<std::string, std::vector<std::int64_t>> const& offsets)
{
    json info = json::object();
    for (auto const& [key, of] : offsets) {
        info[key] = {{offsets_key, of}};
    }
    return {{sharding_key, info.dump()}, {"DCP_VERSION", "1.0"}};
}

}  // namespace rheo::inline v0
