// SPDX-License-Identifier: Apache-2.0
// `rheo reference FOLDER`, a command for the build: everything that names commands, options and config keys, written from the
// command line's own description and the one list of keys. So none of it can lack one.

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "executor/cli/command_line.hpp"
#include "executor/cli/completion.hpp"
#include "executor/config/reference.hpp"
#include "rheo/units/exit_error.hpp"
#include "rheo/version.hpp"

namespace rheo::cli {

namespace {

std::vector<std::string> split(std::string_view text, std::string_view separator)
{
    std::vector<std::string> parts;
    for (std::size_t begin = 0; begin <= text.size();) {
        auto const end = std::min(text.find(separator, begin), text.size());
        parts.emplace_back(text.substr(begin, end - begin));
        begin = end + separator.size();
    }
    return parts;
}

std::vector<std::string> names_of(std::set<CLI::Option*> const& options)
{
    std::vector<std::string> names;
    for (auto const* option : options) {
        names.push_back(option->get_name());
    }
    std::sort(names.begin(), names.end());  // the set is in the order of addresses
    return names;
}

option_row row_of(CLI::Option const& option)
{
    option_row row{.name = option.get_positional() ? option.get_name(true) : "--" + option.get_lnames().front(), .meaning = option.get_description()};
    row.argument = option.get_positional();
    row.required = option.get_required();
    row.repeats = option.get_expected_max() > 1 || option.get_multi_option_policy() == CLI::MultiOptionPolicy::TakeAll;
    row.initial = option.get_default_str();
    row.needs = names_of(option.get_needs());
    row.excludes = names_of(option.get_excludes());
    if (option.get_type_size() == 0) {
        row.repeats = false;
        return row;  // a flag
    }
    // CLI11 joins the type and what its checks say with colons: "INT:INT in [1 - 64]", "TEXT:{a,b}".
    auto const parts = split(option.get_type_name(), ":");
    row.value = parts.front() == "INT" ? "N" : parts.front() == "FLOAT" ? "X" : parts.front();
    row.path = row.value == "FILE" || row.value == "FOLDER" || row.value == "PATH";
    for (auto const& check : parts) {
        if (check.starts_with('{')) {
            row.words = split(std::string_view{check}.substr(1, check.size() - 2), ",");
            row.value = fmt::format("{}", fmt::join(row.words, "|"));
        } else if (auto const open = check.find(" in ["); open != check.npos) {
            row.range = replaced(check.substr(open + 5, check.size() - open - 6), " - ", " to ");
        } else if (check == "POSITIVE") {
            row.range = "> 0";
        } else if (check.find("[TIME]") != check.npos) {
            row.value = "TIME";
        }
    }
    return row;
}

std::vector<command_row> commands_of(CLI::App const& app)
{
    std::vector<command_row> rows;
    for (auto const* command : app.get_subcommands([](CLI::App const* sub) { return !sub->get_group().empty(); })) {
        command_row row{command->get_name(), command->get_description(), {}};
        for (auto const* option : command->get_options()) {
            if (option != command->get_help_ptr()) {
                row.options.push_back(row_of(*option));
            }
        }
        std::stable_partition(row.options.begin(), row.options.end(), [](option_row const& option) { return option.argument; });
        rows.push_back(std::move(row));
    }
    return rows;
}

std::string shown(option_row const& option)
{
    if (option.argument) {
        return replaced(option.name, "_", "-");
    }
    return option.value.empty() ? option.name : option.name + " " + option.value;
}

std::string synopsis(command_row const& command)
{
    std::string line = "rheo " + command.name;
    for (auto const& option : command.options) {
        if (option.argument || option.required) {
            line += option.required ? " " + shown(option) : " [" + shown(option) + "]";
        }
    }
    return line + " [options]";
}

/// The meaning with what else there is to know: default, range, needs.
std::string explained(option_row const& option)
{
    auto text = option.meaning;
    if (!option.range.empty()) {
        text += fmt::format(" Range: {}.", option.range);
    }
    if (!option.initial.empty()) {
        text += fmt::format(" Default: {}.", option.initial);
    }
    if (option.required && !option.argument) {
        text += " Required.";
    }
    if (!option.needs.empty()) {
        text += fmt::format(" Needs {}.", fmt::join(option.needs, ", "));
    }
    if (!option.excludes.empty()) {
        text += fmt::format(" Not with {}.", fmt::join(option.excludes, ", "));
    }
    return text;
}

constexpr std::string_view generated = "<!-- Written by `rheo reference`; to change it, change the code and build the target reference. -->\n";

/// Text in a cell of a Markdown table.
std::string cell(std::string const& text) { return replaced(replaced(replaced(text, "|", "\\|"), "<", "&lt;"), "*", "\\*"); }
/// Bars inside of backticks are read differently by GitHub and by Python-Markdown.
std::string code(std::string const& text)
{
    return text.empty() ? "" : text.find('|') == text.npos ? "`" + text + "`" : "<code>" + replaced(text, "|", "&#124;") + "</code>";
}

std::string config_page(std::vector<config_row> const& rows)
{
    auto page = fmt::format(
        "# Config keys\n\n{}\nA config is a TOML file. It begins with `schema = 1`; every other key has a default. An unknown key is an "
        "error that names the nearest known one.\n`--set KEY=VALUE` overrides a key. The effective config is in `config.toml` of the "
        "run folder.\n",
        generated);
    std::string table;
    for (auto const& row : rows) {
        if (auto name = row.key.substr(0, row.key.find('.')); name != table) {
            table = std::move(name);
            page += fmt::format("\n## {}\n\n| Key | Type | Default | Range | Meaning |\n| --- | --- | --- | --- | --- |\n", table);
        }
        page += fmt::format("| `{}` | {} | {} | {} | {} |\n", row.key, row.type, code(row.value), cell(row.range), cell(row.meaning));
    }
    return page;
}

std::string command_page(std::vector<command_row> const& commands)
{
    auto page = fmt::format("# Command line\n\n{}\n| Command | |\n| --- | --- |\n", generated);
    for (auto const& command : commands) {
        page += fmt::format("| [`rheo {0}`](#rheo-{0}) | {1} |\n", command.name, cell(command.meaning));
    }
    page += "\n`rheo --help` and `rheo COMMAND --help` print the same; `rheo --version` prints the version. [Exit codes](exit-codes.md).\n";
    for (auto const& command : commands) {
        page +=
            fmt::format("\n## rheo {}\n\n{}\n\n```text\n{}\n```\n\n| Option | Meaning |\n| --- | --- |\n", command.name, command.meaning, synopsis(command));
        for (auto const& option : command.options) {
            page += fmt::format("| {} | {} |\n", code(shown(option)), cell(explained(option)));
        }
    }
    return page;
}

std::string exit_code_page()
{
    auto page = fmt::format("# Exit codes\n\n{}\n| Code | Meaning |\n| --- | --- |\n", generated);
    for (auto const& [code, text] : exit_codes) {
        page += fmt::format("| {} | {} |\n", number_of(code), text);
    }
    return page +
           "\n`rheo train ... --ended` returns the code of the run that the command would start, and 1 if that run has not ended.\n"
           "`rheo watch` returns the code with which the run ended, 1 where that is not known, and 130 after Ctrl-C.\n\n"
           "An error names the file or key, what is wrong, what was expected, and what to do. Under `mpirun` one rank prints it.\n";
}

/// Text for roff.
std::string roff(std::string const& text)
{
    auto escaped = replaced(replaced(text, "\\", "\\e"), "-", "\\-");
    return escaped.starts_with('.') || escaped.starts_with('\'') ? "\\&" + escaped : escaped;
}

std::string man_header(std::string const& name, int section, std::string const& meaning)
{
    auto upper = name;
    std::transform(upper.begin(), upper.end(), upper.begin(), [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; });
    return fmt::format(".TH {} {} \"\" \"rheo {}\" \"rheo manual\"\n.SH NAME\n{} \\- {}\n", roff(upper), section, RHEO_VERSION, roff(name), roff(meaning));
}

std::string exit_status()
{
    std::string section = ".SH EXIT STATUS\n";
    for (auto const& [code, text] : exit_codes) {
        section += fmt::format(".TP\n{}\n{}\n", number_of(code), roff(replaced(std::string{text}, "`", "")));
    }
    return section;
}

std::string man_of(command_row const& command)
{
    auto page = man_header("rheo-" + command.name, 1, command.meaning);
    page += fmt::format(".SH SYNOPSIS\n.B {}\n.SH OPTIONS\n", roff(synopsis(command)));
    for (auto const& option : command.options) {
        page += fmt::format(".TP\n.B {}\n{}\n", roff(shown(option)), roff(explained(option)));
    }
    return page + exit_status() + ".SH SEE ALSO\n.BR rheo (1),\n.BR rheo\\-config (5)\n";
}

std::string main_man(std::vector<command_row> const& commands)
{
    auto page = man_header("rheo", 1, "train models in pipelines that survive the loss of ranks");
    page += ".SH SYNOPSIS\n.B rheo\n.I command\n[options]\n.SH COMMANDS\n";
    for (auto const& command : commands) {
        page += fmt::format(".TP\n.BR rheo\\-{} (1)\n{}\n", roff(command.name), roff(command.meaning));
    }
    return page + exit_status();
}

std::string config_man(std::vector<config_row> const& rows)
{
    auto page = man_header("rheo-config", 5, "config of a rheo run, in TOML");
    page += ".SH DESCRIPTION\nA config begins with\n.BR \"schema = 1\" .\nEvery other key has a default.\n.SH KEYS\n";
    for (auto const& row : rows) {
        page += fmt::format(".TP\n.B {}\n{} ({}, default {}{})\n", roff(row.key), roff(row.meaning), row.type, roff(row.value),
                            row.range.empty() ? "" : roff("; " + row.range));
    }
    return page + ".SH SEE ALSO\n.BR rheo\\-train (1)\n";
}

void write(std::filesystem::path const& file, std::string const& text)
{
    std::filesystem::create_directories(file.parent_path());
    std::ofstream out{file, std::ios::binary};
    out << text;
    if (!out.flush()) {
        throw exit_error{exit_code::environment, fmt::format("{}: cannot be written", file.string())};
    }
}

}  // namespace

int write_reference(reference_options const& options)
{
    command_line const line;
    auto const commands = commands_of(line.app);
    auto const rows = config_rows();
    std::filesystem::path const folder{options.folder};
    write(folder / "reference" / "config.md", config_page(rows));
    write(folder / "reference" / "cli.md", command_page(commands));
    write(folder / "reference" / "exit-codes.md", exit_code_page());
    write(folder / "man" / "rheo.1", main_man(commands));
    write(folder / "man" / "rheo-config.5", config_man(rows));
    for (auto const& command : commands) {
        write(folder / "man" / ("rheo-" + command.name + ".1"), man_of(command));
    }
    write(folder / "completion" / "rheo.bash", bash_completion(commands, rows));
    write(folder / "completion" / "_rheo", zsh_completion(commands, rows));
    write(folder / "completion" / "rheo.fish", fish_completion(commands, rows));
    return 0;
}

}  // namespace rheo::cli
