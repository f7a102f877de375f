// SPDX-License-Identifier: Apache-2.0
// `rheo analyze`: what the ranks of a job wait for, from the traces of a run of rheo or of PyTorch's profiler, or from Chakra execution traces.

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "executor/cli/analyze/device/analyzed_job.hpp"
#include "executor/cli/analyze/device/compared_jobs.hpp"
#include "executor/cli/analyze/run/analyzed_run.hpp"
#include "executor/cli/analyze/run/compared_runs.hpp"
#include "executor/cli/commands.hpp"
#include "executor/config/text_file.hpp"
#include "executor/records/chakra/chakra_traces.hpp"

namespace rheo::cli {

namespace {

namespace fs = std::filesystem;

bool is_folder(std::string const& path) { return fs::is_directory(path); }

/// Of Chakra execution traces.
bool is_prefix(std::string const& path) { return !fs::exists(path) && fs::exists(chakra_file(path, 0)); }

/// A prefix, or a file for each rank.
analyzed_job analyze_ranks(std::vector<std::string> const& traces)
{
    return traces.size() == 1 && is_prefix(traces.front()) ? analyze_prefix(traces.front()) : analyze_files(traces);
}

template <class Job>
int show(Job const& job, analyze_options const& options)
{
    if (!options.csv.empty()) {
        write_whole(options.csv, csv_of(job));
    }
    if (!options.page.empty()) {
        write_whole(options.page, page_of(document_of(job, most_rows_of_page), title_of(job)));
    }
    fmt::print("{}", options.json ? json_of(job) : text_of(document_of(job, most_rows_of_text)));
    return 0;
}

}  // namespace

int analyze_traces(analyze_options const& options)
{
    auto const& traces = options.traces;
    if (!options.against.empty()) {
        if (traces.size() == 1 && options.against.size() == 1 && is_folder(traces.front()) && is_folder(options.against.front())) {
            return show(compared_runs{analyze_run_folder(options.against.front()), analyze_run_folder(traces.front())}, options);
        }
        return show(compared_jobs{analyze_ranks(options.against), analyze_ranks(traces)}, options);
    }
    if (traces.size() == 1 && is_folder(traces.front())) {
        return show(analyze_run_folder(traces.front()), options);
    }
    if (traces.size() == 2 && is_folder(traces.front()) && is_folder(traces.back())) {
        return show(compared_runs{analyze_run_folder(traces.front()), analyze_run_folder(traces.back())}, options);
    }
    if (traces.size() == 2 && is_folder(traces.back()) && fs::is_regular_file(traces.front())) {
        auto run = analyze_run_folder(traces.back());
        auto planned = planned_run(traces.front(), run);
        return show(compared_runs{std::move(planned), std::move(run)}, options);
    }
    if (traces.size() == 2 && is_prefix(traces.front()) && is_prefix(traces.back())) {
        return show(compared_jobs{analyze_prefix(traces.front()), analyze_prefix(traces.back())}, options);
    }
    return show(analyze_ranks(traces), options);
}

}  // namespace rheo::cli
