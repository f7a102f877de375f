// SPDX-License-Identifier: Apache-2.0
// `rheo report`: the run folder as one page, next to the records it is made of; or several runs on one page that compares them.

#include "executor/cli/commands.hpp"

#include <cstdio>
#include <filesystem>

#include <fmt/format.h>

#include "executor/config/text_file.hpp"
#include "executor/records/run_folder.hpp"
#include "executor/report/run_page.hpp"
#include "executor/report/runs_page.hpp"
#include "rheo/units/exit_code.hpp"

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

}  // namespace

int report(report_options const& options)
{
    auto const runs = runs_in(options.folders);
    bool const is_one = options.folders.size() == 1 && (is_run_folder(options.folders.front()) || !is_run_folder(runs.front()));
    if (is_one) {
        return report_of_one(runs.front(), options.out);
    }
    auto const beside = options.folders.size() == 1 ? std::filesystem::path{options.folders.front()} : std::filesystem::path{};
    return comparison_of(runs, options.out.empty() ? (beside / "runs.html").string() : options.out);
}

}  // namespace rheo::cli
