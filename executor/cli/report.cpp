// SPDX-License-Identifier: Apache-2.0
// `rheo report`: the run folder as one page, next to the records it is made of; or several runs on one page that compares them. The page may be served,
// and the steps be a table instead.

#include "executor/cli/commands.hpp"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "executor/config/text_file.hpp"
#include "executor/records/run_folder.hpp"
#include "executor/records/run_lock.hpp"
#include "executor/report/run_page.hpp"
#include "executor/report/runs_page.hpp"
#include "executor/report/serve/page_server.hpp"
#include "executor/report/steps_csv.hpp"
#include "rheo/units/exit_error.hpp"

namespace rheo::cli {

namespace {

int report_of_one(std::string const& folder, std::string const& out)
{
    auto const file = out.empty() ? folder + "/report.html" : out;
    write_whole(file, page_of(run_page(folder)));
    fmt::print("{}\n", file);
    return 0;
}

/// Those that cannot be read are reported, and make it exit code 4; the others have their page.
int comparison_of(std::vector<std::string> const& runs, std::string const& file)
{
    auto const result = runs_page(runs, file);
    for (auto const& error : result.errors) {
        fmt::print(stderr, "rheo: {}\n", error);
    }
    if (result.compared > 0) {
        write_whole(file, page_of(result.data));
        fmt::print("{}\n", file);
    }
    return number_of(result.errors.empty() ? exit_code::done : exit_code::bad_data);
}

served_page page_of_one(std::string const& folder)
{
    bool const is_live = run_lock::is_held(folder) == true || !how_it_ended(folder);
    return {.text = page_of(run_page(folder)), .is_live = is_live};
}

/// Runs that cannot be read are named on the page.
served_page page_of_several(std::vector<std::string> const& runs)
{
    auto const result = runs_page(runs, "runs.html");
    bool const is_live = std::any_of(runs.begin(), runs.end(), [](std::string const& run) { return run_lock::is_held(run) == true; });
    return result.compared > 0 ? served_page{.text = page_of(result.data), .is_live = is_live}
                               : served_page{.is_there = false, .text = fmt::format("{}", fmt::join(result.errors, "\n")), .is_live = true};
}

/// Until SIGINT or SIGTERM.
int serve(report_options const& options, std::vector<std::string> const& runs, bool is_one)
{
    page_server server{options.bind, *options.port, [&] { return is_one ? page_of_one(runs.front()) : page_of_several(runs); }};
    fmt::print("{} is at {} until Ctrl-C\n", is_one ? runs.front() : fmt::format("a page of {} runs", runs.size()), server.url());
    std::fflush(stdout);
    server.run(true);
    return 0;
}

int steps_of_one(std::string const& folder, std::string const& file)
{
    write_whole(file, steps_csv(read_run_folder(folder, traces::leave)));
    fmt::print("{}\n", file);
    return 0;
}

}  // namespace

int report(report_options const& options)
{
    auto const runs = runs_in(options.folders);
    bool const is_one = options.folders.size() == 1 && (is_run_folder(options.folders.front()) || !is_run_folder(runs.front()));
    if (!options.csv.empty()) {
        if (!is_one) {
            throw exit_error{exit_code::usage, fmt::format("--csv writes the steps of one run, but there are {}: name one run folder", runs.size())};
        }
        return steps_of_one(runs.front(), options.csv);
    }
    if (options.port) {
        return serve(options, runs, is_one);
    }
    if (is_one) {
        return report_of_one(runs.front(), options.out);
    }
    auto const beside = options.folders.size() == 1 ? std::filesystem::path{options.folders.front()} : std::filesystem::path{};
    return comparison_of(runs, options.out.empty() ? (beside / "runs.html").string() : options.out);
}

}  // namespace rheo::cli
