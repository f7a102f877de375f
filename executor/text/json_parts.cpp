// SPDX-License-Identifier: Apache-2.0
#include "executor/text/json_parts.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "executor/config/strict_json.hpp"

namespace rheo::inline v0 {

void refuse_part(std::string_view key, std::string_view value, std::string_view supported)
{
    throw json_error{fmt::format("has {} = '{}', which rheo does not support; expected one of: {}", key, value, supported)};
}

void only_keys(nlohmann::json const& object, std::string_view part, std::initializer_list<std::string_view> keys)
{
    if (!object.is_object()) {
        throw json_error{fmt::format("has a {} that is not an object", part)};
    }
    for (auto const& [key, value] : object.items()) {
        if (std::find(keys.begin(), keys.end(), key) == keys.end()) {
            auto const shown = format_json(value);
            throw json_error{fmt::format("has {}.{} = {}{}, which rheo does not support; expected no key but: {}", part, key, shown.substr(0, 60),
                                         shown.size() > 60 ? "..." : "", fmt::join(keys, ", "))};
        }
    }
}

bool truth_or(nlohmann::json const& object, char const* key, bool otherwise) { return object.contains(key) ? truth_member(object, key) : otherwise; }

pattern_text read_pattern(nlohmann::json const& value)
{
    only_keys(value, "pattern", {"String", "Regex"});
    if (value.size() != 1) {
        throw json_error{"has a pattern without exactly one of 'String' and 'Regex'"};
    }
    auto const is_regex = value.contains("Regex");
    auto text = text_member(value, is_regex ? "Regex" : "String");
    if (text.empty()) {
        throw json_error{"has an empty pattern"};
    }
    return {is_regex, std::move(text)};
}

}  // namespace rheo::inline v0
