#pragma once
// SPDX-License-Identifier: Apache-2.0

// What `rheo frontier` is given, read and checked: profile, schedule, powers and times with their suffixes; and the bar
// that shows how far it is.

#include <chrono>
#include <string>

#include "executor/cli/commands.hpp"
#include "rheo/energy/frontier/make_activity_network.hpp"
#include "rheo/energy/profile/profile.hpp"
#include "rheo/schedule/core/any_schedule.hpp"

namespace rheo::cli {

/// A time option; nothing when it was not given. @throws exit_error when it is no time
seconds time_option(std::string const& name, std::string const& text);

struct frontier_input {
    any_schedule schedule;
    rheo::profile measured;  // profile alone is the command
    frontier_request request;
    seconds shortest;  ///< time of a computation of the profile
};

/// Reads the profile, too. @throws exit_error
frontier_input read_input(frontier_options const& options);

/// An activity network with its options. @throws exit_error with what the profile lacks, or when it is too long to be counted in units
made_network network_for(program const& p, frontier_input const& input, frontier_options const& options);

/// A bar on the terminal once it has taken long enough to be noticed; nothing where it is no terminal.
class progress_bar {
public:
    progress_bar();

    /// @param share of the work that is done, 0 to 1
    void show(double share);

    /// Takes the bar away.
    void clear();

private:
    std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
    bool terminal_;
    int drawn_ = -1;
};

/// `rheo frontier --ranks`: templates and clocks for every number of survivors.
int survivors(frontier_options const& options);

}  // namespace rheo::cli
