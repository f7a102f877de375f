#pragma once
// SPDX-License-Identifier: Apache-2.0

// A value that a config file or --set gives to a key, and its assignment to the member of that key: one function per type of
// member, which converts the value or says what was expected. Values of the command line need no quotes around a text.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "executor/config/config_fields.hpp"
#include "executor/config/data_sources.hpp"
#include "executor/config/learning_rate.hpp"
#include "executor/config/toml_parser.hpp"
#include "rheo/units/exit_error.hpp"

namespace rheo::inline v0 {

/// One value that was set, and where.
struct config_setting {
    std::string key;
    std::string place;
    toml::node const* value = nullptr;
    std::optional<std::string> raw = {};  ///< the text of a --set
    toml::source_index line = 0;
};

[[noreturn]] inline void refuse_setting(std::string_view place, std::string_view message)
{
    throw exit_error{exit_code::usage, fmt::format("{}: {}", place, message)};
}

inline std::string_view type_name(toml::node const& value)
{
    switch (value.type()) {
    case toml::node_type::table: return "a table";
    case toml::node_type::array: return "a list";
    case toml::node_type::string: return "a text";
    case toml::node_type::integer: return "a whole number";
    case toml::node_type::floating_point: return "a number with a fraction";
    case toml::node_type::boolean: return "true or false";
    default: return "a date or time";
    }
}

/// Visits the members of a config and gives the setting to the one whose key it names. @throws exit_error a value of the wrong type or range
struct setting_assignment {
    config_setting const& from;
    std::string& schedule_name;
    bool taken = false;

    [[noreturn]] void wrong(std::string_view expected) const
    {
        refuse_setting(from.place, fmt::format("{} must be {}, not {}", from.key, expected, type_name(*from.value)));
    }

    template <class T>
    void operator()(std::string_view key, T&& member, field_limits const&, std::string_view)
    {
        if (key == from.key) {
            taken = true;
            take(member);
        }
    }

    template <class T>
        requires std::is_arithmetic_v<T>
    void take(T& member) const
    {
        if constexpr (std::is_same_v<T, bool>) {
            auto const value = from.value->value_exact<bool>();
            member = value ? *value : (wrong("true or false"), false);
        } else if constexpr (std::is_floating_point_v<T>) {
            auto const value = from.value->is_number() ? from.value->value<double>() : std::nullopt;
            member = value ? *value : (wrong("a number"), 0.0);
        } else {
            member = whole<T>(*from.value, "a whole number");
        }
    }

    template <class T>
    T whole(toml::node const& node, std::string_view expected) const
    {
        auto const value = node.value_exact<std::int64_t>();
        if (!value) {
            refuse_setting(from.place, fmt::format("{} must be {}, not {}", from.key, expected, type_name(node)));
        }
        if (!std::in_range<T>(*value)) {
            refuse_setting(from.place, fmt::format("{} = {} is out of range; expected {} to {}", from.key, *value, std::numeric_limits<T>::lowest(),
                                                   std::numeric_limits<T>::max()));
        }
        return static_cast<T>(*value);
    }

    void take(in_parts<int>& member) const
    {
        double fraction = 0;
        take(fraction);
        auto const count = fraction * member.parts;
        if (!(std::abs(count) <= 1e6) || std::abs(count - std::round(count)) > 1e-9) {
            refuse_setting(from.place, fmt::format("{} must be a multiple of {}, not {}", from.key, 1 / member.parts, fraction));
        }
        member.count = static_cast<int>(std::round(count));
    }

    /// A quantity of some size is never taken as none.
    template <class Quantity>
    void take(in_unit<Quantity> member) const
    {
        using count = decltype(member.quantity.count);
        double number = 0;
        take(number);
        auto const value = number * member.unit;
        if (std::is_integral_v<count> && !(std::abs(value) < 0x1p63)) {
            refuse_setting(from.place, fmt::format("{} = {} is out of range", from.key, number));
        }
        member.quantity.count = static_cast<count>(value);
        if (std::is_integral_v<count> && value > 0 && member.quantity.count == 0) {
            member.quantity.count = 1;
        }
    }

    template <ConfigWord Enum>
    void take(Enum& member) const
    {
        std::string word;
        take(word);
        auto const found = std::find(words_of<Enum>.begin(), words_of<Enum>.end(), word);
        if (found == words_of<Enum>.end()) {
            refuse_setting(from.place, fmt::format("{} must be one of {}, not '{}'", from.key, fmt::join(words_of<Enum>, ", "), word));
        }
        member = static_cast<Enum>(found - words_of<Enum>.begin());
    }

    void take(recompute_policy& member) const
    {
        if (auto const word = from.value->value_exact<std::string>(); word == "auto" || from.raw == "auto") {
            member = recompute_policy::automatic;
        } else if (word == "selective" || from.raw == "selective") {
            member = recompute_policy::selective;
        } else if (auto const truth = from.value->value_exact<bool>()) {
            member = *truth ? recompute_policy::always : recompute_policy::never;
        } else {
            wrong("true, false, \"auto\" or \"selective\"");
        }
    }

    /// The name is looked up when all settings have been applied: one that is overridden need not exist.
    void take(any_schedule&) const { take(schedule_name); }

    void take(std::string& member) const
    {
        auto const value = from.value->value_exact<std::string>();
        if (value) {
            member = *value;
        } else if (from.raw) {
            member = *from.raw;
        } else {
            wrong("a text");
        }
    }

    void take(std::vector<std::string>& member) const
    {
        if (!from.value->is_array()) {
            if (!from.raw) {
                wrong("a list of texts");
            }
            member.assign(1, {});
            take(member.front());
            return;
        }
        member.clear();
        for (auto const& element : *from.value->as_array()) {
            auto const value = element.value_exact<std::string>();
            if (!value) {
                refuse_setting(from.place, fmt::format("{} must be a list of texts, but holds {}", from.key, type_name(element)));
            }
            member.push_back(*value);
        }
    }

    void take(std::vector<rate_from>& member) const { take_entries(member, rate_table); }
    void take(std::vector<weighted_path>& member) const { take_entries(member, data_sources); }

    /// A list of texts, as a function reads them.
    template <class Entry, class Read>
    void take_entries(std::vector<Entry>& member, Read read) const
    {
        std::vector<std::string> entries;
        take(entries);
        auto list = read(entries);
        if (!list) {
            refuse_setting(from.place, fmt::format("{}: {}", from.key, list.error()));
        }
        member = *std::move(list);
    }

    /// A number, or a list.
    void take(tensor_degrees& member) const
    {
        if (from.value->is_array() && from.value->as_array()->empty()) {
            refuse_setting(from.place, fmt::format("{} must be a number of ranks, or a list of such numbers, but the list is empty", from.key));
        }
        if (from.value->is_array()) {
            take(member.values);
        } else {
            member.values.assign(1, whole<int>(*from.value, "a whole number or a list of whole numbers"));
        }
    }

    void take(std::vector<int>& member) const
    {
        if (!from.value->is_array()) {
            wrong("a list of whole numbers");
        }
        member.clear();
        for (auto const& element : *from.value->as_array()) {
            member.push_back(whole<int>(element, "a list of whole numbers"));
        }
    }
};

}  // namespace rheo::inline v0
