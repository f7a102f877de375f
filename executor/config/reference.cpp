// SPDX-License-Identifier: Apache-2.0
#include "executor/config/reference.hpp"

#include <string_view>
#include <type_traits>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "executor/config/config_fields.hpp"
#include "executor/config/toml_value.hpp"

namespace rheo::inline v0 {

namespace {

std::string number(double value) { return fmt::format("{}", value); }

template <class T>
std::string range_of(field_limits const& limits)
{
    constexpr field_limits open;
    if constexpr (ConfigWord<T>) {
        return fmt::format("{}", fmt::join(words_of<T>, ", "));
    }
    if (limits.least == open.least && limits.most == open.most) {
        return {};
    }
    if (limits.most == open.most) {
        return fmt::format("{} {}", limits.above_least ? ">" : ">=", number(limits.least));
    }
    if (!limits.above_least && !limits.below_most) {
        return fmt::format("{} to {}", number(limits.least), number(limits.most));
    }
    return fmt::format("{} {} x {} {}", number(limits.least), limits.above_least ? "<" : "<=", limits.below_most ? "<" : "<=", number(limits.most));
}

template <class T>
inline constexpr bool is_in_unit = false;
template <class Quantity>
inline constexpr bool is_in_unit<in_unit<Quantity>> = true;

template <class T>
std::string type_of()
{
    if constexpr (std::is_same_v<T, bool>) {
        return "boolean";
    } else if constexpr (std::is_integral_v<T>) {
        return "integer";
    } else if constexpr (std::is_same_v<T, double> || std::is_same_v<T, in_parts<int const>> || is_in_unit<T>) {
        return "number";
    } else if constexpr (std::is_same_v<T, tensor_degrees>) {
        return "integer or list of integers";
    } else if constexpr (std::is_same_v<T, std::vector<int>>) {
        return "list of integers";
    } else if constexpr (std::is_same_v<T, std::vector<std::string>> || std::is_same_v<T, std::vector<rate_from>> ||
                         std::is_same_v<T, std::vector<weighted_path>>) {
        return "list of texts";
    } else if constexpr (std::is_same_v<T, recompute_policy>) {
        return "boolean or text";
    } else {
        return "text";
    }
}

}  // namespace

std::vector<config_row> config_rows()
{
    std::vector<config_row> rows;
    run_config const defaults;
    for_each_field(defaults, [&](std::string_view key, auto const& member, field_limits const& limits, std::string_view meaning) {
        using type = std::remove_cvref_t<decltype(member)>;
        rows.push_back({std::string{key}, type_of<type>(), toml_value(member), range_of<type>(limits), std::string{meaning}});
    });
    return rows;
}

}  // namespace rheo::inline v0
