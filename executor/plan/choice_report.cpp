// SPDX-License-Identifier: Apache-2.0
#include "executor/plan/choice_report.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "executor/plan/plan_tables.hpp"
#include "executor/plan/text_table.hpp"

namespace rheo::inline v0 {

namespace {

/// What there is to say about a compared plan besides its numbers.
std::string remark_on(compared_plan const& one, bool chosen)
{
    std::vector<std::string> parts;
    if (chosen) {
        parts.emplace_back("chosen");
    }
    if (one.degraded) {
        parts.emplace_back("fewer pipelines than wanted");
    }
    if (one.recomputes) {
        parts.emplace_back("recomputes");
    }
    if (!one.instead.empty()) {
        parts.push_back("runs " + one.instead);
    }
    return one.error.empty() ? fmt::format("{}", fmt::join(parts, "; ")) : one.error;
}

}  // namespace

std::string format_limits(step_limits const& limits, std::string const& source)
{
    auto const binding = binding_limit(limits);
    std::vector<text_row> rows;
    auto const add = [&](step_limit limit, std::string_view name, seconds time) {
        rows.push_back({{std::string{name}, format_step(time)}, limit == binding ? "binds" : ""});
    };
    add(step_limit::waiting, "waiting in the pipeline", limits.without_waiting);
    add(step_limit::links, "time of messages and exchanges", limits.without_link_time);
    if (limits.without_memory_limit) {
        add(step_limit::memory, "plan.memory_mib", *limits.without_memory_limit);
    }
    return fmt::format("\nwhat binds (a step of {}, {}{})\n", format_step(limits.step), source,
                       binding == step_limit::computation ? "; computation: nothing else costs 1 %" : "") +
           to_text({{"without"}, {"a step", true}}, rows);
}

std::string format_comparison(std::span<compared_plan const> compared, std::string const& source)
{
    if (compared.empty()) {
        return {};
    }
    constexpr std::size_t most_rows = 8;
    std::vector<text_row> rows;
    std::ptrdiff_t failed = 0;  // of those that are not shown
    for (std::size_t i = 0; i < compared.size(); ++i) {
        auto const& one = compared[i];
        bool const made = one.error.empty();
        if (rows.size() == most_rows || (i > 0 && !one.instead.empty())) {
            failed += made ? 0 : 1;
            continue;
        }
        rows.push_back({{std::string{name_of(one.schedule)}, std::to_string(one.degree), made ? format_step(one.time) : "-",
                         made ? fmt::format("{:.2f} MiB", in_mebibytes(one.fullest)) : "-"},
                        remark_on(one, i == 0)});
    }
    auto text = fmt::format("\nplans compared (steps {})\n", source) +
                to_text({{"schedule"}, {"ranks share a stage", true}, {"a step", true}, {"fullest", true}}, rows);
    if (auto const left = compared.size() - rows.size(); left > 0) {
        text += fmt::format("  and {} more{} (--json lists all)\n", left, failed > 0 ? fmt::format(", {} of them without a plan", failed) : "");
    }
    return text;
}

}  // namespace rheo::inline v0
