// SPDX-License-Identifier: Apache-2.0
#include "runtime/toml.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>

// The parser asserts a few things that a file may well get wrong, for example what begins the name in "[=]". A file
// must not end the process: such a file is refused like any other.
namespace {
struct parser_assertion {};
constexpr void parser_expects(bool kept)
{
    if (!kept) {
        throw parser_assertion{};
    }
}
}  // namespace
#undef NDEBUG
#define TOML_ASSERT(expr) parser_expects(static_cast<bool>(expr))
#include <toml++/toml.h>

#include "rheo/units/nearest_name.hpp"
#include "runtime/config_fields.hpp"

namespace rheo::inline v0 {

namespace {

/// One value that somebody said, and where.
struct setting {
    std::string key;
    std::string place;
    toml::node const* value = nullptr;
    std::optional<std::string> raw = {};  ///< the text of a --set
    toml::source_index line = 0;
};

[[noreturn]] void refuse(std::string_view place, std::string_view sentence)
{
    throw config_error{fmt::format("{}: {}", place, sentence)};
}

std::vector<std::string_view> known_keys()
{
    std::vector<std::string_view> keys{"schema"};
    run_config const defaults;
    for_each_field(defaults, [&](std::string_view key, auto const&, field_limits const&, std::string_view) { keys.push_back(key); });
    return keys;
}

/// True for model, train, train.microbatch ...
bool is_table(std::string_view name, std::vector<std::string_view> const& keys)
{
    return std::any_of(keys.begin(), keys.end(), [&](std::string_view key) {
        return key.size() > name.size() && key.starts_with(name) && key[name.size()] == '.';
    });
}

std::string_view nearest_table(std::string_view name, std::vector<std::string_view> const& keys)
{
    std::vector<std::string_view> tables;
    for (auto const key : keys) {
        for (auto dot = key.find('.'); dot != key.npos; dot = key.find('.', dot + 1)) {
            tables.push_back(key.substr(0, dot));
        }
    }
    return nearest_name(name, tables);
}

/// A key of the same last part in another table was most likely meant; else the one of least edit distance.
std::string_view nearest_key(std::string_view key, std::vector<std::string_view> const& keys)
{
    auto const last = key.substr(key.rfind('.') + 1);
    for (auto const known : keys) {
        if (known.substr(known.rfind('.') + 1) == last) {
            return known;
        }
    }
    return nearest_name(key, keys);
}

std::string_view name_of(toml::node const& value)
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

void flatten(toml::table const& table, std::string const& prefix, std::string const& name,
             std::vector<std::string_view> const& keys, std::vector<setting>& out)
{
    for (auto const& [key, value] : table) {
        auto const full = prefix + std::string{key.str()};
        auto const place = fmt::format("{}:{}", name, key.source().begin.line);
        if (value.is_table() && is_table(full, keys)) {
            flatten(*value.as_table(), full + '.', name, keys, out);
        } else {
            out.push_back({.key = full, .place = place, .value = &value, .line = key.source().begin.line});
        }
    }
}

/// Takes settings for the members of a config.
struct assignment {
    setting const& from;
    bool taken = false;

    [[noreturn]] void wrong(std::string_view expected) const
    {
        refuse(from.place, fmt::format("{} must be {}, not {}", from.key, expected, name_of(*from.value)));
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
            refuse(from.place, fmt::format("{} must be {}, not {}", from.key, expected, name_of(node)));
        }
        if (!std::in_range<T>(*value)) {
            refuse(from.place, fmt::format("{} = {} is outside of what can be kept, {} to {}", from.key, *value,
                                           std::numeric_limits<T>::lowest(), std::numeric_limits<T>::max()));
        }
        return static_cast<T>(*value);
    }

    void take(per_mille<int>& member) const
    {
        double fraction = 0;
        take(fraction);
        auto const count = fraction * 1000;
        if (!(std::abs(count) <= 1e6) || std::abs(count - std::round(count)) > 1e-9) {
            refuse(from.place, fmt::format("{} must be a multiple of 0.001, not {}", from.key, fraction));
        }
        member.count = static_cast<int>(std::round(count));
    }

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
                refuse(from.place, fmt::format("{} must be a list of texts, but holds {}", from.key, name_of(element)));
            }
            member.push_back(*value);
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

void apply(setting const& from, read_config_result& result, std::vector<std::string_view> const& keys)
{
    if (from.key == "schema") {
        auto const version = from.value->value_exact<std::int64_t>();
        if (version != 1) {
            refuse(from.place, version ? fmt::format("schema = {} is not known; this version reads schema = 1", *version)
                                       : std::string{"schema must be the number 1"});
        }
        return;
    }
    assignment visitor{from};
    for_each_field(result.config, visitor);
    if (!visitor.taken) {
        if (is_table(from.key, keys)) {
            refuse(from.place, fmt::format("{} is a table of keys, not a value", from.key));
        }
        if (from.value->is_table()) {
            refuse(from.place, fmt::format("unknown table {}; the nearest known one is {}", from.key, nearest_table(from.key, keys)));
        }
        refuse(from.place, fmt::format("unknown key {}; the nearest known one is {}", from.key, nearest_key(from.key, keys)));
    }
    result.places.insert_or_assign(from.key, from.place);
}

toml::table parse(std::string_view text, std::string const& name)
{
    try {
        return toml::parse(text);
    } catch (toml::parse_error const& error) {
        std::string what{error.description()};
        std::replace(what.begin(), what.end(), '\n', ' ');
        refuse(fmt::format("{}:{}", name, error.source().begin.line), fmt::format("no valid TOML: {}", what));
    } catch (parser_assertion const&) {
        refuse(name, "no valid TOML: a key or table is not named as TOML names them");
    }
}

/// The value after `=` in TOML; what is no TOML is a text, so that a path needs no quotes within quotes.
toml::table parse_value(std::string const& text)
{
    try {
        if (text.find_first_of("\r\n") == std::string::npos) {
            return toml::parse("value = " + text);
        }
    } catch (toml::parse_error const&) {  // the text it is
    } catch (parser_assertion const&) {
    }
    toml::table table;
    table.insert("value", text);
    return table;
}

void apply_setting(std::string const& text, read_config_result& result, std::vector<std::string_view> const& keys)
{
    auto const place = "--set " + text;
    auto const equals = text.find('=');
    if (equals == std::string::npos || equals == 0) {
        refuse(place, "expected key=value, for example train.steps=5");
    }
    auto const raw = text.substr(equals + 1);
    auto const table = parse_value(raw);
    std::vector<setting> flat;
    auto const key = text.substr(0, equals);
    auto const& value = *table.get("value");
    if (value.is_table() && is_table(key, keys)) {
        flatten(*value.as_table(), key + '.', place, keys, flat);
    } else {
        flat.push_back({.key = key, .place = place, .value = &value, .raw = raw});
    }
    for (auto& from : flat) {
        from.place = place;
        apply(from, result, keys);
    }
}

std::string toml_text(std::string_view text)
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

struct writer {
    std::string text = "schema = 1\n";
    std::string table = {};

    template <class T>
    void operator()(std::string_view key, T const& member, field_limits const&, std::string_view meaning)
    {
        auto const dot = key.rfind('.');
        if (auto const name = key.substr(0, dot); name.substr(0, name.find('.')) != table) {
            table = name;
            text += fmt::format("\n[{}]\n", table);
        }
        auto const line = fmt::format("{} = {}", key.substr(table.size() + 1), value(member));
        text += meaning.empty() ? line + '\n' : fmt::format("{:<32}  # {}\n", line, meaning);
    }

    static std::string value(bool v) { return v ? "true" : "false"; }
    static std::string value(std::string const& v) { return toml_text(v); }
    static std::string value(per_mille<int const> v) { return value(v.count / 1000.0); }

    template <class T>
        requires std::is_integral_v<T>
    static std::string value(T v)
    {
        return fmt::format("{}", v);
    }

    static std::string value(double v)
    {
        auto const shortest = fmt::format("{}", v);
        return shortest.find_first_of(".en") == std::string::npos ? shortest + ".0" : shortest;
    }

    template <class T>
    static std::string value(std::vector<T> const& list)
    {
        std::string result = "[";
        for (std::size_t i = 0; i < list.size(); ++i) {
            result += (i == 0 ? "" : ", ") + value(list[i]);
        }
        return result + ']';
    }
};

}  // namespace

std::string read_config_result::sentence(config_fault const& fault) const
{
    auto const found = places.find(fault.key);
    return fmt::format("{}: {}", found == places.end() ? name : found->second, fault.sentence);
}

read_config_result read_config(std::string_view text, std::string const& name, std::span<std::string const> settings)
{
    auto const keys = known_keys();
    read_config_result result;
    result.name = name;
    auto const table = parse(text, name);
    std::vector<setting> flat;
    flatten(table, "", name, keys, flat);
    std::sort(flat.begin(), flat.end(), [](setting const& a, setting const& b) { return a.line < b.line; });
    for (auto const& from : flat) {
        apply(from, result, keys);
    }
    if (!table.contains("schema")) {
        refuse(name, "schema = 1 is missing; a config begins with the version of its form");
    }
    for (auto const& text_of_setting : settings) {
        apply_setting(text_of_setting, result, keys);
    }
    auto fault = check_gpt(result.config);
    if (!fault) {
        fault = check(result.config);
    }
    if (fault) {
        throw config_error{result.sentence(*fault)};
    }
    return result;
}

read_config_result read_config_file(std::string const& path, std::span<std::string const> settings)
{
    std::error_code ignored;
    if (std::filesystem::is_directory(path, ignored)) {
        refuse(path, "is a folder; expected a config file in TOML");
    }
    std::ifstream file(path, std::ios::binary);
    if (!file) {
        refuse(path, fmt::format("cannot be read: {}", std::strerror(errno)));
    }
    std::ostringstream text;
    text << file.rdbuf();
    return read_config(text.str(), path, settings);
}

std::string to_toml(run_config const& config)
{
    writer visitor;
    for_each_field(config, visitor);
    return visitor.text;
}

}  // namespace rheo::inline v0
