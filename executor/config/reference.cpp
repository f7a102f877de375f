// SPDX-License-Identifier: Apache-2.0
#include "executor/config/reference.hpp"

#include <string_view>
#include <type_traits>

#include <fmt/format.h>

#include "executor/config/config_fields.hpp"
#include "executor/config/toml_value.hpp"

namespace rheo::inline v0 {

namespace {

std::string number(double value) { return fmt::format("{}", value); }

std::string range_of(field_limits const& limits)
{
    constexpr field_limits open;
    if (!limits.words.empty()) {
        std::string words{limits.words};
        for (std::size_t bar = 0; (bar = words.find('|', bar)) != words.npos;) {
            words.replace(bar, 1, ", ");
        }
        return words;
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
std::string type_of()
{
    if constexpr (std::is_same_v<T, bool>) {
        return "boolean";
    } else if constexpr (std::is_integral_v<T>) {
        return "integer";
    } else if constexpr (std::is_same_v<T, double> || std::is_same_v<T, per_mille<int const>>) {
        return "number";
    } else if constexpr (std::is_same_v<T, std::vector<int>>) {
        return "list of integers";
    } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
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
        rows.push_back({std::string{key}, type_of<std::remove_cvref_t<decltype(member)>>(), toml_value(member), range_of(limits), std::string{meaning}});
    });
    return rows;
}

}  // namespace rheo::inline v0
