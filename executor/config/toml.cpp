// SPDX-License-Identifier: Apache-2.0
#include "executor/config/toml.hpp"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include <fmt/format.h>
#include <range/v3/algorithm/sort.hpp>

#include "executor/config/config_fields.hpp"
#include "executor/config/config_setting.hpp"
#include "executor/config/toml_parser.hpp"
#include "rheo/units/exit_error.hpp"
#include "rheo/units/nearest_name.hpp"

namespace rheo::inline v0 {

namespace {

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
    return std::any_of(keys.begin(), keys.end(),
                       [&](std::string_view key) { return key.size() > name.size() && key.starts_with(name) && key[name.size()] == '.'; });
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

std::string unknown_key(std::string_view key, std::vector<std::string_view> const& keys)
{
    return fmt::format("unknown key {}; the nearest known one is {}", key, nearest_key(key, keys));
}

void flatten(toml::table const& table, std::string const& prefix, std::string const& name, std::vector<std::string_view> const& keys,
             std::vector<config_setting>& out)
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

/// A config of which not all settings have been applied.
struct pending_config : read_config_result {
    std::string schedule_name{};  ///< empty: the default
};

void apply(config_setting const& from, pending_config& result, std::vector<std::string_view> const& keys)
{
    if (from.key == "schema") {
        auto const version = from.value->value_exact<std::int64_t>();
        if (version != 1) {
            refuse_setting(from.place, version ? fmt::format("schema = {} is not known; this version reads schema = 1", *version)
                                               : std::string{"schema must be the number 1"});
        }
        return;
    }
    setting_assignment visitor{from, result.schedule_name};
    for_each_field(result.config, visitor);
    if (!visitor.taken) {
        if (is_table(from.key, keys)) {
            refuse_setting(from.place, fmt::format("{} is a table of keys, not a value", from.key));
        }
        if (from.value->is_table()) {
            refuse_setting(from.place, fmt::format("unknown table {}; the nearest known one is {}", from.key, nearest_table(from.key, keys)));
        }
        refuse_setting(from.place, unknown_key(from.key, keys));
    }
    result.places.insert_or_assign(from.key, from.place);
}

toml::table parse(std::string_view text, std::string const& name)
{
    try {
        return parse_toml(text);
    } catch (toml_syntax_error const& error) {
        refuse_setting(error.line > 0 ? fmt::format("{}:{}", name, error.line) : name, fmt::format("no valid TOML: {}", error.what()));
    }
}

/// The value after `=` in TOML; what is no TOML is a text, so that a path needs no quotes within quotes.
toml::table parse_value(std::string const& text)
{
    try {
        if (text.find_first_of("\r\n") == std::string::npos) {
            return parse_toml("value = " + text);
        }
    } catch (toml_syntax_error const&) {  // the text it is
    }
    toml::table table;
    table.insert("value", text);
    return table;
}

void apply_setting(std::string const& text, std::string const& place, pending_config& result, std::vector<std::string_view> const& keys)
{
    auto const equals = text.find('=');
    if (equals == std::string::npos || equals == 0) {
        refuse_setting(place, "expected key=value, for example train.steps=5");
    }
    auto const raw = text.substr(equals + 1);
    auto const table = parse_value(raw);
    std::vector<config_setting> flat;
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

pending_config assigned(run_config config, std::span<std::string const> settings)
{
    auto const keys = known_keys();
    pending_config result;
    result.config = std::move(config);
    for (auto const& text : settings) {
        apply_setting(text, text, result, keys);
    }
    return result;
}

/// Looks the schedule up and checks the config. @returns the first error
std::optional<invalid_key> fault_of(pending_config& result, schedule_finder const& find)
{
    if (auto fault = check_model(result.config)) {
        return fault;
    }
    if (result.places.contains("plan.schedule")) {
        auto const found = result.schedule_name == name_of(automatic_schedule()) ? automatic_schedule() : find(result.schedule_name);
        if (!found) {
            return invalid_key{"plan.schedule", found.error()};
        }
        result.config.plan.schedule = *found;
    }
    return check(result.config);
}

}  // namespace

std::string read_config_result::message(invalid_key const& fault) const
{
    auto const found = places.find(fault.key);
    return fmt::format("{}: {}", found == places.end() ? name : found->second, fault.message);
}

read_config_result read_config(std::string_view text, std::string const& name, std::span<std::string const> settings, schedule_finder const& find)
{
    auto const keys = known_keys();
    pending_config result;
    result.name = name;
    auto const table = parse(text, name);
    std::vector<config_setting> flat;
    flatten(table, "", name, keys, flat);
    ranges::sort(flat, {}, &config_setting::line);
    for (auto const& from : flat) {
        apply(from, result, keys);
    }
    if (!table.contains("schema")) {
        refuse_setting(name, "schema = 1 is missing; a config begins with the version of its form");
    }
    for (auto const& text_of_setting : settings) {
        apply_setting(text_of_setting, "--set " + text_of_setting, result, keys);
    }
    if (auto const fault = fault_of(result, find)) {
        throw exit_error{exit_code::usage, result.message(*fault)};
    }
    return result;
}

run_config assign_settings(run_config config, std::span<std::string const> settings) { return assigned(std::move(config), settings).config; }

run_config with_settings(run_config config, std::span<std::string const> settings, schedule_finder const& find)
{
    auto result = assigned(std::move(config), settings);
    if (auto const fault = fault_of(result, find)) {
        throw exit_error{exit_code::usage, fault->message};
    }
    return std::move(result.config);
}

std::string unknown_key_error(std::string_view key)
{
    auto const keys = known_keys();
    return std::find(keys.begin(), keys.end(), key) == keys.end() ? unknown_key(key, keys) : std::string{};
}

read_config_result read_config_file(std::string const& path, std::span<std::string const> settings, schedule_finder const& find)
{
    std::error_code ignored;
    if (std::filesystem::is_directory(path, ignored)) {
        refuse_setting(path, "is a folder; expected a config file in TOML");
    }
    std::ifstream file(path, std::ios::binary);
    if (!file) {
        refuse_setting(path, fmt::format("cannot be read: {}", std::strerror(errno)));
    }
    std::ostringstream text;
    text << file.rdbuf();
    return read_config(text.str(), path, settings, find);
}

}  // namespace rheo::inline v0
