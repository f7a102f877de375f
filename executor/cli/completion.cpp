// SPDX-License-Identifier: Apache-2.0
#include "executor/cli/completion.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace rheo::cli {

namespace {

std::string keys_of(std::vector<config_row> const& rows)
{
    std::string keys;
    for (auto const& row : rows) {
        keys += (keys.empty() ? "" : " ") + row.key + "=";
    }
    return keys;
}

}  // namespace

std::string replaced(std::string text, std::string_view pattern, std::string_view with)
{
    for (std::size_t at = 0; (at = text.find(pattern, at)) != text.npos; at += with.size()) {
        text.replace(at, pattern.size(), with);
    }
    return text;
}

std::string bash_completion(std::vector<command_row> const& commands, std::vector<config_row> const& rows)
{
    std::string names;
    std::string values;
    std::string options;
    for (auto const& command : commands) {
        names += (names.empty() ? "" : " ") + command.name;
        std::string own = "--help";
        for (auto const& option : command.options) {
            if (option.argument) {
                continue;
            }
            own += " " + option.name;
            if (!option.words.empty()) {
                values += fmt::format("    '{} {}') COMPREPLY=($(compgen -W '{}' -- \"$cur\")); return ;;\n", command.name, option.name,
                                      fmt::join(option.words, " "));
            } else if (!option.value.empty() && !option.path && option.name != "--set") {
                values += fmt::format("    '{} {}') return ;;\n", command.name, option.name);
            }
        }
        options += fmt::format("    {}) options='{}' ;;\n", command.name, own);
    }
    return fmt::format(R"(# bash completion for rheo; written by `rheo reference`
_rheo() {{
  local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD - 1]}} options=
  if ((COMP_CWORD == 1)); then
    COMPREPLY=($(compgen -W '{} --help --version' -- "$cur"))
    return
  fi
  if [[ $prev == --set ]]; then
    COMPREPLY=($(compgen -W '{}' -- "$cur"))
    compopt -o nospace
    return
  fi
  case "${{COMP_WORDS[1]}} $prev" in
{}  esac
  case ${{COMP_WORDS[1]}} in
{}  esac
  if [[ $cur == -* ]]; then
    COMPREPLY=($(compgen -W "$options" -- "$cur"))
  else
    COMPREPLY=($(compgen -f -- "$cur"))
    compopt -o filenames
  fi
}}
complete -F _rheo rheo
)",
                       names, keys_of(rows), values, options);
}

std::string zsh_completion(std::vector<command_row> const& commands, std::vector<config_row> const& rows)
{
    auto const quoted = [](std::string const& text) { return replaced(replaced(replaced(replaced(text, "'", "'\\''"), "[", "\\["), "]", "\\]"), ":", "\\:"); };
    std::string names;
    std::string cases;
    for (auto const& command : commands) {
        names += fmt::format("    '{}:{}'\n", command.name, quoted(command.meaning));
        cases += fmt::format("    {})\n      _arguments \\\n", command.name);
        for (auto const& option : command.options) {
            auto const action = option.name == "--set"  ? "(" + keys_of(rows) + ")"
                                : !option.words.empty() ? fmt::format("({})", fmt::join(option.words, " "))
                                : option.path           ? std::string{"_files"}
                                                        : std::string{};
            if (option.argument) {
                cases += fmt::format("        ':{}:_files' \\\n", option.name);
            } else if (option.value.empty()) {
                cases += fmt::format("        '{}[{}]' \\\n", option.name, quoted(option.meaning));
            } else {
                cases +=
                    fmt::format("        '{}{}[{}]:{}:{}' \\\n", option.repeats ? "*" : "", option.name, quoted(option.meaning), quoted(option.value), action);
            }
        }
        cases += "        '--help[Print help and exit.]'\n      ;;\n";
    }
    return fmt::format(R"(#compdef rheo
# zsh completion for rheo; written by `rheo reference`
_rheo() {{
  local -a commands
  commands=(
{}  )
  if ((CURRENT == 2)); then
    _describe command commands
    return
  fi
  local command=$words[2]
  shift words
  ((CURRENT--))
  case $command in
{}  esac
}}
_rheo "$@"
)",
                       names, cases);
}

std::string fish_completion(std::vector<command_row> const& commands, std::vector<config_row> const& rows)
{
    auto const quoted = [](std::string const& text) { return "'" + replaced(replaced(text, "\\", "\\\\"), "'", "\\'") + "'"; };
    std::string text = "# fish completion for rheo; written by `rheo reference`\n";
    for (auto const& command : commands) {
        text += fmt::format("complete -c rheo -f -n __fish_use_subcommand -a {} -d {}\n", command.name, quoted(command.meaning));
        for (auto const& option : command.options) {
            auto const on = fmt::format("complete -c rheo -n '__fish_seen_subcommand_from {}'", command.name);
            if (option.argument) {
                continue;
            }
            auto const words = option.name == "--set" ? keys_of(rows) : fmt::format("{}", fmt::join(option.words, " "));
            auto const takes = option.value.empty() ? std::string{} : option.path ? std::string{" -r -F"} : words.empty() ? " -x" : " -x -a " + quoted(words);
            text += fmt::format("{} -l {}{} -d {}\n", on, option.name.substr(2), takes, quoted(option.meaning));
        }
    }
    return text;
}

}  // namespace rheo::cli
