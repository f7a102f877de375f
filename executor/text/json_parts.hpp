#pragma once
// SPDX-License-Identifier: Apache-2.0

// What the parts of a tokenizer.json have in common: keys that are known, refusals that name key and value, patterns.

#include <initializer_list>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace rheo::inline v0 {

/// @throws json_error: `part` has 'key' = 'value', which is none of those that are supported
[[noreturn]] void refuse_part(std::string_view key, std::string_view value, std::string_view supported);

/// @throws json_error naming the first member whose key is none of these
void only_keys(nlohmann::json const& object, std::string_view part, std::initializer_list<std::string_view> keys);

/// A truth that may be left out.
bool truth_or(nlohmann::json const& object, char const* key, bool otherwise);

/// {"String": ...} or {"Regex": ...}.
struct pattern_text {
    bool is_regex;
    std::string text;
};
pattern_text read_pattern(nlohmann::json const& value);

}  // namespace rheo::inline v0
