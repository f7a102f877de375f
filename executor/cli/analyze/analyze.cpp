// SPDX-License-Identifier: Apache-2.0
// `rheo analyze`: what the ranks of a job wait for, from the traces of a run of rheo or of PyTorch's profiler.

#include <filesystem>
#include <fstream>
#include <string>

#include <fmt/format.h>

#include "executor/cli/analyze/device/analyzed_job.hpp"
#include "executor/cli/analyze/run/analyzed_run.hpp"
#include "executor/cli/commands.hpp"
#include "rheo/units/exit_error.hpp"

namespace rheo::cli {

namespace {

template <class Job>
int show(Job const& job, analyze_options const& options)
{
    if (!options.csv.empty()) {
        std::ofstream out{options.csv, std::ios::binary};
        out << csv_of(job);
        if (!out.flush()) {
            throw exit_error{exit_code::environment, fmt::format("{}: cannot be written", options.csv)};
        }
    }
    fmt::print("{}", options.json ? json_of(job) : text_of(job));
    return 0;
}

}  // namespace

int analyze_traces(analyze_options const& options)
{
    if (options.traces.size() == 1 && std::filesystem::is_directory(options.traces.front())) {
        return show(analyze_run_folder(options.traces.front()), options);
    }
    return show(analyze_files(options.traces), options);
}

}  // namespace rheo::cli
