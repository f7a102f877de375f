#pragma once
// SPDX-License-Identifier: Apache-2.0

// Safetensors, the file format in which weights are exchanged: eight bytes of length, a JSON header of names,
// dtypes, shapes and places, then the bytes. Checkpoints keep all of their state in it, so one reader
// stands between the program and every such file, and it believes none: every length, place and name is
// held against the file's real size before anything is reserved or read. Values are read as floats, from F32, F16 or BF16.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rheo::inline v0 {

struct safetensors_entry {
    std::string name;
    std::string dtype;                ///< "F32", "F16", "BF16"; others can be listed, but not be read
    std::vector<std::int64_t> shape;  ///< row-major
    std::int64_t begin = 0;           ///< in bytes from the first one after the header
    std::int64_t end = 0;

    friend bool operator==(safetensors_entry const&, safetensors_entry const&) = default;
};

/// What a file says about itself, checked: names are unique, places lie in the file, touch and do not
/// overlap, cover all of it and have the size of shape x dtype.
struct safetensors_header {
    std::vector<safetensors_entry> entries;  ///< in the order of their places
    std::int64_t data_begin = 0;             ///< of the first byte after the header, in the file
    std::int64_t file_bytes = 0;
    std::map<std::string, std::string> metadata{};  ///< the texts under `__metadata__`

    friend bool operator==(safetensors_header const&, safetensors_header const&) = default;
};

/// Longest header that is read: what the format's own reader takes.
inline constexpr std::int64_t longest_safetensors_header = 100'000'000;

/// Reads a header from the first bytes of a file. @param begin as much of the file as holds the header
/// @param file_bytes size of the whole file  @param name what the sentence calls the file
/// @throws exit_error
safetensors_header parse_safetensors(std::span<std::byte const> begin, std::int64_t file_bytes, std::string const& name);

/// The eight bytes of length and the header for these entries, whose places are filled in, in their order; the data that
/// follow begin at a multiple of eight bytes. @param metadata beside the format, which is PyTorch's @pre names are unique, dtypes are known
std::string format_safetensors(std::vector<safetensors_entry>& entries, std::map<std::string, std::string> const& metadata = {});

/// Bytes of an element of the format's dtypes; 0: unknown.
std::int64_t safetensors_element_bytes(std::string_view dtype);

/// A file whose header was read and checked. It holds no descriptor: a checkpoint may have more files than a process may open.
class safetensors_file {
public:
    /// @throws exit_error
    explicit safetensors_file(std::filesystem::path path);

    std::filesystem::path const& path() const { return path_; }
    safetensors_header const& header() const { return header_; }
    std::string const& header_bytes() const { return header_bytes_; }  ///< the length and the JSON as they are in the file
    safetensors_entry const* find(std::string_view name) const;        ///< null when there is none

    /// The values of an entry of this file, each exactly. @throws exit_error: not F32, F16 or BF16, cannot be read
    std::vector<float> read(safetensors_entry const& entry) const;

private:
    std::filesystem::path path_;
    std::string header_bytes_;
    safetensors_header header_;
};

}  // namespace rheo::inline v0
