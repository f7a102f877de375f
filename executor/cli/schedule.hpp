#pragma once
// SPDX-License-Identifier: Apache-2.0

// The command `rheo schedule`, with its options as they are written.

#include <string>

#include <CLI/CLI.hpp>

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

/// Adds the command to the program's.
inline CLI::App& add_schedule_command(CLI::App& app, schedule_command_options& options)
{
    auto& command = *app.add_subcommand("schedule", "show one schedule: its drawing, its figures, its proof");
    command.add_option("name", options.name, "of a schedule (--list), or a file in PyTorch's text form");
    command.add_option("--ranks", options.ranks, "of the pipeline")->check(CLI::Range(1, 1 << 10));
    command.add_option("--microbatches", options.microbatches, "of a step")->check(CLI::Range(1, 1 << 16));
    command.add_option("--chunks", options.chunks, "stages per rank")->check(CLI::Range(1, 1 << 6));
    command.add_option("--group", options.group, "microbatches through one chunk before the next")->check(CLI::Range(1, 1 << 16));
    command.add_option("--slices", options.slices, "of each microbatch, along its sequence")->check(CLI::Range(1, 1 << 10));
    command.add_option("--format", options.format, "text, pytorch, svg or json")->check(CLI::IsMember({"text", "pytorch", "svg", "json"}));
    command.add_option("--costs", options.costs, "f,i,w,transfer: forward, input gradient and weight gradient of a full stage, and a transfer");
    command.add_flag("--list", options.list, "all schedules with their sources");
    return command;
}

}  // namespace rheo::cli
