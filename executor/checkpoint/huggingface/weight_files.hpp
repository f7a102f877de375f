#pragma once
// SPDX-License-Identifier: Apache-2.0

// The weights of a folder: `model.safetensors`, or the shards that `model.safetensors.index.json` lists. The index says which tensor is in which file; it
// is believed only where the file has it.

#include <deque>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "executor/checkpoint/safetensors.hpp"

namespace rheo::inline v0 {

inline constexpr std::string_view weights_file_name = "model.safetensors";
inline constexpr std::string_view index_file_name = "model.safetensors.index.json";

/// The name of a shard, counted from 0: model-00001-of-00003.safetensors.
std::string shard_file_name(std::size_t shard, std::size_t count);

/// A file's name is that of weights, or of their index, as this form has them.
bool is_weights_file_name(std::string_view name);

class weight_files {
public:
    /// Opens the files and reads their headers. @throws exit_error: no weights, a file that is missing or damaged, an index that does not fit its files
    explicit weight_files(std::filesystem::path const& folder);

    struct place {
        safetensors_file const* file;
        safetensors_entry const* entry;

        explicit operator bool() const { return entry != nullptr; }
    };
    /// Where a tensor is; null when no file has it. Cost: the number of tensors.
    place find(std::string_view name) const;
    /// The values of one, as floats. @throws exit_error
    static std::vector<float> read(place const& at) { return at.file->read(*at.entry); }

    std::deque<safetensors_file> const& files() const& { return files_; }
    std::deque<safetensors_file> const& files() && = delete;
    /// The file, or the index, that says which tensors there are.
    std::string const& name() const { return name_; }

private:
    void open_shards(std::filesystem::path const& folder);

    std::string name_;
    std::deque<safetensors_file> files_;
};

}  // namespace rheo::inline v0
