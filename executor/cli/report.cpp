// SPDX-License-Identifier: Apache-2.0
// `rheo report`: the run folder as one page, next to the records it is made of.

#include "executor/cli/commands.hpp"

#include <fmt/format.h>

#include "executor/records/run_folder.hpp"
#include "executor/report/html_report.hpp"

namespace rheo::cli {

int report(report_options const& options)
{
    auto const file = options.out.empty() ? options.folder + "/report.html" : options.out;
    try {
        write_html_report(options.folder, file);
    } catch (unreadable_record const& error) {
        throw command_error{4, error.what()};
    }
    fmt::print("{}\n", file);
    return 0;
}

}  // namespace rheo::cli
