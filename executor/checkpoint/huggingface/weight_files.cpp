// SPDX-License-Identifier: Apache-2.0
#include "executor/checkpoint/huggingface/weight_files.hpp"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "executor/checkpoint/checkpoint_files.hpp"
#include "executor/config/strict_json.hpp"
#include "rheo/units/exit_error.hpp"

namespace rheo::inline v0 {

namespace {

namespace fs = std::filesystem;

constexpr std::int64_t most_index_bytes = 1 << 26;
constexpr std::string_view shard_prefix = "model-";
constexpr std::string_view suffix = ".safetensors";

/// Which file has which tensor, as the index says.
std::map<std::string, std::set<std::string>> tensors_by_file(std::string const& index)
{
    try {
        auto const json = parse_strict(read_file(index, most_index_bytes), 8);
        auto const& map = member(json, "weight_map");
        if (!map.is_object() || map.empty()) {
            throw json_error{"has a 'weight_map' that is no object of tensors and their files"};
        }
        std::map<std::string, std::set<std::string>> by_file;
        for (auto const& [tensor, file] : map.items()) {
            if (!file.is_string()) {
                throw json_error{fmt::format("has '{}' in a file whose name is no text", tensor)};
            }
            auto const name = file.get<std::string>();
            if (name.empty() || name.find('/') != name.npos || name.find('\0') != name.npos || name.starts_with('.')) {
                throw json_error{fmt::format("has '{}' in '{}'; expected a file beside the index", tensor, name)};
            }
            by_file[name].insert(tensor);
        }
        return by_file;
    } catch (json_error const& error) {
        throw exit_error{exit_code::bad_data, fmt::format("'{}' {}", index, error.what())};
    }
}

}  // namespace

std::string shard_file_name(std::size_t shard, std::size_t count) { return fmt::format("{}{:05}-of-{:05}{}", shard_prefix, shard + 1, count, suffix); }

bool is_weights_file_name(std::string_view name)
{
    auto const is_digits = [](std::string_view text) {
        return text.size() >= 5 && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
    };
    if (name == weights_file_name || name == index_file_name) {
        return true;
    }
    if (!name.starts_with(shard_prefix) || !name.ends_with(suffix)) {
        return false;
    }
    auto const numbers = name.substr(shard_prefix.size(), name.size() - shard_prefix.size() - suffix.size());
    auto const of = numbers.find("-of-");
    return of != numbers.npos && is_digits(numbers.substr(0, of)) && is_digits(numbers.substr(of + 4));
}

weight_files::weight_files(fs::path const& folder) : name_{(folder / weights_file_name).string()}
{
    std::error_code error;
    bool const has_index = !fs::exists(folder / weights_file_name, error) && fs::exists(folder / index_file_name, error);
    if (has_index) {
        name_ = (folder / index_file_name).string();
        open_shards(folder);
    } else {
        files_.emplace_back(folder / weights_file_name);
    }
}

void weight_files::open_shards(fs::path const& folder)
{
    std::set<std::string> all;
    for (auto const& [name, tensors] : tensors_by_file(name_)) {
        auto const& file = files_.emplace_back(folder / name);
        for (auto const& tensor : tensors) {
            if (file.find(tensor) == nullptr) {
                throw exit_error{exit_code::bad_data, fmt::format("'{}' has no '{}', which '{}' says is there", file.path().string(), tensor, name_)};
            }
        }
        for (auto const& entry : file.header().entries) {
            if (!all.insert(entry.name).second) {
                throw exit_error{exit_code::bad_data,
                                 fmt::format("'{}' has '{}', which another file of '{}' has, too", file.path().string(), entry.name, name_)};
            }
        }
    }
}

weight_files::place weight_files::find(std::string_view name) const
{
    for (auto const& file : files_) {
        if (auto const* entry = file.find(name)) {
            return {&file, entry};
        }
    }
    return {nullptr, nullptr};
}

}  // namespace rheo::inline v0
