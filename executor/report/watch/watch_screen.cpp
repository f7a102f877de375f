// SPDX-License-Identifier: Apache-2.0
#include "executor/report/watch/watch_screen.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <ctime>
#include <iterator>
#include <limits>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <utf8proc.h>

#include "executor/plan/amount_text.hpp"
#include "executor/plan/equal_pipelines.hpp"
#include "executor/plan/plan_tables.hpp"
#include "executor/records/record_text.hpp"
#include "executor/records/recovery_phases.hpp"

namespace rheo::inline v0 {

namespace {

/// The first character and its columns; none where there is no whole one that a terminal shows.
struct shown_character {
    std::size_t bytes = 1;
    std::optional<std::size_t> columns{};
};

shown_character first_character(std::string_view text)
{
    utf8proc_int32_t code = -1;
    auto const length = utf8proc_iterate(reinterpret_cast<utf8proc_uint8_t const*>(text.data()), static_cast<utf8proc_ssize_t>(text.size()), &code);
    if (length <= 0) {
        return {};
    }
    auto const category = utf8proc_category(code);
    bool const is_shown = category != UTF8PROC_CATEGORY_CC && category != UTF8PROC_CATEGORY_CF && category != UTF8PROC_CATEGORY_CS &&
                          category != UTF8PROC_CATEGORY_CO && category != UTF8PROC_CATEGORY_CN && category != UTF8PROC_CATEGORY_ZL &&
                          category != UTF8PROC_CATEGORY_ZP;
    return {static_cast<std::size_t>(length), is_shown ? std::optional{static_cast<std::size_t>(utf8proc_charwidth(code))} : std::nullopt};
}

constexpr std::array<std::string_view, 8> blocks{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
constexpr std::array<std::string_view, 8> letters{"_", ".", ":", "-", "=", "+", "*", "#"};

/// So many equal stretches of x, each with the mean of its values; NaN where one of them is not finite, none where there is none.
std::vector<std::optional<double>> means(std::map<std::int64_t, double> const& values, std::size_t count)
{
    struct sum {
        double of = 0;
        int values = 0;
    };
    std::vector<sum> sums(count);
    auto const first = values.begin()->first;
    auto const span = static_cast<double>(values.rbegin()->first - first + 1);
    for (auto const& [x, y] : values) {
        auto& into = sums[std::min(count - 1, static_cast<std::size_t>(static_cast<double>(x - first) / span * static_cast<double>(count)))];
        into.of += y;
        ++into.values;
    }
    std::vector<std::optional<double>> result;
    std::transform(sums.begin(), sums.end(), std::back_inserter(result),
                   [](sum const& s) { return s.values > 0 ? std::optional{s.of / s.values} : std::nullopt; });
    return result;
}

constexpr std::size_t name_columns = 12;

std::string named(std::string_view name, std::string_view text) { return fmt::format("{:<{}}{}", name, name_columns, text); }

std::string clock_text(double unix_time)
{
    auto const second = static_cast<std::time_t>(unix_time);
    std::tm parts{};
    ::localtime_r(&second, &parts);
    char text[16] = "";
    std::strftime(text, sizeof text, "%H:%M:%S", &parts);
    return text;
}

/// "step 12/400   3 %  #####-----  12 min left", the bar as wide as there is room.
std::string step_line(live_run const& run, screen_shape shape)
{
    auto text = fmt::format("step {}{}", run.steps, run.of_steps > 0 ? fmt::format("/{}", run.of_steps) : "");
    if (run.of_steps <= 0) {
        return text;
    }
    auto const share = std::clamp(static_cast<double>(run.steps) / static_cast<double>(run.of_steps), 0.0, 1.0);
    text += fmt::format("  {:.0f} %", std::floor(100.0 * share));
    auto const left = run.pace.left(run.of_steps - run.steps);
    auto const rest = run.is_over() || left <= seconds{} ? std::string{} : fmt::format("  {} left", rough_time_text(left.count));
    constexpr std::size_t least_bar = 8;
    constexpr std::size_t most_bar = 60;
    if (text.size() + rest.size() + 2 + least_bar <= shape.columns) {
        auto const width = std::min(most_bar, shape.columns - text.size() - rest.size() - 2);
        auto const full = static_cast<std::size_t>(share * static_cast<double>(width));
        text += "  ";
        for (std::size_t k = 0; k < width; ++k) {
            text += k < full ? (shape.unicode ? "█" : "#") : (shape.unicode ? "░" : "-");
        }
    }
    return text + rest;
}

std::string title_line(live_run const& run, double unix_time, std::size_t columns)
{
    auto right = phase_text(run);
    auto const silent = unix_time - run.newest;
    if (run.phase == run_phase::running && run.newest > 0 && silent > 60) {
        right += fmt::format(", last record {} ago", rough_time_text(silent));
    } else if (run.phase == run_phase::running && run.started > 0) {
        right += fmt::format(" for {}", rough_time_text(std::max(0.0, unix_time - run.started)));
    }
    right = shown_text(right, columns);
    auto const used = columns_of(right);
    if (used + 10 > columns) {
        return right;
    }
    auto left = shown_text(run.folder, columns - used - 2);
    return left + std::string(columns - used - columns_of(left), ' ') + right;
}

void add_loss(live_run const& run, screen_shape shape, std::vector<std::string>& lines)
{
    if (!run.last) {
        return;
    }
    auto const validation = run.validation ? fmt::format(", validation {} after step {}", loss_text(run.validation->loss), run.validation->step.value) : "";
    lines.push_back(named("loss", loss_text(run.last->loss) + validation + (run.last->skipped ? "; the step was skipped" : "")));
    if (run.losses.size() < 2 || shape.columns < name_columns + 24) {
        return;
    }
    auto least = std::numeric_limits<double>::infinity();
    auto most = -least;
    for (auto const& [step, loss] : run.losses) {
        least = std::isfinite(loss) ? std::min(least, loss) : least;
        most = std::isfinite(loss) ? std::max(most, loss) : most;
    }
    auto const range = least <= most ? fmt::format("  {:.3f} to {:.3f}", most, least) : "  not finite";
    auto const width = std::min(std::size_t{60}, shape.columns - name_columns - range.size());
    lines.push_back(named("", sparkline(run.losses, width, shape.unicode)) + range);
}

std::string group_text(std::vector<rank_id> const& group)
{
    std::vector<int> numbers;
    std::transform(group.begin(), group.end(), std::back_inserter(numbers), [](rank_id r) { return r.value; });
    return numbers.size() == 1 ? std::to_string(numbers[0]) : fmt::format("({})", format_numbers(numbers));
}

/// The groups of few pipelines, one line each: "0 | 1 | (2, 3)".
void add_groups(live_run const& run, std::vector<std::string>& lines)
{
    auto const& p = *run.plan_in_force;
    if (p.pipelines.size() > most_listed) {
        return;
    }
    for (std::size_t k = 0; k < p.pipelines.size(); ++k) {
        std::string stages;
        for (auto const& group : groups_of(p.pipelines[k])) {
            stages += (stages.empty() ? "" : " | ") + group_text(group);
        }
        auto const work = k < p.work.size() ? fmt::format("; {} microbatch{}", p.work[k].size(), p.work[k].size() == 1 ? "" : "es") : "";
        lines.push_back(named("", fmt::format("pipeline {}: ranks {}{}", k, stages, work)));
    }
}

std::string plan_text(live_run const& run)
{
    auto text = run.ranks > 0 ? std::to_string(run.ranks) : std::string{"not known"};
    if (run.plan_in_force && !run.plan_in_force->pipelines.empty()) {
        auto const& p = *run.plan_in_force;
        text += fmt::format(": {}, {}", format_sizes(p.pipelines), name_of(p.schedule));
        text += p.spares.empty() ? "" : fmt::format(", {} spare", p.spares.size());
    }
    return text;
}

std::string changes_text(live_run const& run)
{
    seconds sum;
    for (auto const& r : run.recoveries) {
        sum += total(r);
    }
    auto const recoveries = run.recoveries.empty() ? std::string{"none"} : fmt::format("{}, {} in all", run.recoveries.size(), time_text(sum.count));
    auto const last = run.last_checkpoint ? fmt::format("; last checkpoint of step {}", run.last_checkpoint->step.value) : std::string{"; no checkpoint yet"};
    auto const& safe = run.last_safe;
    bool const is_newer = safe && (!run.last_checkpoint || safe->step > run.last_checkpoint->step);
    return recoveries + last + (is_newer ? fmt::format(", on nodes of step {}", safe->step.value) : std::string{});
}

std::string energy_text(live_run const& run)
{
    auto const& last = *run.last;
    auto const tokens = static_cast<double>(std::max(std::int64_t{1}, last.tokens));
    bool const emulated = run.config && run.config->power.device == power_source::emulated;
    return fmt::format("{:.4g} J per step, {:.3g} J per token, {:.5g} J in all{}", last.energy.count, last.energy.count / tokens, run.energy.count,
                       emulated ? " (emulated)" : "");
}

}  // namespace

std::size_t columns_of(std::string_view text)
{
    std::size_t columns = 0;
    while (!text.empty()) {
        auto const c = first_character(text);
        columns += c.columns.value_or(1);
        text.remove_prefix(c.bytes);
    }
    return columns;
}

std::string shown_text(std::string_view text, std::size_t columns)
{
    constexpr std::string_view ellipsis = "...";
    std::string shown;
    std::size_t used = 0;
    std::size_t cut = 0;  // bytes of `shown` that leave room for the ellipsis
    while (!text.empty()) {
        auto const c = first_character(text);
        auto const width = c.columns.value_or(1);
        if (used + width > columns) {
            return shown.substr(0, cut) + std::string{ellipsis.substr(0, std::min(columns, ellipsis.size()))};
        }
        shown += c.columns ? text.substr(0, c.bytes) : "?";
        used += width;
        if (used + ellipsis.size() <= columns) {
            cut = shown.size();
        }
        text.remove_prefix(c.bytes);
    }
    return shown;
}

std::string sparkline(std::map<std::int64_t, double> const& values, std::size_t columns, bool unicode)
{
    if (values.empty() || columns == 0) {
        return {};
    }
    auto const span = static_cast<std::size_t>(values.rbegin()->first - values.begin()->first + 1);
    auto const bins = means(values, std::min(columns, span));
    auto least = std::numeric_limits<double>::infinity();
    auto most = -least;
    for (auto const& y : bins) {
        least = y && std::isfinite(*y) ? std::min(least, *y) : least;
        most = y && std::isfinite(*y) ? std::max(most, *y) : most;
    }
    std::string line;
    for (auto const& y : bins) {
        if (!y) {
            line += ' ';
        } else if (!std::isfinite(*y)) {
            line += '!';
        } else {
            auto const height = most > least ? (*y - least) / (most - least) : 0.0;
            auto const level = std::min(blocks.size() - 1, static_cast<std::size_t>(height * static_cast<double>(blocks.size())));
            line += (unicode ? blocks : letters)[level];
        }
    }
    return line;
}

std::string phase_text(live_run const& run)
{
    switch (run.phase) {
    case run_phase::absent: return "waiting for its records";
    case run_phase::starting: return "starting";
    case run_phase::running: return "running";
    case run_phase::ended: return fmt::format("ended: {} (exit code {})", run.end->message, run.end->exit_code);
    case run_phase::stopped: return "not running, and left no end: it was killed";
    }
    return {};
}

std::string event_text(live_event const& event) { return event.unix_time > 0 ? fmt::format("{}  {}", clock_text(event.unix_time), event.text) : event.text; }

std::vector<std::string> watch_screen(live_run const& run, screen_shape shape, double unix_time)
{
    std::vector<std::string> lines{title_line(run, unix_time, shape.columns)};
    if (run.phase != run_phase::absent) {
        lines.push_back(step_line(run, shape));
        lines.emplace_back();
        add_loss(run, shape, lines);
        if (run.last) {
            lines.push_back(named("gradient", fmt::format("norm {:.3g}, learning rate {:.3g}", run.last->gradient_norm, run.last->learning_rate)));
            auto const duration = run.last->duration.count;
            auto const share = mfu(*run.last) > 0 ? fmt::format(", mfu {:.3g} %", 100 * mfu(*run.last)) : std::string{};
            lines.push_back(
                named("speed", fmt::format("{} tokens/s, {} per step{}", count_text(duration > 0 ? static_cast<double>(run.last->tokens) / duration : 0),
                                           time_text(duration), share)));
        }
        if (run.fullest) {
            auto const& most = *run.fullest;
            lines.push_back(named("memory", fmt::format("at most {} on rank {}, planned {}: state and activations", memory_text(in_mebibytes(most.measured)),
                                                        most.rank.value, memory_text(in_mebibytes(most.planned)))));
        }
        if (run.last && run.last->energy.count > 0) {
            lines.push_back(named("energy", energy_text(run)));
        }
        lines.push_back(named("recoveries", changes_text(run)));
        lines.push_back(named("ranks", plan_text(run)));
        if (run.strange_lines > 0) {
            lines.push_back(named("records", fmt::format("{} line{} of metrics.jsonl cannot be read", run.strange_lines, run.strange_lines == 1 ? "" : "s")));
        }
        if (run.plan_in_force && lines.size() + run.plan_in_force->pipelines.size() + 4 <= shape.rows) {
            add_groups(run, lines);
        }
    }
    std::vector<live_event const*> shown;
    for (auto const& event : run.events) {
        shown.push_back(&event);
    }
    if (shape.rows > lines.size() + 1 && !shown.empty()) {
        lines.emplace_back();
        auto const room = shape.rows - lines.size();
        auto const first = shown.size() - std::min(room, shown.size());
        for (auto k = first; k < shown.size(); ++k) {
            lines.push_back(event_text(*shown[k]));
        }
    }
    if (lines.size() > shape.rows) {
        std::erase(lines, std::string{});
        lines.resize(std::min(lines.size(), shape.rows));
    }
    for (auto& line : lines) {
        line = shown_text(line, shape.columns);
    }
    return lines;
}

}  // namespace rheo::inline v0
