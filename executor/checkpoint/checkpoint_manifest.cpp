// SPDX-License-Identifier: Apache-2.0
#include "executor/checkpoint/checkpoint_manifest.hpp"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "executor/checkpoint/checkpoint_entry.hpp"
#include "executor/checkpoint/manifest_coverage.hpp"
#include "executor/config/strict_json.hpp"
#include "rheo/units/exit_error.hpp"
#include "rheo/version.hpp"

namespace rheo::inline v0 {

namespace {

using json = nlohmann::json;

constexpr int depth_of_manifest = 8;
constexpr std::int64_t most_rows = std::int64_t{1} << 40;
constexpr std::int64_t most_elements = std::int64_t{1} << 58;

json to_json(checkpoint_file const& file)
{
    json entries = json::array();
    for (auto const& e : file.entries) {
        entries.push_back({{"tensor", e.tensor},
                           {"role", name_of(e.role)},
                           {"digest", to_string(e.digest)},
                           {"box", {e.box.row_begin, e.box.row_end, e.box.column_begin, e.box.column_end}}});
    }
    return {{"name", file.name}, {"bytes", file.bytes}, {"header_digest", to_string(file.header)}, {"entries", entries}};
}

checkpoint_entry entry_from(json const& value)
{
    checkpoint_entry entry{text_member(value, "tensor"), {}, {}, digest_member(value, "digest")};
    auto const role = text_member(value, "role");
    auto const found = std::find_if(std::begin(kept_roles), std::end(kept_roles), [&](tensor_role r) { return name_of(r) == role; });
    auto const& box = list_member(value, "box");
    if (found == std::end(kept_roles) || box.size() != 4) {
        throw json_error{fmt::format("has an entry of '{}' with the role '{}' and {} bounds", entry.tensor, role, box.size())};
    }
    entry.role = *found;
    std::int64_t bounds[4];
    for (std::size_t i = 0; i < 4; ++i) {
        bounds[i] = integer_of(box[i], "box", {0, most_rows});
    }
    entry.box = {bounds[0], bounds[1], bounds[2], bounds[3]};
    return entry;
}

/// A name that stays in its folder.
bool plain(std::string const& name)
{
    return !name.empty() && name.front() != '.' && name.find('/') == std::string::npos && name.find('\0') == std::string::npos;
}

std::vector<checkpoint_file> files_from(json const& list)
{
    std::vector<checkpoint_file> files;
    std::set<std::string> names;
    for (auto const& value : list) {
        files.push_back({text_member(value, "name"), integer_member(value, "bytes", {}), digest_member(value, "header_digest"), {}});
        if (!plain(files.back().name) || !names.insert(files.back().name).second) {
            throw json_error{fmt::format("names the file '{}', which is twice there or no name of a file in its folder", files.back().name)};
        }
        for (auto const& entry : list_member(value, "entries")) {
            files.back().entries.push_back(entry_from(entry));
        }
    }
    return files;
}

json to_json(checkpoint_tensor const& tensor)
{
    json value{{"name", tensor.name},
               {"rows", tensor.shape.rows},
               {"columns", tensor.shape.columns},
               {"parameter", tensor.is_parameter},
               {"scale_log2", tensor.scale_log2 ? json(*tensor.scale_log2) : json()}};
    if (!tensor.row_scales_log2.empty()) {
        value["row_scales_log2"] = tensor.row_scales_log2;
    }
    if (!tensor.of.empty()) {
        value["of"] = tensor.of;
    }
    return value;
}

checkpoint_tensor tensor_from(json const& value)
{
    checkpoint_tensor tensor{text_member(value, "name"),
                             {integer_member(value, "rows", {1, most_rows}), integer_member(value, "columns", {1, most_rows})},
                             truth_member(value, "parameter"),
                             std::nullopt,
                             {},
                             value.contains("of") ? text_member(value, "of") : std::string{}};
    if (!tensor.of.empty() && tensor.is_parameter) {
        throw json_error{fmt::format("has '{}' as a parameter and as a part of '{}'", tensor.name, tensor.of)};
    }
    std::int64_t count = 0;
    if (__builtin_mul_overflow(tensor.shape.rows, tensor.shape.columns, &count) || count > most_elements) {
        throw json_error{fmt::format("has the tensor '{}' with {} x {} elements", tensor.name, tensor.shape.rows, tensor.shape.columns)};
    }
    if (!member(value, "scale_log2").is_null()) {
        tensor.scale_log2 = static_cast<int>(integer_member(value, "scale_log2", {least_scale_log2, largest_scale_log2}));
    }
    if (value.contains("row_scales_log2")) {
        for (auto const& scale : list_member(value, "row_scales_log2")) {
            tensor.row_scales_log2.push_back(static_cast<int>(integer_of(scale, "row_scales_log2", {least_row_scale_log2, largest_row_scale_log2})));
        }
        if (std::ssize(tensor.row_scales_log2) != tensor.shape.rows) {
            throw json_error{
                fmt::format("has the tensor '{}' with {} rows and {} scales of rows", tensor.name, tensor.shape.rows, tensor.row_scales_log2.size())};
        }
    }
    return tensor;
}

/// All but the files. @param digest of the whole state
json to_json(checkpoint_manifest const& m, state_digest digest)
{
    json tensors = json::array();
    for (auto const& tensor : m.tensors) {
        tensors.push_back(to_json(tensor));
    }
    json fingerprint = json::array();
    for (auto const& line : m.fingerprint) {
        fingerprint.push_back({{"what", line.name}, {"value", line.value}});
    }
    return {{"schema", checkpoint_schema},
            {"version", m.version},
            {"step", m.step.value},
            {"generation", m.generation.value},
            {"state_digest", to_string(digest)},
            {"data_digest", m.data_digest},
            {"config", m.config},
            {"fingerprint", fingerprint},
            {"tensors", tensors}};
}

checkpoint_manifest about_from(json const& value)
{
    checkpoint_manifest m{.version = text_member(value, "version"),
                          .step = {integer_member(value, "step", {})},
                          .generation = {static_cast<std::int32_t>(integer_member(value, "generation", {0, INT32_MAX}))},
                          .tensors = {},
                          .fingerprint = {},
                          .config = text_member(value, "config"),
                          .data_digest = text_member(value, "data_digest"),
                          .files = {}};
    for (auto const& tensor : list_member(value, "tensors")) {
        m.tensors.push_back(tensor_from(tensor));
    }
    for (auto const& line : list_member(value, "fingerprint")) {
        m.fingerprint.push_back({text_member(line, "what"), text_member(line, "value")});
    }
    return m;
}

template <class Read>
auto with_name(std::string const& name, Read read)
{
    try {
        return read();
    } catch (json_error const& error) {
        throw exit_error{exit_code::bad_data, fmt::format("'{}' {}", name, error.what())};
    }
}

/// @returns which schema it is
std::int64_t check_schema(json const& value)
{
    auto const schema = integer_member(value, "schema", {0, INT32_MAX});
    if (schema < oldest_checkpoint_schema || schema > checkpoint_schema) {
        throw json_error{
            fmt::format("has schema {}; this version of rheo ({}) reads schemas {} to {}", schema, RHEO_VERSION, oldest_checkpoint_schema, checkpoint_schema)};
    }
    return schema;
}

state_digest digest_of_entries(checkpoint_manifest const& manifest)
{
    state_digest sum;
    for (auto const& file : manifest.files) {
        for (auto const& entry : file.entries) {
            sum += entry.digest;
        }
    }
    return sum;
}

}  // namespace

state_digest checkpoint_manifest::digest() const
{
    auto sum = digest_of_entries(*this);
    for (auto const& tensor : tensors) {
        if ((tensor.is_parameter || !tensor.of.empty()) && (tensor.scale_log2 || !tensor.row_scales_log2.empty())) {
            std::vector<int> const one{tensor.scale_log2.value_or(0)};
            sum += digest_of_scales(tensor.name, tensor.row_scales_log2.empty() ? one : tensor.row_scales_log2);
        }
    }
    return sum;
}

std::string format_part(part_manifest const& part)
{
    json files = json::array();
    for (auto const& file : part.files) {
        files.push_back(to_json(file));
    }
    return seal("part",
                {{"schema", checkpoint_schema}, {"rank", part.rank.value}, {"step", part.step.value}, {"generation", part.generation.value}, {"files", files}});
}

part_manifest parse_part(std::string_view text, std::string const& name)
{
    return with_name(name, [&] {
        auto const value = open_sealed("part", text, depth_of_manifest);
        check_schema(value);
        return part_manifest{{static_cast<std::int32_t>(integer_member(value, "rank", {0, INT32_MAX}))},
                             {integer_member(value, "step", {})},
                             {static_cast<std::int32_t>(integer_member(value, "generation", {0, INT32_MAX}))},
                             files_from(list_member(value, "files"))};
    });
}

std::string format_manifest(checkpoint_manifest const& m)
{
    auto value = to_json(m, m.digest());
    value["files"] = json::array();
    for (auto const& file : m.files) {
        value["files"].push_back(to_json(file));
    }
    return seal("checkpoint", value);
}

std::string format_state(state_manifest const& state) { return seal("state", to_json(state.about, state.digest)); }

state_manifest parse_state(std::string_view text, std::string const& name)
{
    return with_name(name, [&] {
        auto const value = open_sealed("state", text, depth_of_manifest);
        check_schema(value);
        state_manifest state{about_from(value), digest_member(value, "state_digest")};
        std::set<std::string_view> names;
        for (auto const& tensor : state.about.tensors) {
            if (!names.insert(tensor.name).second) {
                throw json_error{fmt::format("has the tensor '{}' twice", tensor.name)};
            }
        }
        return state;
    });
}

checkpoint_manifest parse_manifest(std::string_view text, std::string const& name)
{
    return with_name(name, [&] {
        auto const value = open_sealed("checkpoint", text, depth_of_manifest);
        auto const schema = check_schema(value);
        auto m = about_from(value);
        m.files = files_from(list_member(value, "files"));
        check_coverage(m);
        if (digest_member(value, "state_digest") != (schema == 1 ? digest_of_entries(m) : m.digest())) {  // the first schema left out the scales
            throw json_error{"has a 'state_digest' that is not the sum of its entries and scales"};
        }
        return m;
    });
}

}  // namespace rheo::inline v0
