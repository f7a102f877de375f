#pragma once
// SPDX-License-Identifier: Apache-2.0

// What a sweep found: the best rows and what binds, as text for people; all of its rows as a picture.

#include <string>
#include <vector>

#include "executor/cli/sweep/sweep_table.hpp"
#include "executor/config/files/grid_file.hpp"

namespace rheo::cli {

struct sweep_report {
    std::string title;  ///< of what: "job.toml on cluster.toml"
    sweep_grid const* grid;
    std::vector<sweep_row> const* rows;
};

/// One screen.
std::string to_text(sweep_report const& report);

/// Tokens per second over tokens per joule, over ranks where no watts are described; the best are joined, colors say what binds.
std::string picture_of(sweep_report const& report);

}  // namespace rheo::cli
