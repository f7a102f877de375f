#pragma once
// SPDX-License-Identifier: Apache-2.0

// What a Hugging Face folder says for generating and a training does not use: which tokens begin, end and pad a text, and generation_config.json. An import
// keeps it in the run folder, an export of the run writes it again.

#include <filesystem>

#include <nlohmann/json.hpp>

namespace rheo::inline v0 {

struct special_tokens {
    nlohmann::ordered_json ids{};         ///< members of config.json: a number, a list of them, or null
    nlohmann::ordered_json generation{};  ///< generation_config.json as it was; null: there was none

    friend bool operator==(special_tokens const&, special_tokens const&) = default;
};

/// Of a folder that transformers saved. @throws exit_error naming the file
special_tokens special_tokens_in(std::filesystem::path const& folder);

/// Writes `<run>/huggingface.json`. @throws exit_error
void keep(special_tokens const& tokens, std::filesystem::path const& run_folder);

/// As they were kept; nothing where the run began otherwise. @throws exit_error naming the file
special_tokens kept_special_tokens(std::filesystem::path const& run_folder);

}  // namespace rheo::inline v0
