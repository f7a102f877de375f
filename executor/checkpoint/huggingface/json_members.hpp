#pragma once
// SPDX-License-Identifier: Apache-2.0

// Members of a config.json that may be left out, and those that must have one value because anything else is another computation.

#include <string>
#include <string_view>

#include <fmt/format.h>

#include "executor/config/strict_json.hpp"

namespace rheo::inline v0 {

/// A member that may be left out or null, then it is `otherwise`. @throws json_error: of another kind
template <class Value>
Value optional_member(nlohmann::json const& object, char const* key, Value otherwise)
{
    auto const found = object.find(key);
    if (found == object.end() || found->is_null()) {
        return otherwise;
    }
    try {
        return found->template get<Value>();
    } catch (nlohmann::json::exception const&) {
        throw json_error{fmt::format("has a '{}' of a kind that was not expected", key)};
    }
}

/// Refuses another value than this one, which is also that of a member left out. @throws json_error
template <class Value>
void must_be(nlohmann::json const& object, char const* key, Value const& value)
{
    if (optional_member(object, key, value) != value) {
        throw json_error{fmt::format("has another '{}' than {}; such a model is computed otherwise", key, value)};
    }
}

/// A whole number within limits. @throws json_error
inline int number_member(nlohmann::json const& object, char const* key, std::int64_t least, std::int64_t most)
{
    return static_cast<int>(integer_member(object, key, {least, most}));
}

}  // namespace rheo::inline v0
