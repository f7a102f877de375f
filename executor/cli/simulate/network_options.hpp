#pragma once
// SPDX-License-Identifier: Apache-2.0

// How messages and reductions are played: options of all commands that play steps.

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include "rheo/simulate/network/network_model.hpp"
#include "rheo/simulate/played_step/played_step.hpp"

namespace rheo::cli {

/// The networks that steps are played on.
inline constexpr std::array<std::string_view, 3> step_network_names{"contended", "free", "integer-ns"};

/// Why steps cannot be played on the network; empty when they can.
inline std::string network_refusal(std::string const& network)
{
    if (std::find(step_network_names.begin(), step_network_names.end(), network) != step_network_names.end()) {
        return {};
    }
    std::string const why = network == "nccl"
                                ? "nccl reckons with graphics cards, processors and channels, which no cluster.toml describes, and has no messages"
                            : network == "fitted" ? "links are fitted by the cluster, where a level has measured = FILE"
                                                  : "there is no network " + network;
    return why + "; expected contended, free or integer-ns";
}

/// Calls `play` with the network model of that name. @pre network_refusal is empty
template <class Play>
auto on_network(std::string const& network, Play const& play)
{
    if (network == step_network_names[1]) {
        return play(free_network{});
    }
    return network == step_network_names[2] ? play(integer_contended_network{}) : play(contended_network{});
}

inline void add_network_options(CLI::App& command, std::string& network, std::string& reduction)
{
    command.add_option("--network", network, "Messages share links, have them for themselves, or take whole nanoseconds by ASTRA-sim's rules.")
        ->check(CLI::Validator{[](std::string& name) { return network_refusal(name); }, "{contended,free,integer-ns}"})
        ->capture_default_str();
    command.add_option("--reduction", reduction, "Form of the reductions. slice-owner: what rheo does; node-first: the same in each node, then between nodes.")
        ->check(CLI::IsMember(std::vector<std::string>(step_reduction_names.begin(), step_reduction_names.end())))
        ->capture_default_str();
}

}  // namespace rheo::cli
