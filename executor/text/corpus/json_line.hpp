#pragma once
// SPDX-License-Identifier: Apache-2.0

// JSON lines: a document per line, an object with its text under a field.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace rheo::inline v0 {

/// Whether a file of this name holds JSON lines: .jsonl, .ndjson or .json, packed or not.
bool has_json_lines(std::string_view path);

/// Calls each(line, its number) for all lines that are not blank, without their ends. @param first number of the first line
template <class Each>
void for_each_line(std::string_view text, std::int64_t first, Each each)
{
    for (auto number = first; !text.empty(); ++number) {
        auto const end = std::min(text.find('\n'), text.size());
        auto line = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        line.remove_suffix(line.ends_with('\r') ? 1 : 0);
        if (line.find_first_not_of(" \t\r") != std::string_view::npos) {
            each(line, number);
        }
    }
}

/// Whole lines of a file.
struct json_lines {
    std::shared_ptr<std::string const> path;
    std::string text;
    std::int64_t first = 0;  ///< number of the first line in the file, from 1
};

/// Calls `each` with the text of each line that is not blank, and with what names the line in a sentence. @throws exit_error as text_of_json_line
void for_each_text(json_lines const& lines, std::string const& field, std::function<void(std::string text, std::string const& where)> const& each);

/// The text of one of the lines. @param where names it in the sentence @throws exit_error: it is no JSON object, or has no such field with a text
std::string text_of_json_line(std::string_view line, std::string const& field, std::string const& where);

}  // namespace rheo::inline v0
