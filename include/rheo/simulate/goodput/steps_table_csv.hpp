#pragma once
// SPDX-License-Identifier: Apache-2.0

// Throughput by number of nodes as text: a header line `model,samples_per_step,nodes,samples_per_s`, then a row per model and number of
// nodes, in any order, without holes between the fewest and the most. Lines that begin with # are comments. A table with a fault is
// rejected as a whole, with a sentence that names file and line.

#include <cmath>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "rheo/simulate/goodput/steps_table.hpp"
#include "rheo/units/csv.hpp"
#include "rheo/units/in_quotes.hpp"
#include "rheo/units/result.hpp"

namespace rheo::inline v0 {

struct named_steps_table {
    std::string model;
    steps_table table;

    friend bool operator==(named_steps_table const&, named_steps_table const&) = default;
};

namespace detail {

/// Takes lines of a CSV that mean something: no empty ones, no comments.
constexpr bool next_row(line_reader& lines, std::string_view& line)
{
    while (lines.next(line)) {
        if (auto const text = trimmed(line); !text.empty() && text.front() != '#') {
            return true;
        }
    }
    return false;
}

/// A sentence with the place.
template <class OnlyWhenCalled = void>
failure at_line(std::string_view name, std::size_t line, std::string const& why)
{
    return failure{std::string{name} + ", line " + std::to_string(line == 0 ? 1 : line) + ": " + why};
}

struct throughput_row {
    std::size_t line;
    double samples_per_step;
    double samples_per_s;
};

/// Reads the numbers of a row; returns what is wrong with it, empty when nothing is.
template <class OnlyWhenCalled = void>
std::string read_throughput(std::vector<std::string_view> const& cells, int& nodes, throughput_row& row)
{
    constexpr double most = 1e15;
    auto const is_amount = [](std::string_view cell, double& value) { return read_number(cell, value) && value > 0.0 && value <= most; };
    if (cells.size() != 4) {
        return std::to_string(cells.size()) + " cells, but 4 were expected: model,samples_per_step,nodes,samples_per_s";
    }
    if (cells[0].empty()) {
        return "the model has no name";
    }
    if (!is_amount(cells[1], row.samples_per_step)) {
        return "samples_per_step is " + in_quotes(cells[1]) + ", but a number above 0 and at most 10^15 was expected";
    }
    if (!read_number(cells[2], nodes) || nodes < 1 || nodes > (1 << 20)) {
        return "nodes is " + in_quotes(cells[2]) + ", but a whole number from 1 to 2^20 was expected";
    }
    if (!is_amount(cells[3], row.samples_per_s)) {
        return "samples_per_s is " + in_quotes(cells[3]) + ", but a number above 0 and at most 10^15 was expected";
    }
    if (auto const ms = std::floor(row.samples_per_step * 1000.0 / row.samples_per_s); ms < 1.0 || ms > static_cast<double>(longest_table_step.count)) {
        return "a step would take " + std::to_string(ms) + " ms, but 1 to 2^31 ms were expected";
    }
    return {};
}

/// The table of a model's rows, by number of nodes; a fault names the row.
template <class OnlyWhenCalled = void>
result<steps_table> table_of_rows(std::string const& model, std::map<int, throughput_row> const& rows, std::string_view name)
{
    steps_table table{rows.begin()->first, {}, rows.begin()->second.samples_per_step};
    for (auto const& [nodes, row] : rows) {
        if (auto const expected = table.fewest + static_cast<int>(table.times.size()); nodes != expected) {
            return at_line(
                name, row.line,
                in_quotes(model) + " has a row for " + std::to_string(nodes) + " nodes, but none for " + std::to_string(expected) + "; a table has no holes");
        }
        if (row.samples_per_step != table.samples_per_step) {
            return at_line(name, row.line, in_quotes(model) + " has other samples_per_step here than for " + std::to_string(table.fewest) + " nodes");
        }
        table.times.push_back({static_cast<std::int64_t>(std::floor(row.samples_per_step * 1000.0 / row.samples_per_s))});
    }
    return table;
}

}  // namespace detail

/// Reads the tables of all models, by name; `name` is the file's, for the sentence. Cost: linear, log of its rows.
template <class OnlyWhenCalled = void>
result<std::vector<named_steps_table>> parse_steps_tables(std::string_view text, std::string_view name)
{
    constexpr std::string_view columns = "model,samples_per_step,nodes,samples_per_s";
    line_reader lines{text};
    std::string_view line;
    if (!detail::next_row(lines, line) || cells_of(line) != cells_of(columns)) {
        return detail::at_line(name, lines.number, "a table of throughputs begins with the columns " + std::string{columns});
    }
    std::map<std::string, std::map<int, detail::throughput_row>, std::less<>> models;
    while (detail::next_row(lines, line)) {
        auto const cells = cells_of(line);
        int nodes = 0;
        detail::throughput_row row{lines.number, 0.0, 0.0};
        if (auto const fault = detail::read_throughput(cells, nodes, row); !fault.empty()) {
            return detail::at_line(name, lines.number, fault);
        }
        if (auto const [place, is_first] = models[std::string{cells[0]}].emplace(nodes, row); !is_first) {
            return detail::at_line(
                name, lines.number,
                in_quotes(cells[0]) + " has a row for " + std::to_string(nodes) + " nodes already, in line " + std::to_string(place->second.line));
        }
    }
    std::vector<named_steps_table> tables;
    for (auto const& [model, rows] : models) {
        auto table = detail::table_of_rows(model, rows, name);
        if (!table) {
            return failure{table.error()};
        }
        tables.push_back({model, *std::move(table)});
    }
    if (tables.empty()) {
        return detail::at_line(name, lines.number, "a table of throughputs has at least one row");
    }
    return tables;
}

}  // namespace rheo::inline v0
