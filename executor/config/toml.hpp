#pragma once
// SPDX-License-Identifier: Apache-2.0

// The config as a file: TOML with `schema = 1` and one table per struct of executor/config/config.hpp. Every
// value remembers where it was set (file and line, or the command line), so that a refusal, also a
// later one, can name the place.

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "executor/config/config.hpp"
#include "executor/config/files/schedule_file.hpp"

namespace rheo::inline v0 {

struct read_config_result {
    run_config config;
    std::map<std::string, std::string> places;  ///< key -> "demo.toml:12" or "--set train.steps=5"
    std::string name;                           ///< of the file

    /// The fault's sentence with the place of its key, or else the file's name.
    std::string message(invalid_key const& fault) const;
};

/// Reads and checks a config. @param name what refusals call the text
/// @param settings "key=value" each, applied after the file in their order
/// @throws exit_error one sentence: syntax, unknown key (with the nearest known one), wrong type, bad value
read_config_result read_config(std::string_view text, std::string const& name, std::span<std::string const> settings = {},
                               schedule_finder const& find = find_schedule);

/// The same from a file. @throws exit_error also when it cannot be read
read_config_result read_config_file(std::string const& path, std::span<std::string const> settings = {}, schedule_finder const& find = find_schedule);

/// The config with these settings, "key=value" each, whose values are not checked against limits and other keys.
/// @throws exit_error an unknown key, or a value of the wrong type
run_config assign_settings(run_config config, std::span<std::string const> settings);

/// The config with these settings, checked. @throws exit_error the same sentences
run_config with_settings(run_config config, std::span<std::string const> settings, schedule_finder const& find = find_schedule);

/// That no key of a config is called so, with the nearest known one; empty when one is.
std::string unknown_key_error(std::string_view key);

/// The whole config with all its defaults; reading it gives the same config.
std::string to_toml(run_config const& config);

/// A key with its value as the file has it.
struct config_value {
    std::string key;
    std::string value;

    friend bool operator==(config_value const&, config_value const&) = default;
};

/// All keys in the file's order.
std::vector<config_value> values_of(run_config const& config);

}  // namespace rheo::inline v0
