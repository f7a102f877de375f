// SPDX-License-Identifier: Apache-2.0
// `rheo analyze`: what the ranks of a job wait for, from the traces of a run of rheo or of PyTorch's profiler, or from Chakra execution traces.

#include <filesystem>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "executor/cli/analyze/device/analyzed_job.hpp"
#include "executor/cli/analyze/run/analyzed_run.hpp"
#include "executor/cli/analyze/run/compared_runs.hpp"
#include "executor/cli/commands.hpp"
#include "executor/records/chakra/chakra_traces.hpp"
#include "executor/records/record_files.hpp"

namespace rheo::cli {

namespace {

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
    auto const is_folder = [](std::string const& path) { return std::filesystem::is_directory(path); };
    if (traces.size() == 1 && is_folder(traces.front())) {
        return show(analyze_run_folder(traces.front()), options);
    }
    if (traces.size() == 2 && is_folder(traces.front()) && is_folder(traces.back())) {
        return show(compared_runs{analyze_run_folder(traces.front()), analyze_run_folder(traces.back())}, options);
    }
    if (traces.size() == 2 && is_folder(traces.back()) && std::filesystem::is_regular_file(traces.front())) {
        auto run = analyze_run_folder(traces.back());
        auto planned = planned_run(traces.front(), run);
        return show(compared_runs{std::move(planned), std::move(run)}, options);
    }
    bool const is_prefix = traces.size() == 1 && !std::filesystem::exists(traces.front()) && std::filesystem::exists(chakra_file(traces.front(), 0));
    return show(is_prefix ? analyze_prefix(traces.front()) : analyze_files(traces), options);
}

}  // namespace rheo::cli
