#pragma once
// SPDX-License-Identifier: Apache-2.0

// JSON lines: a document per line, an object with its text under a field.

#include <string>
#include <string_view>

namespace rheo::inline v0 {

/// Whether a file of this name holds JSON lines: .jsonl, .ndjson or .json, packed or not.
bool has_json_lines(std::string_view path);

/// The text of one of the lines. @param where names it in the sentence @throws exit_error: it is no JSON object, or has no such field with a text
std::string text_of_json_line(std::string_view line, std::string const& field, std::string const& where);

}  // namespace rheo::inline v0
