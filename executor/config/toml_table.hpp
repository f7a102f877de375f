#pragma once
// SPDX-License-Identifier: Apache-2.0

// A table of a TOML file whose keys are asked for one by one, by name, kind and limits. A refusal names file, line and key, and what was
// expected. Keys that are not among the known ones are refused at the start, with the nearest one.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "executor/config/config_setting.hpp"
#include "executor/config/toml_parser.hpp"
#include "rheo/units/in_quotes.hpp"
#include "rheo/units/nearest_name.hpp"

namespace rheo::inline v0 {

/// Numbers that a key of a described machine takes. A largest one keeps every product finite.
struct number_limits {
    bool or_zero = false;
    double most = 1e15;
    double least = 1e-15;  ///< above zero
};

class toml_table {
public:
    /// @param file its name, @param label how keys begin: "device.", "level 2: ", or nothing
    toml_table(toml::table const& table, std::string file, std::string label, std::vector<std::string_view> known)
        : table_{&table}, file_{std::move(file)}, label_{std::move(label)}
    {
        for (auto const& [key, value] : table) {
            if (std::find(known.begin(), known.end(), key.str()) == known.end()) {
                refuse(key.str(), fmt::format("unknown key {}; the nearest known one is {}{}", in_quotes(label_ + std::string{key.str()}), label_,
                                              nearest_name(key.str().substr(0, 40), known)));
            }
        }
    }

    bool has(std::string_view key) const { return table_->contains(key); }
    toml::node const* find(std::string_view key) const { return table_->get(key); }
    std::string label() const { return label_; }

    /// At the line of a key of this table; where it has none, of the table.
    [[noreturn]] void refuse(std::string_view key, std::string const& message) const
    {
        auto line = table_->source().begin.line;
        for (auto const& [name, value] : *table_) {
            line = name.str() == key ? name.source().begin.line : line;
        }
        refuse_setting(line > 0 ? fmt::format("{}:{}", file_, line) : file_, message);
    }

    double number(std::string_view key, number_limits limits = {}) const
    {
        auto const value = optional_number(key, limits);
        return value ? *value : (missing(key, expectation(limits)), 0.0);
    }

    std::optional<double> optional_number(std::string_view key, number_limits limits = {}) const
    {
        auto const* const node = find(key);
        if (node == nullptr) {
            return std::nullopt;
        }
        auto const value = node->is_number() ? node->value<double>() : std::nullopt;
        if (!value) {
            refuse(key, fmt::format("{}{} must be {}, not {}", label_, key, expectation(limits), type_name(*node)));
        }
        bool const fits = (*value >= limits.least && *value <= limits.most) || (limits.or_zero && *value == 0.0);
        if (!fits) {
            refuse(key, fmt::format("{}{} must be {}, not {}", label_, key, expectation(limits), *value));
        }
        return *value == 0.0 ? 0.0 : *value;  // no negative zero
    }

    std::int64_t whole(std::string_view key, std::int64_t least, std::int64_t most) const
    {
        auto const* const node = find(key);
        auto const expected = fmt::format("a whole number from {} to {}", least, most);
        return node == nullptr ? (missing(key, expected), 0) : whole_of(*node, key, expected, least, most);
    }

    std::int64_t whole_of(toml::node const& node, std::string_view key, std::string_view expected, std::int64_t least, std::int64_t most) const
    {
        auto const value = node.value_exact<std::int64_t>();
        if (!value || *value < least || *value > most) {
            refuse(key, fmt::format("{}{} must be {}, not {}", label_, key, expected, value ? fmt::format("{}", *value) : std::string{type_name(node)}));
        }
        return *value;
    }

    std::string text(std::string_view key) const
    {
        auto const* const node = find(key);
        auto const value = node == nullptr ? (missing(key, "a text"), std::nullopt) : node->value_exact<std::string>();
        return value ? *value : (refuse(key, fmt::format("{}{} must be a text, not {}", label_, key, type_name(*node))), std::string{});
    }

    bool flag(std::string_view key, bool otherwise) const
    {
        auto const* const node = find(key);
        auto const value = node == nullptr ? std::optional{otherwise} : node->value_exact<bool>();
        return value ? *value : (refuse(key, fmt::format("{}{} must be true or false, not {}", label_, key, type_name(*node))), false);
    }

    /// A table below this one; none: null.
    toml::table const* table(std::string_view key) const
    {
        auto const* const node = find(key);
        if (node != nullptr && !node->is_table()) {
            refuse(key, fmt::format("{}{} must be a table, [{}], not {}", label_, key, key, type_name(*node)));
        }
        return node == nullptr ? nullptr : node->as_table();
    }

    /// The tables of a list of them.
    std::vector<toml::table const*> tables(std::string_view key) const
    {
        std::vector<toml::table const*> all;
        auto const* const node = find(key);
        if (node == nullptr) {
            return all;
        }
        if (!node->is_array()) {
            refuse(key, fmt::format("{}{} must be a list of tables, [[{}]], not {}", label_, key, key, type_name(*node)));
        }
        for (auto const& element : *node->as_array()) {
            if (!element.is_table()) {
                refuse(key, fmt::format("{}{} must be a list of tables, [[{}]], but holds {}", label_, key, key, type_name(element)));
            }
            all.push_back(element.as_table());
        }
        return all;
    }

    [[noreturn]] void missing(std::string_view key, std::string_view expected) const
    {
        refuse("", fmt::format("{}{} is missing; expected {}", label_, key, expected));
    }

private:
    static std::string expectation(number_limits limits)
    {
        return fmt::format("a number {} and at most {:g}", limits.or_zero ? "of at least 0" : "above 0", limits.most);
    }

    toml::table const* table_;
    std::string file_;
    std::string label_;
};

}  // namespace rheo::inline v0
