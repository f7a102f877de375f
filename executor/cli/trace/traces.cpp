// SPDX-License-Identifier: Apache-2.0
// `rheo trace`: which action, and whether it has what it needs.
#include "executor/cli/trace/traces.hpp"

#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "rheo/units/exit_error.hpp"

namespace rheo::cli {

namespace {

/// An option, the action to which it belongs, and whether it was given.
struct given_option {
    std::string_view name;
    std::string_view action;
    bool is_given;
};

void refuse_options_of_others(trace_options const& options)
{
    auto const& play = options.play;
    for (auto const& option : std::initializer_list<given_option>{{"--chakra", "export", !options.chakra.empty()},
                                                                  {"--config", "export", !options.config.empty()},
                                                                  {"--step", "export", options.step.has_value()},
                                                                  {"--times", "diff", options.times},
                                                                  {"--cluster", "import", !play.cluster.empty()},
                                                                  {"--network", "import", play.network != trace_import_options{}.network},
                                                                  {"--unshared", "import", play.unshared},
                                                                  {"--chunks", "import", play.chunks != 0},
                                                                  {"--form", "import", !play.form.empty()},
                                                                  {"--chrome", "import", !play.chrome.empty()},
                                                                  {"--page", "import", !play.page.empty()},
                                                                  {"--json", "import", play.json}}) {
        if (option.is_given && option.action != options.action) {
            throw exit_error{exit_code::usage, fmt::format("{} is no option of rheo trace {}; rheo trace --help says to which actions options belong",
                                                           option.name, options.action)};
        }
    }
}

}  // namespace

int chakra_traces(trace_options const& options)
{
    refuse_options_of_others(options);
    bool const exports = options.action == "export";
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
    if (options.action == "import") {
        auto of_prefix = options.play;
        of_prefix.prefix = options.from.front();
        return import_traces(of_prefix);
    }
    return wanted == 2 ? compare_traces(options.from[0], options.from[1], options.times) : check_traces(options.from[0]);
}

}  // namespace rheo::cli
