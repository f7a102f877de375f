// SPDX-License-Identifier: Apache-2.0
// `rheo train`: everything that can be refused is refused before MPI starts, by all ranks alike; what only
// shows with all ranks together (their number, when the launcher does not give it) comes back as a result.

#include "executor/cli/commands.hpp"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>

#include <fmt/format.h>
#include <mpi.h>

#include "executor/checkpoint/checkpoint.hpp"
#include "executor/cli/launch.hpp"
#include "executor/config/toml.hpp"
#include "executor/faults/time_limit.hpp"
#include "executor/mpi/segment_folder.hpp"
#include "executor/plan/plan_file.hpp"
#include "executor/plan/planning.hpp"
#include "executor/records/run_folder.hpp"
#include "executor/train/run.hpp"
#include "rheo/model/model.hpp"
#include "rheo/units/exit_error.hpp"

namespace rheo::cli {

namespace {

read_config_result read(train_options const& options)
{
    auto read = read_config_file(options.config, options.settings);
    if (!options.data.empty()) {
        read.config.data.paths = options.data;
        read.config.data.sources.clear();
        read.places["data.paths"] = "--data";
    }
    if (!options.inject.empty()) {
        read.config.run.inject = options.inject;
        read.places["run.inject"] = "--inject";
    }
    if (options.node_size > 0) {
        read.config.plan.node_size = options.node_size;
    }
    if (read.config.run.folder.empty()) {
        read.config.run.folder = "runs/" + std::filesystem::path(options.config).stem().string();
    }
    if (auto const fault = check(read.config)) {
        throw exit_error{exit_code::usage, read.message(*fault)};
    }
    return read;
}

/// A launcher whose ranks were all lost has no rank to take an exit code from; the run folder has it.
int say_how_it_ended(run_config const& config)
{
    auto const end = how_it_ended(config.run.folder);
    if (!end) {
        auto const steps = checkpoint_steps(config.run.folder);
        fmt::print("{}: has not ended; all its ranks were lost, or it runs; {} steps are safe in its newest checkpoint\n", config.run.folder,
                   steps.empty() ? 0 : std::max_element(steps.begin(), steps.end())->value);
        return number_of(exit_code::not_ended);
    }
    fmt::print("{}: {} (exit code {})\n", config.run.folder, end->message, end->exit_code);
    if (end->exit_code == 0 && end->steps < config.train.steps) {
        fmt::print("{}: has {} steps of {} now\n", config.run.folder, end->steps, config.train.steps);
        return number_of(exit_code::not_ended);
    }
    return end->exit_code;
}

}  // namespace

int train(train_options const& options)
{
    auto const read = cli::read(options);
    auto const& config = read.config;
    if (options.ended) {
        return say_how_it_ended(config);
    }
    auto const model = model_of(config);
    run_options how;
    how.quiet = options.json;
    how.resume = options.resume == "auto" ? resume_mode::automatic : options.resume == "fork" ? resume_mode::fork : resume_mode::never;
    how.max_time = seconds{options.max_time_s};
    how.stop_on_signals = true;
    if (!options.plan.empty()) {
        how.first_plan = read_plan_file(options.plan);
    }
    if (auto const error = layer_profile_error(model, config); !error.empty()) {
        throw exit_error{exit_code::bad_data, error};
    }
    if (auto const ranks = launched_ranks()) {
        if (how.first_plan) {
            if (auto const error = plan_error(*how.first_plan, model, config, *ranks); !error.empty()) {
                throw exit_error{exit_code::impossible_plan, fmt::format("{}: {}", options.plan, error)};
            }
        } else if (auto const fault = check_ranks(config, *ranks)) {
            throw exit_error{exit_code::usage, read.message(*fault)};
        } else if (auto const first = make_plan(model, config, *ranks); !first) {
            throw exit_error{exit_code::impossible_plan, fmt::format("{}: {}", options.config, first.error())};
        }
    }

    int level = 0;
    mpi::use_own_segment_folder();
    {
        time_limit const waits{limited_start(config.run.watchdog.start, false, "MPI_Init")};
        MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &level);
    }
    auto const result = run(MPI_COMM_WORLD, model, config, how);
    if (result.is_reporter && options.json && result.survivors != MPI_COMM_NULL) {
        std::ifstream const report{config.run.folder + "/report.json"};
        std::ostringstream text;
        text << report.rdbuf();
        fmt::print("{}", text.str());
    }
    if (result.is_reporter && result.exit_code != 0) {
        std::istringstream lines{result.record.message};
        for (std::string line; std::getline(lines, line);) {
            fmt::print(stderr, "rheo: {}\n", line);
        }
        std::fflush(stderr);
    }
    leave_job(result);
}

}  // namespace rheo::cli
