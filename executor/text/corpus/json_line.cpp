// SPDX-License-Identifier: Apache-2.0
#include "executor/text/corpus/json_line.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "executor/config/strict_json.hpp"
#include "rheo/units/exit_error.hpp"

namespace rheo::inline v0 {

namespace {

constexpr int depth = 64;

}  // namespace

bool has_json_lines(std::string_view path)
{
    for (std::string_view const packed : {".gz", ".zst", ".zstd"}) {
        if (path.ends_with(packed)) {
            path.remove_suffix(packed.size());
            break;
        }
    }
    return path.ends_with(".jsonl") || path.ends_with(".ndjson") || path.ends_with(".json");
}

void for_each_text(json_lines const& lines, std::string const& field, std::function<void(std::string, std::string const&)> const& each)
{
    for_each_line(lines.text, lines.first, [&](std::string_view line, std::int64_t number) {
        auto const where = fmt::format("'{}', line {},", *lines.path, number);
        each(text_of_json_line(line, field, where), where);
    });
}

std::string text_of_json_line(std::string_view line, std::string const& field, std::string const& where)
{
    try {
        auto const object = parse_strict(line, depth);
        auto const& value = member(object, field.c_str());
        if (!value.is_string()) {
            throw json_error{fmt::format("has a '{}' that is not a text", field)};
        }
        return value.get<std::string>();
    } catch (json_error const& error) {
        throw exit_error{exit_code::bad_data,
                         fmt::format("text: {} {}; expected an object with a text '{}' on each line (--field names another)", where, error.what(), field)};
    }
}

}  // namespace rheo::inline v0
