#pragma once
// SPDX-License-Identifier: Apache-2.0

// Values of config keys as TOML. The effective config of a run and the generated reference write them alike.

#include <concepts>
#include <cstddef>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "executor/config/config_fields.hpp"

namespace rheo::inline v0 {

inline std::string toml_value(std::string_view text)
{
    std::string result = "\"";
    for (char const c : text) {
        if (c == '"' || c == '\\') {
            result += '\\';
            result += c;
        } else if (auto const code = static_cast<unsigned char>(c); code < 0x20 || code == 0x7f) {
            result += fmt::format("\\u{:04x}", code);
        } else {
            result += c;
        }
    }
    return result + '"';
}

inline std::string toml_value(std::string const& text) { return toml_value(std::string_view{text}); }

inline std::string toml_value(any_schedule value) { return toml_value(name_of(value)); }

inline std::string toml_value(std::same_as<bool> auto value) { return value ? "true" : "false"; }

inline std::string toml_value(recompute_policy value)
{
    return value == recompute_policy::automatic   ? "\"auto\""
           : value == recompute_policy::selective ? "\"selective\""
                                                  : toml_value(value == recompute_policy::always);
}

template <class Value>
concept WholeNumber = std::integral<Value> && !std::same_as<Value, bool>;

template <WholeNumber Int>
std::string toml_value(Int value)
{
    return fmt::format("{}", value);
}

inline std::string toml_value(std::same_as<double> auto value)
{
    auto const shortest = fmt::format("{}", value);
    return shortest.find_first_of(".en") == std::string::npos ? shortest + ".0" : shortest;
}

template <ConfigWord Enum>
std::string toml_value(Enum value)
{
    return toml_value(name_of(value));
}

/// The number of units that a quantity comes to, with as few digits as give the same quantity again.
template <class Quantity>
double number_in_unit(in_unit<Quantity const> value)
{
    auto const exact = static_cast<double>(value.quantity.count) / value.unit;
    for (int digits = 1; digits < 17; ++digits) {
        auto const shorter = std::strtod(fmt::format("{:.{}g}", exact, digits).c_str(), nullptr);
        if (static_cast<decltype(value.quantity.count)>(shorter * value.unit) == value.quantity.count) {
            return shorter;
        }
    }
    return exact;
}

template <class Quantity>
std::string toml_value(in_unit<Quantity const> value)
{
    return toml_value(number_in_unit(value));
}

inline std::string toml_value(in_parts<int const> value) { return toml_value(value.count / value.parts); }

/// "0.7: texts/web"
inline std::string toml_value(weighted_path const& source) { return toml_value(fmt::format("{}: {}", source.weight, source.path)); }

/// "1000: 0.0001"
inline std::string toml_value(rate_from entry) { return toml_value(fmt::format("{}: {}", entry.step, entry.rate)); }

template <class T>
std::string toml_value(std::vector<T> const& list)
{
    std::string result = "[";
    for (std::size_t i = 0; i < list.size(); ++i) {
        result += (i == 0 ? "" : ", ") + toml_value(list[i]);
    }
    return result + ']';
}

inline std::string toml_value(tensor_degrees const& degrees)
{
    return degrees.values.size() == 1 ? toml_value(degrees.values.front()) : toml_value(degrees.values);
}

}  // namespace rheo::inline v0
