#pragma once
// SPDX-License-Identifier: Apache-2.0

// `rheo plan --schedule`: the schedules side by side for the user's own model, before one is chosen.

#include <string>

#include "executor/config/config.hpp"
#include "rheo/model/model.hpp"

namespace rheo::cli {

struct comparison_options {
    std::string schedule;     ///< all, the name of a family, or a file
    int ranks = 0;            ///< of one pipeline
    double memory_mib = 0.0;  ///< per rank; 0: no cap
    bool json = false;
    std::string profile = {};  ///< a file with times and sizes of the layers; empty: they follow from the model
};

/// Prints the table and what it picks. Returns the exit code; 3 when nothing fits.
int compare_schedules(model_description const& model, run_config const& config, comparison_options const& options);

}  // namespace rheo::cli
