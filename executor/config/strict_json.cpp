// SPDX-License-Identifier: Apache-2.0
#include "executor/config/strict_json.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>
#include <vector>

#include <fmt/format.h>

namespace rheo::inline v0 {

namespace {

using json = nlohmann::json;

std::optional<std::uint64_t> hexadecimal(std::string_view digits)
{
    std::uint64_t value = 0;
    for (char const c : digits) {
        auto const digit = std::string_view{"0123456789abcdef"}.find(c);
        if (digit == std::string_view::npos) {
            return std::nullopt;
        }
        value = value << 4 | digit;
    }
    return value;
}

}  // namespace

json parse_strict(std::string_view text, int depth)
{
    if (auto const zero = text.find('\0'); zero != std::string_view::npos) {  // which the parser takes for the end
        throw json_error{fmt::format("is not JSON: byte {} of {} is a zero", zero + 1, text.size())};
    }
    std::vector<std::set<std::string>> keys;
    auto const check = [&](int at, json::parse_event_t event, json& value) {
        switch (event) {
        case json::parse_event_t::object_start:
        case json::parse_event_t::array_start:
            if (at >= depth) {
                throw json_error{fmt::format("is nested deeper than {}", depth)};
            }
            keys.emplace_back();
            break;
        case json::parse_event_t::object_end:
        case json::parse_event_t::array_end: keys.pop_back(); break;
        case json::parse_event_t::key:
            if (!keys.back().insert(value.get<std::string>()).second) {
                throw json_error{fmt::format("has the key '{}' twice", value.get<std::string>())};
            }
            break;
        case json::parse_event_t::value: break;
        }
        return true;
    };
    try {
        return json::parse(text.begin(), text.end(), check);
    } catch (json::parse_error const& error) {
        throw json_error{fmt::format("is not JSON: byte {} of {} is not what JSON has there", error.byte, text.size())};
    } catch (json::exception const&) {
        throw json_error{"is not JSON: a number is too large"};
    }
}

std::string format_json(json const& value, int indent) { return value.dump(indent, ' ', false, json::error_handler_t::replace); }

json const& member(json const& object, char const* key)
{
    if (!object.is_object()) {
        throw json_error{fmt::format("has something else where an object with '{}' was expected", key)};
    }
    auto const found = object.find(key);
    if (found == object.end()) {
        throw json_error{fmt::format("has no '{}'", key)};
    }
    return *found;
}

json const& list_member(json const& object, char const* key)
{
    auto const& value = member(object, key);
    if (!value.is_array()) {
        throw json_error{fmt::format("has a '{}' that is not a list", key)};
    }
    return value;
}

std::string text_member(json const& object, char const* key)
{
    auto const& value = member(object, key);
    if (!value.is_string()) {
        throw json_error{fmt::format("has a '{}' that is not a text", key)};
    }
    return value.get<std::string>();
}

bool truth_member(json const& object, char const* key)
{
    auto const& value = member(object, key);
    if (!value.is_boolean()) {
        throw json_error{fmt::format("has a '{}' that is neither true nor false", key)};
    }
    return value.get<bool>();
}

state_digest digest_member(json const& object, char const* key)
{
    auto const text = text_member(object, key);
    auto const high = hexadecimal(std::string_view{text}.substr(0, 16));
    auto const low = hexadecimal(std::string_view{text}.substr(std::min<std::size_t>(16, text.size())));
    if (text.size() != 32 || !high || !low) {
        throw json_error{fmt::format("has a '{}' that is not a digest of 32 hexadecimal digits", key)};
    }
    return {*high, *low};
}

std::int64_t integer_of(json const& value, char const* name, integer_limits limits)
{
    auto const fits = value.is_number_unsigned() ? value.get<std::uint64_t>() <= static_cast<std::uint64_t>(INT64_MAX) : value.is_number_integer();
    if (!fits || value.get<std::int64_t>() < limits.least || value.get<std::int64_t>() > limits.most) {
        throw json_error{fmt::format("has a '{}' that is not a whole number from {} to {}", name, limits.least, limits.most)};
    }
    return value.get<std::int64_t>();
}

std::int64_t integer_member(json const& object, char const* key, integer_limits limits) { return integer_of(member(object, key), key, limits); }

std::string seal(char const* kind, json const& value)
{
    return format_json({{"digest", to_string(digest_of_bytes(format_json(value)))}, {kind, value}}, 1) + "\n";
}

json open_sealed(char const* kind, std::string_view text, int depth)
{
    auto const whole = parse_strict(text, depth + 1);
    auto const& value = member(whole, kind);
    if (digest_member(whole, "digest") != digest_of_bytes(format_json(value))) {
        throw json_error{"does not have the digest that it says: it was changed, or its disk is not sound"};
    }
    return value;
}

state_digest digest_of_bytes(std::string_view bytes)
{
    std::vector<std::uint32_t> words(bytes.size() / 4 + 3);
    std::memcpy(words.data(), bytes.data(), bytes.size());
    words[words.size() - 2] = static_cast<std::uint32_t>(bytes.size());
    words.back() = static_cast<std::uint32_t>(bytes.size() >> 32);
    return digest_of("bytes", tensor_role::parameter, 0, words);
}

}  // namespace rheo::inline v0
