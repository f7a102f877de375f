// SPDX-License-Identifier: Apache-2.0
#include "executor/checkpoint/huggingface/special_tokens.hpp"

#include <algorithm>
#include <string>
#include <system_error>

#include <fmt/format.h>

#include "executor/config/strict_json.hpp"
#include "executor/config/text_file.hpp"
#include "rheo/units/exit_error.hpp"

namespace rheo::inline v0 {

namespace {

namespace fs = std::filesystem;
using json = nlohmann::ordered_json;

constexpr char const* kept_name = "huggingface.json";
constexpr int depth = 32;

/// An object, or null where there is no such file.
json object_in(fs::path const& path)
{
    std::error_code error;
    if (!fs::exists(path, error)) {
        return nullptr;
    }
    auto const text = read_text_file(path.string());
    try {
        if (!parse_strict(text, depth).is_object()) {
            throw json_error{"is no object"};
        }
        return json::parse(text);  // which keeps the order of members
    } catch (json_error const& wrong) {
        throw exit_error{exit_code::bad_data, fmt::format("'{}' {}", path.string(), wrong.what())};
    }
}

bool is_token(json const& value) { return value.is_number_integer() && value >= 0; }

json ids_of(json const& object, fs::path const& path)
{
    auto ids = json::object();
    for (auto const* const key : {"bos_token_id", "eos_token_id", "pad_token_id"}) {
        auto const found = object.find(key);
        if (found == object.end()) {
            continue;
        }
        if (!found->is_null() && !is_token(*found) && !(found->is_array() && std::all_of(found->begin(), found->end(), is_token))) {
            throw exit_error{exit_code::bad_data, fmt::format("'{}' has a '{}' that is neither a token, a list of tokens, nor null", path.string(), key)};
        }
        ids[key] = *found;
    }
    return ids;
}

}  // namespace

special_tokens special_tokens_in(fs::path const& folder)
{
    auto const config = object_in(folder / "config.json");
    return {config.is_null() ? json::object() : ids_of(config, folder / "config.json"), object_in(folder / "generation_config.json")};
}

void keep(special_tokens const& tokens, fs::path const& run_folder)
{
    write_whole((run_folder / kept_name).string(), json{{"ids", tokens.ids}, {"generation_config", tokens.generation}}.dump(2) + "\n");
}

special_tokens kept_special_tokens(fs::path const& run_folder)
{
    auto const path = run_folder / kept_name;
    auto const kept = object_in(path);
    if (kept.is_null()) {
        return {json::object(), nullptr};
    }
    auto const generation = kept.value("generation_config", json{});
    if (!generation.is_null() && !generation.is_object()) {
        throw exit_error{exit_code::bad_data, fmt::format("'{}' has a 'generation_config' that is no object", path.string())};
    }
    return {ids_of(kept.value("ids", json::object()), path), generation};
}

}  // namespace rheo::inline v0
