#pragma once
// SPDX-License-Identifier: Apache-2.0

// The command `rheo schedule`, with its options as they are written.

#include <string>

#include "rheo/schedule/core/program.hpp"

namespace rheo::cli {

struct schedule_command_options {
    std::string name;  ///< of a family, or of a file
    int ranks = 0;
    int microbatches = 0;
    int chunks = 0;
    int group = 0;
    int slices = 0;
    std::string format = "text";
    std::string costs = "1,1,1,0";
    bool list = false;
};

/// The schedule that the options name, ready made.
struct chosen_schedule {
    std::string name;
    std::string source;
    rheo::program program;
    int microbatches;
};

/// Makes it. Throws a refusal with a sentence.
chosen_schedule choose(schedule_command_options const& options);

int schedule(schedule_command_options const& options);

}  // namespace rheo::cli
