#pragma once
// SPDX-License-Identifier: Apache-2.0

// Completion of rheo's command line for bash, zsh and fish, and the commands and options as rows, which these and the reference pages are written from.

#include <string>
#include <string_view>
#include <vector>

#include "executor/config/reference.hpp"

namespace rheo::cli {

/// An option or argument as people see it.
struct option_row {
    std::string name{};   ///< `--set`, or the argument's name
    std::string value{};  ///< what it takes, `FILE`; empty: a flag
    std::string meaning{};
    std::string initial{};             ///< its default; empty: none
    std::string range{};               ///< `1 to 1024`
    std::vector<std::string> words{};  ///< it takes one of these
    bool argument = false;
    bool required = false;
    bool repeats = false;
    bool path = false;
    std::vector<std::string> needs{};
    std::vector<std::string> excludes{};
};

struct command_row {
    std::string name;
    std::string meaning;
    std::vector<option_row> options;
};

/// `text` with each `pattern` replaced by `with`.
std::string replaced(std::string text, std::string_view pattern, std::string_view with);

/// Scripts for the shells: commands, their options, the words that an option takes, config keys after --set.
std::string bash_completion(std::vector<command_row> const& commands, std::vector<config_row> const& rows);
std::string zsh_completion(std::vector<command_row> const& commands, std::vector<config_row> const& rows);
std::string fish_completion(std::vector<command_row> const& commands, std::vector<config_row> const& rows);

}  // namespace rheo::cli
