#pragma once
// SPDX-License-Identifier: Apache-2.0

// The prompts of a file: a text per line, or JSON lines with a text or with tokens.

#include <string>
#include <variant>
#include <vector>

#include "executor/text/bpe_model.hpp"

namespace rheo::inline v0 {

using prompt = std::variant<std::string, std::vector<token_id>>;

/// Lines that are not blank. A name that ends in .jsonl, .ndjson or .json is of JSON lines: objects with a text under the field, or numbers under `tokens`.
/// @throws exit_error naming file and line
std::vector<prompt> read_prompts(std::string const& path, std::string const& field);

}  // namespace rheo::inline v0
