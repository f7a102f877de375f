#pragma once
// SPDX-License-Identifier: Apache-2.0

// All commands of `rheo` with their options, as CLI11 has them. Parsing, --help, the reference page, man pages and
// shell completion all read this one description.

#include <functional>
#include <string>

#include <CLI/CLI.hpp>

#include "executor/cli/commands.hpp"
#include "executor/cli/schedule.hpp"

namespace rheo::cli {

struct command_line {
    command_line();
    command_line(command_line const&) = delete;  // options point into it
    command_line& operator=(command_line const&) = delete;

    CLI::App app{"rheo trains models in pipelines that survive the loss of ranks with the same bits."};
    std::function<int()> chosen;  ///< the command that was given, after app.parse

private:
    train_options train_;
    plan_options plan_;
    profile_options profile_;
    report_options report_;
    watch_options watch_;
    schedule_command_options schedule_;
    info_options info_;
    export_options export_;
    import_options import_;
    frontier_options frontier_;
    reshard_command_options reshard_;
    reshape_options reshape_;
    convert_options convert_;
    checkpoint_command_options checkpoint_;
    simulate_options simulate_;
    sweep_options sweep_;
    trace_options trace_;
    analyze_options analyze_;
    tokenize_command_options tokenize_;
    evaluate_options evaluate_;
    generate_options generate_;
    reference_options reference_;

    void add_train();
    void add_plan();
    void add_profile();
    void add_schedule();
    void add_frontier();
    void add_reshard();
    void add_reshape();
    void add_convert();
    void add_checkpoint();  ///< in checkpoint.cpp
    void add_simulate();
    void add_sweep();
    void add_records();  ///< report, export, import, info
    void add_trace();
    void add_analyze();
    void add_tokenize();
    void add_evaluate();
    void add_generate();
    void add_reference();
};

}  // namespace rheo::cli
