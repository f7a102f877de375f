// SPDX-License-Identifier: Apache-2.0
// `rheo trace`: which action, and whether it has what it needs.
#include "executor/cli/trace/traces.hpp"

#include <cstddef>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "rheo/units/exit_error.hpp"

namespace rheo::cli {

namespace {

/// An option that belongs to another action.
void refuse_unless(bool belongs, bool given, std::string_view option, std::string const& action)
{
    if (given && !belongs) {
        throw exit_error{exit_code::usage,
                         fmt::format("{} is no option of rheo trace {}; rheo trace --help says to which actions options belong", option, action)};
    }
}

}  // namespace

int chakra_traces(trace_options const& options)
{
    bool const exports = options.action == "export";
    refuse_unless(exports, !options.chakra.empty(), "--chakra", options.action);
    refuse_unless(exports, !options.config.empty(), "--config", options.action);
    refuse_unless(exports, options.step.has_value(), "--step", options.action);
    refuse_unless(options.action == "diff", options.times, "--times", options.action);
    auto const& play = options.play;
    bool const plays = options.action == "import";
    refuse_unless(plays, !play.cluster.empty(), "--cluster", options.action);
    refuse_unless(plays, play.network != trace_import_options{}.network, "--network", options.action);
    refuse_unless(plays, play.unshared, "--unshared", options.action);
    refuse_unless(plays, play.chunks != 0, "--chunks", options.action);
    refuse_unless(plays, !play.form.empty(), "--form", options.action);
    refuse_unless(plays, !play.chrome.empty(), "--chrome", options.action);
    refuse_unless(plays, !play.page.empty(), "--page", options.action);
    refuse_unless(plays, play.json, "--json", options.action);
    std::size_t const wanted = options.action == "diff" ? 2 : 1;
    if (options.from.size() != wanted) {
        throw exit_error{exit_code::usage, fmt::format("rheo trace {}: expected {}, not {}", options.action,
                                                       wanted == 2 ? "two prefixes"
                                                       : exports   ? "one plan or run"
                                                                   : "one prefix",
                                                       options.from.size())};
    }
    if (exports) {
        return export_traces(options);
    }
    if (plays) {
        auto of_prefix = play;
        of_prefix.prefix = options.from.front();
        return import_traces(of_prefix);
    }
    return wanted == 2 ? compare_traces(options.from[0], options.from[1], options.times) : check_traces(options.from[0]);
}

}  // namespace rheo::cli
