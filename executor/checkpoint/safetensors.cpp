// SPDX-License-Identifier: Apache-2.0
#include "executor/checkpoint/safetensors.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <range/v3/algorithm/find.hpp>

#include "executor/checkpoint/checkpoint_files.hpp"
#include "executor/checkpoint/float_values.hpp"
#include "executor/config/strict_json.hpp"
#include "rheo/units/exit_error.hpp"
#include "rheo/units/expects.hpp"

namespace rheo::inline v0 {

namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian, and so is everything that rheo runs on");

constexpr std::int64_t length_bytes = 8;
constexpr std::size_t most_dimensions = 16;

safetensors_entry read_entry(std::string const& name, nlohmann::json const& value, std::int64_t data_bytes)
{
    safetensors_entry entry{name, text_member(value, "dtype"), {}, 0, 0};
    auto const element = safetensors_element_bytes(entry.dtype);
    if (element == 0) {
        throw json_error{fmt::format("has '{}' with the unknown dtype '{}'", name, entry.dtype)};
    }
    auto const& shape = list_member(value, "shape");
    auto const& place = list_member(value, "data_offsets");
    if (shape.size() > most_dimensions || place.size() != 2) {
        throw json_error{fmt::format("has '{}' with {} dimensions and {} places", name, shape.size(), place.size())};
    }
    std::int64_t size = element;
    bool fits = true;
    for (auto const& extent : shape) {
        entry.shape.push_back(integer_of(extent, "shape", {}));
        fits = fits && !__builtin_mul_overflow(size, entry.shape.back(), &size);
    }
    entry.begin = integer_of(place[0], "data_offsets", {});
    entry.end = integer_of(place[1], "data_offsets", {});
    if (entry.begin > entry.end || entry.end > data_bytes) {
        throw json_error{fmt::format("says that '{}' lies in bytes {} to {} of its data, which are {}", name, entry.begin, entry.end, data_bytes)};
    }
    if (!fits || entry.end - entry.begin != size) {
        throw json_error{fmt::format("gives '{}' {} bytes, which is not the size of its shape", name, entry.end - entry.begin)};
    }
    return entry;
}

/// Entries in the order of their places, which are all of the data, each byte once.
std::vector<safetensors_entry> read_entries(std::string_view text, std::int64_t data_bytes, std::map<std::string, std::string>& metadata)
{
    auto const header = parse_strict(text, 3);
    if (!header.is_object()) {
        throw json_error{"has a header that is not an object"};
    }
    std::vector<safetensors_entry> entries;
    for (auto const& [name, value] : header.items()) {
        if (name != "__metadata__") {
            entries.push_back(read_entry(name, value, data_bytes));
        } else if (!value.is_object() || !std::all_of(value.begin(), value.end(), [](auto const& v) { return v.is_string(); })) {
            throw json_error{"has metadata that are not all text"};
        } else {
            metadata = value.get<std::map<std::string, std::string>>();
        }
    }
    std::sort(entries.begin(), entries.end(), [](auto const& a, auto const& b) { return std::pair{a.begin, a.end} < std::pair{b.begin, b.end}; });
    std::int64_t end = 0;
    for (auto const& entry : entries) {
        if (entry.begin != end) {
            throw json_error{fmt::format("has '{}' from byte {} of its data on, but what is before it ends at {}", entry.name, entry.begin, end)};
        }
        end = entry.end;
    }
    if (end != data_bytes) {
        throw json_error{fmt::format("has {} bytes of data, but its entries end at {}: it was cut or grew", data_bytes, end)};
    }
    return entries;
}

/// The length of the JSON, from the first eight bytes.
std::int64_t header_length(std::span<std::byte const> begin, std::int64_t file_bytes, std::string const& name)
{
    if (begin.size() < length_bytes || file_bytes < length_bytes) {
        throw exit_error{exit_code::bad_data, fmt::format("'{}' is not a safetensors file: it has only {} bytes", name, file_bytes)};
    }
    std::uint64_t length = 0;
    std::memcpy(&length, begin.data(), sizeof length);
    if (length > static_cast<std::uint64_t>(file_bytes - length_bytes) || length > static_cast<std::uint64_t>(longest_safetensors_header)) {
        throw exit_error{exit_code::bad_data,
                         fmt::format("'{}' is not a safetensors file: it says that its header has {} bytes, but the file has {} and a header at most {}", name,
                                     length, file_bytes, longest_safetensors_header)};
    }
    return static_cast<std::int64_t>(length);
}

}  // namespace

safetensors_header parse_safetensors(std::span<std::byte const> begin, std::int64_t file_bytes, std::string const& name)
{
    auto const length = header_length(begin, file_bytes, name);
    expects(static_cast<std::int64_t>(begin.size()) >= length_bytes + length, "the whole header is needed to read it");
    std::string text(static_cast<std::size_t>(length), '\0');
    std::memcpy(text.data(), begin.data() + length_bytes, text.size());
    auto const data_begin = length_bytes + length;
    try {
        safetensors_header header{{}, data_begin, file_bytes};
        header.entries = read_entries(text, file_bytes - data_begin, header.metadata);
        return header;
    } catch (json_error const& error) {
        throw exit_error{exit_code::bad_data, fmt::format("'{}' {}", name, error.what())};
    }
}

std::int64_t safetensors_element_bytes(std::string_view dtype)
{
    static std::map<std::string_view, std::int64_t> const known{{"F64", 8},     {"F32", 4}, {"F16", 2}, {"BF16", 2}, {"F8_E4M3", 1},
                                                                {"F8_E5M2", 1}, {"I64", 8}, {"I32", 4}, {"I16", 2},  {"I8", 1},
                                                                {"U64", 8},     {"U32", 4}, {"U16", 2}, {"U8", 1},   {"BOOL", 1}};
    auto const found = known.find(dtype);
    return found == known.end() ? 0 : found->second;
}

std::string format_safetensors(std::vector<safetensors_entry>& entries, std::map<std::string, std::string> const& metadata)
{
    nlohmann::ordered_json header;
    header["__metadata__"] = metadata;
    header["__metadata__"]["format"] = "pt";
    std::int64_t end = 0;
    for (auto& entry : entries) {
        std::int64_t size = safetensors_element_bytes(entry.dtype);
        expects(size > 0 && !header.contains(entry.name), "entries of a safetensors file have a known dtype and names of their own");
        for (auto const extent : entry.shape) {
            size *= extent;
        }
        entry.begin = end;
        entry.end = end += size;
        header[entry.name] = {{"dtype", entry.dtype}, {"shape", entry.shape}, {"data_offsets", {entry.begin, entry.end}}};
    }
    auto text = header.dump();
    text.resize((text.size() + 7) / 8 * 8, ' ');
    std::uint64_t const length = text.size();
    std::string result(sizeof length, '\0');
    std::memcpy(result.data(), &length, sizeof length);
    return result + text;
}

safetensors_file::safetensors_file(std::filesystem::path path) : path_{std::move(path)}
{
    input_file const file{path_};
    header_bytes_ = file.read(0, std::min(file.bytes(), length_bytes));
    auto const as_bytes = [&] { return std::as_bytes(std::span{header_bytes_}); };
    header_bytes_ = file.read(0, length_bytes + header_length(as_bytes(), file.bytes(), path_.string()));
    header_ = parse_safetensors(as_bytes(), file.bytes(), path_.string());
}

safetensors_entry const* safetensors_file::find(std::string_view name) const
{
    auto const found = ranges::find(header_.entries, name, &safetensors_entry::name);
    return found == header_.entries.end() ? nullptr : &*found;
}

std::vector<float> safetensors_file::read(safetensors_entry const& entry) const
{
    if (!is_float_dtype(entry.dtype)) {
        throw exit_error{exit_code::bad_data, fmt::format("'{}' has '{}' in {}; F32, F16 and BF16 can be read", path_.string(), entry.name, entry.dtype)};
    }
    try {
        input_file const file{path_};
        if (file.bytes() != header_.file_bytes) {
            throw exit_error{exit_code::bad_data, fmt::format("'{}' had {} bytes and now has {}", path_.string(), header_.file_bytes, file.bytes())};
        }
        auto const size = safetensors_element_bytes(entry.dtype);
        std::vector<float> values(static_cast<std::size_t>((entry.end - entry.begin) / size));
        auto const memory = std::as_writable_bytes(std::span{values});
        auto const stored = memory.last(static_cast<std::size_t>(entry.end - entry.begin));  // each value lies at or behind the float that it becomes
        file.read(header_.data_begin + entry.begin, stored);
        widen(entry.dtype, stored, values);
        return values;
    } catch (std::bad_alloc const&) {
        throw exit_error{exit_code::bad_data,
                         fmt::format("'{}' has '{}' with {} bytes: there is not so much memory", path_.string(), entry.name, entry.end - entry.begin)};
    } catch (std::length_error const&) {
        throw exit_error{exit_code::bad_data,
                         fmt::format("'{}' has '{}' with {} bytes: there is not so much memory", path_.string(), entry.name, entry.end - entry.begin)};
    }
}

}  // namespace rheo::inline v0
