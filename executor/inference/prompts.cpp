// SPDX-License-Identifier: Apache-2.0
#include "executor/inference/prompts.hpp"

#include <string_view>

#include <fmt/format.h>

#include "executor/config/strict_json.hpp"
#include "executor/config/text_file.hpp"
#include "executor/text/corpus/json_line.hpp"
#include "rheo/units/exit_error.hpp"

namespace rheo::inline v0 {

namespace {

constexpr int depth = 64;

prompt of_json_line(std::string_view line, std::string const& field, std::string const& where)
{
    try {
        auto const object = parse_strict(line, depth);
        if (!object.is_object() || object.contains(field) || !object.contains("tokens")) {
            return text_of_json_line(line, field, where);
        }
        std::vector<token_id> tokens;
        for (auto const& token : list_member(object, "tokens")) {
            tokens.push_back(static_cast<token_id>(integer_of(token, "token", {0, INT32_MAX})));
        }
        return tokens;
    } catch (json_error const& error) {
        throw exit_error{exit_code::bad_data, fmt::format("{} {}; expected a text '{}' or a list 'tokens' on each line", where, error.what(), field)};
    }
}

}  // namespace

std::vector<prompt> read_prompts(std::string const& path, std::string const& field)
{
    auto const text = read_text_file(path);
    bool const is_json = has_json_lines(path);
    std::vector<prompt> all;
    for_each_line(text, 1, [&](std::string_view line, std::int64_t number) {
        all.push_back(is_json ? of_json_line(line, field, fmt::format("'{}', line {},", path, number)) : prompt{std::string{line}});
    });
    if (all.empty()) {
        throw exit_error{exit_code::bad_data, fmt::format("'{}' has no prompt: a text per line, or JSON lines", path)};
    }
    return all;
}

}  // namespace rheo::inline v0
