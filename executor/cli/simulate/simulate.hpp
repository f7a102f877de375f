#pragma once
// SPDX-License-Identifier: Apache-2.0

// What the forms of `rheo simulate` share.

#include <string>
#include <utility>

#include <fmt/format.h>

#include "executor/cli/commands.hpp"
#include "rheo/units/exit_error.hpp"
#include "rheo/units/result.hpp"

namespace rheo::cli {

/// What was read. @throws exit_error with the sentence when it was refused
template <class Read>
Read accepted(result<Read> read)
{
    if (!read) {
        throw exit_error{exit_code::usage, read.error()};
    }
    return *std::move(read);
}

template <class Time>
std::string share_of(Time part, Time all)
{
    return all.count == 0 ? "-" : fmt::format("{:.1f} %", 100.0 * (part / all));
}

/// Steps by number of nodes are a table.
int simulate_steps_table(simulate_options const& options);

/// Steps are those of the config's plans, on a cluster.
int simulate_config(simulate_options const& options);

}  // namespace rheo::cli
