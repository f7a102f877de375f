// SPDX-License-Identifier: Apache-2.0
#include "executor/text/replacement.hpp"

#include <nlohmann/json.hpp>

#include "executor/config/strict_json.hpp"
#include "executor/text/json_parts.hpp"

namespace rheo::inline v0 {

std::string replaced(replace_text const& step, std::string_view text)
{
    std::string out;
    out.reserve(text.size() + text.size() / 2);
    std::size_t copied = 0;
    for (auto at = text.find(step.pattern); at != std::string_view::npos; at = text.find(step.pattern, copied)) {
        out.append(text, copied, at - copied);
        out += step.by;
        copied = at + step.pattern.size();
    }
    return out.append(text, copied);
}

std::string replaced(replace_regex const& step, std::string_view text)
{
    std::string out;
    std::size_t copied = 0;
    for (auto found = step.pattern.find(text, 0); found.is == regex::status::found; found = step.pattern.find(text, copied)) {
        out.append(text, copied, found.begin - copied);
        out += step.by;
        copied = found.end;
    }
    return out.append(text, copied);
}

std::variant<replace_text, replace_regex> read_replacement(nlohmann::json const& value, std::string_view part)
{
    only_keys(value, part, {"type", "pattern", "content"});
    auto by = text_member(value, "content");
    auto found = read_pattern(member(value, "pattern"));
    if (found.is_regex) {
        return replace_regex{regex{found.text}, std::move(by)};
    }
    return replace_text{std::move(found.text), std::move(by)};
}

}  // namespace rheo::inline v0
