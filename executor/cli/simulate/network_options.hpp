#pragma once
// SPDX-License-Identifier: Apache-2.0

// How messages and reductions are played: options of all commands that play steps.

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include "executor/cli/commands.hpp"
#include "rheo/simulate/cluster/cluster_model.hpp"
#include "rheo/simulate/network/fitted_path.hpp"
#include "rheo/simulate/network/network_model.hpp"
#include "rheo/simulate/played_step/played_step.hpp"
#include "rheo/units/exit_error.hpp"

namespace rheo::cli {

inline constexpr std::array<std::string_view, 5> step_network_names{"contended", "free", "integer-ns", "nccl", "fitted"};

inline step_reduction reduction_of(network_options const& options)
{
    auto const found = std::find(step_reduction_names.begin(), step_reduction_names.end(), options.reduction);
    return options.network == "nccl" ? step_reduction::nccl : static_cast<step_reduction>(found - step_reduction_names.begin());
}

/// @param described null: processes of one machine  @throws exit_error where the cluster does not say what the network or the reductions need
inline void check_network(network_options const& options, cluster_model const* described)
{
    if (reduction_of(options) == step_reduction::nccl && (described == nullptr || !described->nccl)) {
        throw exit_error{exit_code::usage, "NCCL's times need what NCCL finds on the machine; expected a --cluster with [nccl]"};
    }
    bool const is_measured =
        described != nullptr && std::any_of(described->levels.begin(), described->levels.end(), [](auto const& level) { return !level.lines.empty(); });
    if (options.network == "fitted" && !is_measured) {
        throw exit_error{exit_code::usage, "--network fitted needs measured messages; expected a --cluster with measured = FILE in a [[level]]"};
    }
}

/// Calls `play` with the network model of that name. @pre one of step_network_names
template <class Play>
auto on_network(std::string const& network, Play const& play)
{
    return network == "free"         ? play(free_network{})
           : network == "integer-ns" ? play(integer_contended_network{})
           : network == "fitted"     ? play(fitted_network{})
                                     : play(contended_network{});
}

inline void add_network_options(CLI::App& command, network_options& options)
{
    command
        .add_option("--network", options.network,
                    "Messages share links, have them for themselves, take whole nanoseconds by ASTRA-sim's rules, or the times that were measured (fitted). "
                    "nccl: they share links, and reductions take NCCL's time.")
        ->check(CLI::IsMember(std::vector<std::string>(step_network_names.begin(), step_network_names.end())))
        ->capture_default_str();
    command
        .add_option("--reduction", options.reduction,
                    "Form of the reductions. slice-owner: what rheo does; node-first: the same in each node, then between nodes; nccl: in NCCL's time.")
        ->check(CLI::IsMember(std::vector<std::string>(step_reduction_names.begin(), step_reduction_names.end())))
        ->capture_default_str();
}

}  // namespace rheo::cli
