#pragma once
// SPDX-License-Identifier: Apache-2.0

// How messages and reductions are played: options of all commands that play steps.

#include <string>

#include <CLI/CLI.hpp>

namespace rheo::cli {

inline void add_network_options(CLI::App& command, std::string& network, std::string& reduction)
{
    command.add_option("--network", network, "Messages share links, or have them for themselves.")
        ->check(CLI::IsMember({"contended", "free"}))
        ->capture_default_str();
    command.add_option("--reduction", reduction, "Form of the reductions. slice-owner: what rheo does.")
        ->check(CLI::IsMember({"slice-owner", "ring", "tree", "direct"}))
        ->capture_default_str();
}

}  // namespace rheo::cli
