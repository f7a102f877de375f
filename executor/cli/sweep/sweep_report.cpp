// SPDX-License-Identifier: Apache-2.0
#include "executor/cli/sweep/sweep_report.hpp"

#include <algorithm>
#include <map>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "executor/plan/amount_text.hpp"
#include "executor/plan/text_table.hpp"
#include "rheo/trace/svg.hpp"

namespace rheo::cli {

namespace {

constexpr std::size_t most_rows_of_text = 15;

/// A key without its table, where that says enough.
std::string short_name(std::string const& key)
{
    if (key == "pipelines.count") {
        return "pipelines";
    }
    for (std::string_view const prefix : {"cluster.level.", "cluster.", "pipelines.", "plan.", "train."}) {
        if (key.starts_with(prefix)) {
            return key.substr(prefix.size());
        }
    }
    return key;
}

std::string value_text(std::string value)
{
    value.erase(std::remove(value.begin(), value.end(), '"'), value.end());
    return value;
}

std::vector<sweep_row> best_first(std::vector<sweep_row> const& rows)
{
    std::vector<sweep_row> best;
    std::copy_if(rows.begin(), rows.end(), std::back_inserter(best), [](sweep_row const& row) { return row.is_feasible; });
    std::stable_sort(best.begin(), best.end(), [](sweep_row const& a, sweep_row const& b) { return a.tokens_s > b.tokens_s; });
    return best;
}

/// Most frequent first.
std::vector<std::pair<std::string, int>> bindings_of(std::vector<sweep_row> const& rows)
{
    std::map<std::string, int> counted;
    for (auto const& row : rows) {
        if (row.is_feasible && !row.binds.empty()) {
            ++counted[row.binds];
        }
    }
    std::vector<std::pair<std::string, int>> sorted{counted.begin(), counted.end()};
    std::stable_sort(sorted.begin(), sorted.end(), [](auto const& a, auto const& b) { return a.second > b.second; });
    return sorted;
}

/// From 0 to some more than the largest value.
struct axis {
    double most;

    double step() const { return axis_step(most, 4.0); }
};

std::string tick_text(double at) { return at < 1e4 ? fmt::format("{:g}", at) : at < 1e7 ? fmt::format("{:g} k", at / 1e3) : fmt::format("{:g} M", at / 1e6); }

std::string point_text(sweep_grid const& grid, std::int64_t point)
{
    auto const at = values_at(grid, point);
    std::string text;
    for (std::size_t k = 0; k < at.size(); ++k) {
        text += fmt::format("{}{} {}", k == 0 ? "" : ", ", short_name(grid.axes[k].key), value_text(grid.axes[k].values[at[k]]));
    }
    return text;
}

}  // namespace

std::string to_text(sweep_report const& report)
{
    auto const& grid = *report.grid;
    auto const best = best_first(*report.rows);
    auto const shown = std::min(best.size(), most_rows_of_text);
    auto const has = [&](auto const& is) { return std::any_of(best.begin(), best.end(), is); };
    bool const energy = has([](sweep_row const& row) { return row.j_per_token > 0.0; });
    bool const goodput = has([](sweep_row const& row) { return row.goodput >= 0.0; });
    bool const binds = has([](sweep_row const& row) { return !row.binds.empty(); });
    auto text = fmt::format("{}: {} points, {} of them feasible\n", report.title, report.rows->size(), best.size());
    if (best.empty()) {
        return text + "No point is feasible; the CSV says why each is not.\n";
    }
    std::vector<text_column> columns;
    for (auto const& axis : grid.axes) {
        columns.push_back({short_name(axis.key), true});
    }
    for (auto const* const title : {"ranks", "step", "tokens/s"}) {
        columns.push_back({title, true});
    }
    if (energy) {
        columns.push_back({"J/token", true});
    }
    for (auto const* const title : {"memory", "bubble", "messages", "reductions"}) {
        columns.push_back({title, true});
    }
    if (goodput) {
        columns.push_back({"goodput", true});
    }
    if (binds) {
        columns.push_back({"binds"});
    }
    std::vector<text_row> lines;
    for (std::size_t i = 0; i < shown; ++i) {
        auto const& row = best[i];
        auto& cells = lines.emplace_back().cells;
        auto const at = values_at(grid, row.point);
        for (std::size_t k = 0; k < at.size(); ++k) {
            cells.push_back(value_text(grid.axes[k].values[at[k]]));
        }
        cells.insert(cells.end(), {fmt::format("{}", row.ranks), time_text(row.step_s), count_text(row.tokens_s)});
        if (energy) {
            cells.push_back(fmt::format("{:.4g}", row.j_per_token));
        }
        cells.push_back(memory_text(row.peak_mib));
        for (auto const part : {row.bubble, row.exposed_messages, row.exposed_reductions}) {
            cells.push_back(fmt::format("{:.1f} %", 100.0 * part));
        }
        if (goodput) {
            cells.push_back(fmt::format("{:.2f} %", 100.0 * row.goodput));
        }
        if (binds) {
            cells.push_back(row.binds);
        }
    }
    text += shown < best.size() ? fmt::format("\nThe {} with most tokens per second:\n", shown) : "\n";
    text += to_text(columns, lines);
    if (binds) {
        std::vector<std::string> counts;
        for (auto const& [name, count] : bindings_of(*report.rows)) {
            counts.push_back(fmt::format("{} {}", name, count));
        }
        text += fmt::format("\nWhat binds, in points: {}\n", fmt::join(counts, ", "));
    }
    return text;
}

std::string picture_of(sweep_report const& report)
{
    constexpr double width = 760.0;
    constexpr double height = 440.0;
    constexpr double left = 80.0;
    constexpr double right = 160.0;
    constexpr double top = 40.0;
    constexpr double bottom = 50.0;
    constexpr std::string_view colors[] = {"#2f6db3", "#d9822b", "#3f9b5f", "#b0413e", "#7c5cad", "#8a8a8a", "#c2a200", "#4aa8b8"};
    auto const best = best_first(*report.rows);
    bool const energy = std::any_of(best.begin(), best.end(), [](sweep_row const& row) { return row.j_per_token > 0.0; });
    auto const across = [&](sweep_row const& row) { return energy ? 1.0 / row.j_per_token : static_cast<double>(row.ranks); };
    axis x{1e-12};
    axis y{1e-12};
    for (auto const& row : best) {
        x.most = std::max(x.most, across(row));
        y.most = std::max(y.most, row.tokens_s);
    }
    auto const place = [&](double at_x, double at_y) -> svg_point {
        return {{left + at_x / (1.05 * x.most) * (width - left - right)}, {height - bottom - at_y / (1.05 * y.most) * (height - top - bottom)}};
    };
    svg_picture<> picture{{{width}, {height}}};
    picture.box({{0}, {0}}, {{width}, {height}}, "#ffffff");
    picture.text({{left}, {20}}, report.title);
    for (double at = 0.0; at <= y.most; at += y.step()) {
        picture.line(place(0.0, at), place(1.05 * x.most, at), "#e4e4e4");
        picture.text({{left - 6}, {place(0, at).y.count + 4}}, tick_text(at), svg_anchor::end);
    }
    for (double at = 0.0; at <= x.most; at += x.step()) {
        picture.text({{place(at, 0).x.count}, {height - bottom + 16}}, tick_text(at), svg_anchor::middle);
    }
    picture.text({{left}, {34}}, "tokens per second");
    picture.text({{width - right}, {height - bottom + 34}}, energy ? "tokens per joule" : "ranks", svg_anchor::end);
    auto sorted = best;  // what makes more tokens per second makes fewer per joule, or takes more ranks
    std::stable_sort(sorted.begin(), sorted.end(),
                     [&](sweep_row const& a, sweep_row const& b) { return energy ? across(a) > across(b) : across(a) < across(b); });
    std::vector<svg_point> front;
    double highest = -1.0;
    for (auto const& row : sorted) {
        if (row.tokens_s > highest) {
            highest = row.tokens_s;
            front.push_back(place(across(row), row.tokens_s));
        }
    }
    if (front.size() > 1) {
        picture.curve(front, "#bbbbbb");
    }
    auto const names = bindings_of(*report.rows);
    auto const color_of = [&](std::string const& name) {
        auto const found = std::find_if(names.begin(), names.end(), [&](auto const& n) { return n.first == name; });
        return colors[static_cast<std::size_t>(found - names.begin()) % std::size(colors)];
    };
    for (auto const& row : best) {
        auto const at = place(across(row), row.tokens_s);
        picture.box({{at.x.count - 3}, {at.y.count - 3}}, {{at.x.count + 3}, {at.y.count + 3}}, color_of(row.binds),
                    fmt::format("{}: {} tokens/s, step {}{}", point_text(*report.grid, row.point), count_text(row.tokens_s), time_text(row.step_s),
                                row.binds.empty() ? "" : ", binds: " + row.binds));
    }
    auto line = top + 10.0;
    for (auto const& [name, count] : names) {
        picture.box({{width - right + 16}, {line - 8}}, {{width - right + 24}, {line}}, color_of(name));
        picture.text({{width - right + 30}, {line}}, fmt::format("{} ({})", name, count));
        line += 18.0;
    }
    return picture.str();
}

}  // namespace rheo::cli
