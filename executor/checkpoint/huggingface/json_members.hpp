#pragma once
// SPDX-License-Identifier: Apache-2.0

// Members of a config.json that may be left out, and those that must have one value because anything else is another computation.

#include <cmath>
#include <cstdint>
#include <string>

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

/// A fraction in equal parts of one, 1e-9 or 1e-3 for example; it must be a whole number of them within limits. @throws json_error
inline int parts_member(nlohmann::json const& object, char const* key, double otherwise, double parts, int least, int most)
{
    auto const value = optional_member(object, key, otherwise);
    auto const count = std::round(value * parts);
    if (!(count >= least && count <= most) || std::abs(value * parts - count) > 1e-6) {
        throw json_error{fmt::format("has {} {}; here it is a multiple of {} from {} to {}", key, value, 1 / parts, least / parts, most / parts)};
    }
    return static_cast<int>(count);
}

/// A whole number within limits. @throws json_error
inline int number_member(nlohmann::json const& object, char const* key, std::int64_t least, std::int64_t most)
{
    return static_cast<int>(integer_member(object, key, {least, most}));
}

}  // namespace rheo::inline v0
