#pragma once
// SPDX-License-Identifier: Apache-2.0

// A line for the shell, run within a time: how a site lets its own command set clocks.

#include <string>

#include "executor/power/device_result.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0::power {

/// Runs `/bin/sh -c line` and waits for its end. Done: it ended with 0. At the end of the patience it is killed, with all
/// that it started and that did not leave its process group.
device_result<done> run_shell_line(std::string const& line, seconds patience = {10.0});

}  // namespace rheo::inline v0::power
