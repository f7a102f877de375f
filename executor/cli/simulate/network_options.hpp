#pragma once
// SPDX-License-Identifier: Apache-2.0

// How messages and reductions are played: options of all commands that play steps.

#include <string>

#include <CLI/CLI.hpp>

namespace rheo::cli {

/// Why steps cannot be played on the network; empty when they can.
inline std::string network_refusal(std::string const& network)
{
    if (network == "contended" || network == "free") {
        return {};
    }
    std::string const why = network == "integer-ns" ? "integer-ns has times in whole nanoseconds, computations of a step take fractions of them"
                            : network == "nccl"     ? "nccl has times of all-reduces, none of the messages between stages"
                            : network == "fitted"   ? "links are fitted by the cluster, where a level has measured = FILE"
                                                    : "there is no network " + network;
    return why + "; expected contended or free";
}

inline void add_network_options(CLI::App& command, std::string& network, std::string& reduction)
{
    command.add_option("--network", network, "Messages share links, or have them for themselves.")
        ->check(CLI::Validator{[](std::string& name) { return network_refusal(name); }, "{contended,free}"})
        ->capture_default_str();
    command.add_option("--reduction", reduction, "Form of the reductions. slice-owner: what rheo does.")
        ->check(CLI::IsMember({"slice-owner", "ring", "tree", "direct"}))
        ->capture_default_str();
}

}  // namespace rheo::cli
