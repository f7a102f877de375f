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
    return wanted == 2 ? compare_traces(options.from[0], options.from[1], options.times) : check_traces(options.from[0]);
}

}  // namespace rheo::cli
