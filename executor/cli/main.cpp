// SPDX-License-Identifier: Apache-2.0
// `rheo`: reads the command line, starts a command, turns every refusal into one message and an exit code.

#include <chrono>
#include <exception>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "executor/cli/command_line.hpp"
#include "executor/cli/launch.hpp"
#include "executor/config/config.hpp"
#include "executor/data/data.hpp"
#include "rheo/units/exit_error.hpp"
#include "rheo/units/in_quotes.hpp"
#include "rheo/units/nearest_name.hpp"

namespace {

/// All ranks fail alike, and the lowest says it. The others wait for that: a launcher ends all ranks with the first that ends in an error.
int say(rheo::exit_code code, std::string const& message)
{
    if (rheo::cli::is_lowest_rank()) {
        fmt::print(stderr, "rheo: {}\n", message);
    } else {
        std::this_thread::sleep_for(std::chrono::seconds{1});
    }
    return rheo::number_of(code);
}

/// The message about a first word that is no command; empty when it is one, or an option, or not there.
std::string unknown_command(CLI::App const& app, int argc, char const* const* argv)
{
    std::string_view const word = argc > 1 ? argv[1] : "-";
    std::vector<std::string_view> known;
    for (auto const* const command : app.get_subcommands([](CLI::App const*) { return true; })) {
        if (command->get_name() == word) {
            return {};
        }
        if (!command->get_group().empty()) {  // not hidden
            known.push_back(command->get_name());
        }
    }
    return word.starts_with('-') ? std::string{}
                                 : fmt::format("{} is not a command; the nearest is {}", rheo::in_quotes(word), rheo::nearest_name(word.substr(0, 40), known));
}

}  // namespace

int main(int argc, char** argv)
{
    rheo::cli::command_line line;
    auto& app = line.app;
    auto const wrong_usage = [](std::string_view message) {
        return say(rheo::exit_code::usage, fmt::format("{}; rheo --help and rheo train --help say what there is", message));
    };
    if (auto const message = unknown_command(app, argc, argv); !message.empty()) {
        return wrong_usage(message);
    }
    try {
        app.parse(argc, argv);
    } catch (CLI::ParseError const& error) {
        if (error.get_exit_code() == 0) {  // help or version
            return rheo::cli::is_lowest_rank() ? app.exit(error) : 0;
        }
        return wrong_usage(error.what());
    }

    try {
        return line.chosen();
    } catch (std::exception const& error) {
        return say(rheo::exit_code_of(error), error.what());
    }
}
