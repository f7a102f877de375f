// SPDX-License-Identifier: Apache-2.0
#include "executor/cli/analyze/document.hpp"

#include <utility>

#include "executor/report/blocks.hpp"
#include "rheo/version.hpp"

namespace rheo::cli {

namespace {

std::string title_of(shown_table const& table)
{
    return table.title + (table.all > table.rows.size() ? fmt::format(" (the first {} of {})", table.rows.size(), table.all) : std::string{});
}

std::string title_of(finding const& found) { return fmt::format("{}, {:.1f} %", found.name, 100.0 * found.share); }

/// Lines of at most widest_line columns, broken between words; those after the first begin with the indent.
std::string wrapped(std::string_view text, std::size_t indent)
{
    std::string lines;
    std::size_t column = 0;
    while (!text.empty()) {
        auto const word = text.substr(0, text.find(' '));
        if (column > 0 && column + 1 + word.size() > widest_line) {
            lines += "\n" + std::string(indent, ' ');
            column = indent;
        } else if (column > 0) {
            lines += ' ';
            ++column;
        }
        lines += word;
        column += word.size();
        text.remove_prefix(std::min(word.size() + 1, text.size()));
    }
    return lines + "\n";
}

}  // namespace

std::string text_of(analysis_document const& document)
{
    auto text = document.answer + "\n";
    for (auto const& found : document.findings) {
        text += fmt::format("\n{}\n  {}\n{}", title_of(found), found.message, found.detail.empty() ? "" : "  " + found.detail + "\n");
        text += "  " + wrapped("change: " + found.advice, 2);
    }
    text += document.notes.empty() ? "" : "\n";
    for (auto const& note : document.notes) {
        text += note + "\n";
    }
    for (auto const& table : document.tables) {
        text += table.rows.empty() ? std::string{} : fmt::format("\n{}\n{}", title_of(table), to_text(table.columns, table.rows));
    }
    for (auto const& note : document.footnotes) {
        text += "\n" + note + "\n";
    }
    return text;
}

std::string page_of(analysis_document const& document, std::string_view title)
{
    auto sections = page_block::array();
    auto answer = page_block::array({note_block(document.answer)});
    for (auto const& found : document.findings) {
        facts_block facts;
        facts.add("what", found.message + (found.detail.empty() ? "" : "; " + found.detail));
        facts.add("change", found.advice);
        answer.push_back(note_block(title_of(found)));
        answer.push_back(facts.block());
    }
    for (auto const& note : document.notes) {
        answer.push_back(note_block(note));
    }
    sections.push_back(section("Answer", std::move(answer)));
    for (auto const& table : document.tables) {
        std::vector<table_column> columns;
        for (auto const& column : table.columns) {
            columns.push_back({column.title, column.right});
        }
        auto rows = page_block::array();
        for (auto const& row : table.rows) {
            auto cells = page_block::array();
            for (auto const& cell : row.cells) {
                cells.push_back(cell);
            }
            if (!row.rest.empty()) {
                cells.push_back(row.rest);
            }
            while (cells.size() < columns.size()) {
                cells.push_back("");
            }
            while (cells.size() > columns.size()) {
                columns.push_back({"", false});
            }
            rows.push_back(std::move(cells));
        }
        if (!table.rows.empty()) {
            sections.push_back(section(table.name, page_block::array({note_block(title_of(table)), table_block(columns, std::move(rows))})));
        }
    }
    auto last = page_block::array();
    for (auto const& note : document.footnotes) {
        last.push_back(note_block(note));
    }
    if (!last.empty()) {
        sections.push_back(section("Left out", std::move(last)));
    }
    return rheo::page_of(
        page_block{{"title", title}, {"sections", std::move(sections)}, {"footer", "rheo " RHEO_VERSION ". This page loads nothing from a network."}});
}

}  // namespace rheo::cli
