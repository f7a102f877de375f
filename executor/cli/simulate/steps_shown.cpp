// SPDX-License-Identifier: Apache-2.0
#include "executor/cli/simulate/steps_shown.hpp"

#include <algorithm>
#include <sstream>
#include <string_view>

#include <fmt/format.h>

#include "executor/config/text_file.hpp"
#include "rheo/units/csv.hpp"
#include "rheo/units/exit_error.hpp"
#include "rheo/units/in_quotes.hpp"

namespace rheo::cli {

shown_steps steps_shown(std::string const& text, std::int64_t steps)
{
    if (text.empty()) {
        return {0, std::min<std::int64_t>(1, steps - 1)};
    }
    shown_steps shown;
    auto const dots = text.find("..");
    auto const first = std::string_view{text}.substr(0, dots);
    auto const last = dots == text.npos ? first : std::string_view{text}.substr(dots + 2);
    if (!read_number(first, shown.first) || !read_number(last, shown.last) || shown.first < 0) {
        throw exit_error{exit_code::usage, fmt::format("--steps-shown is {}; expected a range of steps, as 40..43, or one step", in_quotes(text))};
    }
    if (shown.last < shown.first) {
        throw exit_error{exit_code::usage, fmt::format("--steps-shown: the range {} is empty; its first step is behind its last", in_quotes(text))};
    }
    if (shown.last >= steps) {
        throw exit_error{exit_code::usage, fmt::format("--steps-shown: the job has no step {}; its steps are 0 to {}", shown.last, steps - 1)};
    }
    return shown;
}

void write_trace(std::string const& path, job_trace<> const& trace, shown_steps shown)
{
    if (trace.size() == 0) {
        throw exit_error{exit_code::usage, fmt::format("--steps-shown: the job ends before it has done step {}", shown.first)};
    }
    std::ostringstream text;
    write_chrome_trace(text, trace);
    write_whole(path, text.str());
}

}  // namespace rheo::cli
