// SPDX-License-Identifier: Apache-2.0
#include "executor/checkpoint/checkpoint.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <new>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <range/v3/algorithm/sort.hpp>
#include <range/v3/view/enumerate.hpp>
#include <range/v3/view/zip.hpp>

#include "executor/checkpoint/checkpoint_entry.hpp"
#include "executor/checkpoint/checkpoint_files.hpp"
#include "executor/config/strict_json.hpp"
#include "rheo/units/exit_error.hpp"

namespace rheo::inline v0 {

namespace {

namespace fs = std::filesystem;

constexpr std::int64_t most_manifest_bytes = std::int64_t{1} << 30;
constexpr std::string_view folder_prefix = "step-";

/// Reads; a file that says that it is huge is bad data, not a lack of memory.
template <class Read>
auto read_within_memory(fs::path const& folder, Read read)
{
    try {
        return read();
    } catch (std::bad_alloc const&) {
        throw exit_error{exit_code::bad_data, fmt::format("'{}' cannot be read: there is not enough memory for it", folder.string())};
    }
}

/// The file is the one that the manifest means, its data not yet looked at.
safetensors_file open_file(fs::path const& folder, checkpoint_file const& about, checkpoint_manifest const& manifest)
{
    auto const path = folder / about.name;
    safetensors_file file{path};
    if (file.header().file_bytes != about.bytes) {
        throw exit_error{exit_code::bad_data, fmt::format("'{}' has {} bytes; the manifest says {}", path.string(), file.header().file_bytes, about.bytes)};
    }
    auto const& entries = file.header().entries;
    auto const same = [&](safetensors_entry const& e, checkpoint_entry const& said) {
        auto const shape = shape_of(manifest, said.tensor);
        return e.name == entry_name(said, shape) && e.end - e.begin == 4 * elements(said.box) && e.dtype == "F32";
    };
    if (digest_of_bytes(file.header_bytes()) != about.header || !std::equal(entries.begin(), entries.end(), about.entries.begin(), about.entries.end(), same)) {
        throw exit_error{exit_code::bad_data,
                         fmt::format("'{}' does not have the header that the manifest says: it was changed, or is of another checkpoint", path.string())};
    }
    return file;
}

std::vector<float> read_box(safetensors_file const& file, std::size_t which, checkpoint_entry const& said, tensor_shape shape)
{
    auto values = file.read(file.header().entries[which]);
    if (digest_of_box(said, shape, values) != said.digest) {
        throw exit_error{exit_code::bad_data,
                         fmt::format("'{}' has other values of '{}' ({}) than the manifest says: its bytes were changed, or its disk is not sound",
                                     file.path().string(), said.tensor, name_of(said.role))};
    }
    return values;
}

}  // namespace

checkpoint_manifest read_checkpoint_manifest(fs::path const& folder)
{
    auto const path = folder / "manifest.json";
    auto manifest = parse_manifest(read_file(path, most_manifest_bytes), path.string());
    if (auto const step = step_of(folder); step && *step != manifest.step) {
        throw exit_error{exit_code::bad_data, fmt::format("'{}' is of step {}, but its folder is of step {}", path.string(), manifest.step.value, step->value)};
    }
    return manifest;
}

std::optional<step_id> step_of(fs::path const& folder)
{
    auto const name = folder.filename().string();
    step_id step;
    if (!name.starts_with(folder_prefix)) {
        return std::nullopt;
    }
    auto const [end, bad] = std::from_chars(name.data() + folder_prefix.size(), name.data() + name.size(), step.value);
    auto const good = bad == std::errc{} && end == name.data() + name.size() && name == fmt::format("{}{}", folder_prefix, step.value);
    return good ? std::optional{step} : std::nullopt;
}

checkpoint::checkpoint(fs::path folder) : folder_{std::move(folder)}
{
    read_within_memory(folder_, [&] {
        manifest_ = read_checkpoint_manifest(folder_);
        for (auto const& file : manifest_.files) {
            files_.push_back(open_file(folder_, file, manifest_));
        }
    });
}

std::vector<float> checkpoint::read(std::string_view tensor, tensor_role role, index_box const& box) const
{
    return read_within_memory(folder_, [&] {
        auto const shape = shape_of(manifest_, tensor);
        if (intersection(box, whole(shape)) != box || elements(box) == 0) {
            throw exit_error{exit_code::bad_data,
                             fmt::format("'{}' has '{}' with {} x {} elements, but rows {} to {}, columns {} to {} are asked for", folder_.string(), tensor,
                                         shape.rows, shape.columns, box.row_begin, box.row_end, box.column_begin, box.column_end)};
        }
        std::vector<float> values;
        for (auto const& [file, listed] : ranges::views::zip(files_, manifest_.files)) {
            for (auto const& [e, said] : ranges::views::enumerate(listed.entries)) {
                auto const common = intersection(said.box, box);
                if (said.tensor != tensor || said.role != role || elements(common) == 0) {
                    continue;
                }
                auto stored = read_box(file, e, said, shape);
                if (said.box == box) {
                    return stored;
                }
                values.resize(static_cast<std::size_t>(elements(box)));
                auto const place_in = [&](index_box const& of, std::int64_t row) {
                    return (row - of.row_begin) * (of.column_end - of.column_begin) + common.column_begin - of.column_begin;
                };
                for (auto row = common.row_begin; row < common.row_end; ++row) {
                    std::copy_n(stored.begin() + place_in(said.box, row), common.column_end - common.column_begin, values.begin() + place_in(box, row));
                }
            }
        }
        return values;
    });
}

std::vector<float> checkpoint::read(std::string_view tensor, tensor_role role) const { return read(tensor, role, whole(shape_of(manifest_, tensor))); }

tensor_values checkpoint::read(std::string_view tensor) const
{
    return {read(tensor, tensor_role::parameter), read(tensor, tensor_role::first_moment), read(tensor, tensor_role::second_moment)};
}

void checkpoint::verify() const
{
    read_within_memory(folder_, [&] {
        for (auto const& [file, listed] : ranges::views::zip(files_, manifest_.files)) {
            for (auto const& [e, said] : ranges::views::enumerate(listed.entries)) {
                read_box(file, e, said, shape_of(manifest_, said.tensor));
            }
        }
    });
}

std::vector<float> checkpoint::read(tensor_info const& tensor, tensor_role role) const
{
    if (tensor.shape == parameter_shape(tensor)) {
        return read(parameter_name(tensor), role);
    }
    std::vector<float> values(static_cast<std::size_t>(elements(tensor.shape)));
    std::int64_t first = 0;  // of the piece in the tensor
    for (auto const& box : tensor.part.pieces) {
        auto const piece = read(tensor.part.parameter, role, box);
        auto const width = box.column_end - box.column_begin;
        for (std::int64_t row = 0; row < box.row_end - box.row_begin; ++row) {
            std::copy_n(piece.begin() + row * width, width, values.begin() + first + row * tensor.shape.columns);
        }
        first += width == tensor.shape.columns ? elements(box) : width;
    }
    return values;
}

tensor_values checkpoint::read(tensor_info const& tensor) const
{
    return {read(tensor, tensor_role::parameter), read(tensor, tensor_role::first_moment), read(tensor, tensor_role::second_moment)};
}

std::string checkpoint::load_error(collection const& state) const
{
    auto const& stored = manifest_.tensors;
    for (auto const& tensor : state.tensors) {
        auto const& name = parameter_name(tensor);
        auto const shape = parameter_shape(tensor);
        auto const found = std::find_if(stored.begin(), stored.end(), [&](auto const& t) { return t.name == name; });
        if (found == stored.end()) {
            return fmt::format("'{}' is of another model: it has no tensor '{}'", folder_.string(), name);
        }
        if (found->shape != shape || found->is_parameter != tensor.is_parameter) {
            return fmt::format("'{}' is of another model: its '{}' is {} x {}, and this model's {} x {}", folder_.string(), name, found->shape.rows,
                               found->shape.columns, shape.rows, shape.columns);
        }
    }
    for (auto const& tensor : stored) {
        if (tensor.of.empty() && std::none_of(state.tensors.begin(), state.tensors.end(), [&](auto const& t) { return parameter_name(t) == tensor.name; })) {
            return fmt::format("'{}' is of another model: this one has no tensor '{}'", folder_.string(), tensor.name);
        }
    }
    return {};
}

/// The scales of a tensor as the checkpoint has them; one that was written on another grid has none of its parts: the least of what it has of the parameter.
checkpoint_tensor checkpoint::scales_of(tensor_info const& tensor) const
{
    auto const& stored = manifest_.tensors;
    if (auto const same = std::find_if(stored.begin(), stored.end(), [&](auto const& t) { return t.name == tensor.name; });
        same != stored.end() && (same->scale_log2 || !same->row_scales_log2.empty())) {
        return *same;
    }
    checkpoint_tensor least;
    for (auto const& other : stored) {
        if (other.name != parameter_name(tensor) && other.of != parameter_name(tensor)) {
            continue;
        }
        auto rows = other.row_scales_log2;
        if (other.scale_log2) {
            least.scale_log2 = std::min(least.scale_log2.value_or(*other.scale_log2), *other.scale_log2);
        }
        if (!least.row_scales_log2.empty()) {
            rows.push_back(least.row_scales_log2.front());
        }
        if (!rows.empty()) {
            least.row_scales_log2.assign(static_cast<std::size_t>(tensor.shape.rows), *std::min_element(rows.begin(), rows.end()));
        }
    }
    return least;
}

void checkpoint::read_scales(resident_state& state, int microbatches) const
{
    for (tensor_id t{0}; at(t) < state.info().tensors.size(); ++t) {
        auto const& info = state.info(t);
        auto const said = scales_of(info);
        auto const& rows = said.row_scales_log2;
        if (rows.empty() && !said.scale_log2) {
            continue;
        }
        auto const to = state.scales.begin() + static_cast<std::ptrdiff_t>(state.first_scale(t));
        auto const contributions = state.contributions(t, microbatches);
        bool const in_rows = state.sums_in_rows(info);
        if (in_rows && !rows.empty()) {
            std::copy(rows.begin(), rows.end(), to);
        } else if (in_rows) {
            auto const scale = *said.scale_log2 - contribution_bound_log2(contributions) + row_bound_log2(contributions);
            std::fill_n(to, state.scales_of(t).size(), std::clamp(scale, least_row_scale_log2, largest_row_scale_log2));
        } else {
            *to = rows.empty() ? *said.scale_log2
                               : *std::min_element(rows.begin(), rows.end()) + contribution_bound_log2(contributions) - row_bound_log2(contributions);
        }
    }
}

fs::path checkpoint_folder(fs::path const& run_folder, step_id step) { return run_folder / fmt::format("{}{}", folder_prefix, step.value); }

std::vector<step_id> checkpoint_steps(fs::path const& run_folder)
{
    std::vector<step_id> steps;
    std::error_code error;
    for (fs::directory_iterator entry{run_folder, error}; !error && entry != fs::directory_iterator{}; entry.increment(error)) {
        if (auto const step = step_of(entry->path())) {
            steps.push_back(*step);
        }
    }
    if (error && error != std::errc::no_such_file_or_directory) {
        throw exit_error{exit_code::bad_data, fmt::format("run folder '{}': its checkpoints cannot be listed: {}", run_folder.string(), error.message())};
    }
    ranges::sort(steps);
    return steps;
}

found_checkpoint find_newest_checkpoint(fs::path const& run_folder)
{
    found_checkpoint found;
    auto steps = checkpoint_steps(run_folder);
    for (; !steps.empty() && !found.newest; steps.pop_back()) {
        try {
            checkpoint candidate{checkpoint_folder(run_folder, steps.back())};
            candidate.verify();
            found.newest = std::move(candidate);
        } catch (exit_error const& error) {
            found.skipped.emplace_back(error.what());
        }
    }
    return found;
}

found_checkpoint find_checkpoint(fs::path const& path)
{
    std::error_code error;
    if (fs::exists(path / "manifest.json", error)) {
        found_checkpoint itself{checkpoint{path}};
        itself.newest->verify();
        return itself;
    }
    auto found = find_newest_checkpoint(path);
    if (!found.newest) {
        throw exit_error{exit_code::bad_data, fmt::format("'{}' is neither a checkpoint nor a run folder with a usable one{}{}", path.string(),
                                                          found.skipped.empty() ? "" : ": ", fmt::join(found.skipped, "; "))};
    }
    return found;
}

fs::path set_checkpoint_aside(fs::path const& run_folder, step_id step)
{
    auto const target = make_aside(run_folder);
    rename_file(checkpoint_folder(run_folder, step), checkpoint_folder(target, step));
    sync_folder(target);
    sync_folder(run_folder);
    return target;
}

}  // namespace rheo::inline v0
