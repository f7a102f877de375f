#pragma once
// SPDX-License-Identifier: Apache-2.0

// Replace of a tokenizer.json: what a pattern finds becomes another text. Normalizers and decoders have it alike.

#include <string>
#include <string_view>
#include <variant>

#include <nlohmann/json_fwd.hpp>

#include "executor/text/regex.hpp"

namespace rheo::inline v0 {

struct replace_text {
    std::string pattern;  ///< not empty
    std::string by;
};
struct replace_regex {
    regex pattern;
    std::string by;
};

std::string replaced(replace_text const& step, std::string_view text);
std::string replaced(replace_regex const& step, std::string_view text);

/// @param part what the object is in sentences: normalizer or decoder @throws json_error naming key and value
std::variant<replace_text, replace_regex> read_replacement(nlohmann::json const& value, std::string_view part);

}  // namespace rheo::inline v0
