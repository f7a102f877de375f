// SPDX-License-Identifier: Apache-2.0
// `rheo`: reads the command line, starts a command, turns every refusal into one sentence and an exit code.

#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "executor/cli/commands.hpp"
#include "executor/cli/launch.hpp"
#include "executor/cli/schedule.hpp"
#include "executor/config/config.hpp"
#include "executor/data/data.hpp"
#include "rheo/units/in_quotes.hpp"
#include "rheo/units/nearest_name.hpp"

namespace {

int say(int exit_code, std::string const& message)
{
    if (rheo::cli::is_lowest_rank()) {
        fmt::print(stderr, "rheo: {}\n", message);
    }
    return exit_code;
}

/// The sentence about a first word that is no command; empty when it is one, or an option, or not there.
std::string unknown_command(CLI::App const& app, int argc, char const* const* argv)
{
    std::string_view const word = argc > 1 ? argv[1] : "-";
    std::vector<std::string_view> known;
    for (auto const* const command : app.get_subcommands([](CLI::App const*) { return true; })) {
        known.push_back(command->get_name());
        if (known.back() == word) {
            return {};
        }
    }
    return word.starts_with('-') ? std::string{}
                                 : fmt::format("{} is no command; the nearest is {}", rheo::in_quotes(word), rheo::nearest_name(word.substr(0, 40), known));
}

void add_settings(CLI::App& command, std::string& config, std::vector<std::string>& settings)
{
    command.add_option("config", config, "the run, in TOML")->required();
    command.add_option("--set", settings, "key=value: a key of the config, for example train.steps=5; may be given several times")->expected(1)->take_all();
}

void add_frontier(CLI::App& command, rheo::cli::frontier_options& options)
{
    command.add_option("profile", options.profile, "CSV: stage,instruction,frequency,time,energy in MHz, s, J")->required();
    command.add_option("--schedule", options.schedule, "the family of the program");
    command.add_option("--microbatches", options.microbatches, "of an iteration")->required()->check(CLI::Range(1, 1 << 14));
    command.add_option("--fit", options.fit, "hull of what was measured, or the published exponential fit")->check(CLI::IsMember({"hull", "exponential"}));
    command.add_option(
        "--unit", options.unit,
        "of time, for example 0.1ms; 1us for the hull, 1ms for the exponential fit. With --csv, a row for each; without it, one for each millisecond");
    command.add_option("--blocking-power", options.blocking_power,
                       "what a device draws while it waits, for example 83.64W; without it what the profile says, else that");
    auto* const deadline = command.add_option("--deadline", options.deadline,
                                              "the time to choose a plan for, for example 3.1s; without it that of each computation at its fastest clock");
    command.add_option("--straggler", options.straggler, "the same where everybody waits until then for somebody else")->excludes(deadline);
    command.add_option("--switch-latency", options.switch_latency, "how long a change of the clock takes, for example 5ms");
    command.add_option("--dwell", options.dwell, "how long a clock is kept at least, for example 100ms");
    command.add_option("--input-gradient-share", options.input_gradient_share, "of a backward, for schedules that split it when the profile does not")
        ->check(CLI::Range(0.01, 0.99));
    auto* const ranks =
        command.add_option("--ranks", options.ranks,
                           "from..to: templates and clocks for each number of ranks that is left; the profile's stages are the layers they are cut from");
    command.add_option("--failures", options.failures, "with --ranks: losses to survive")->check(CLI::Range(0, 64))->needs(ranks);
    command.add_option("--min-ranks", options.min_ranks, "with --ranks: of a pipeline")->check(CLI::Range(1, 1 << 14))->needs(ranks);
    command.add_option("--svg", options.svg, "write a picture of the frontier and of the pipeline at the chosen point")->excludes(ranks);
    command.add_option("--emit-header", options.emit_header, "write the chosen plan as constexpr C++")->excludes(ranks);
    auto* const json = command.add_flag("--json", options.json, "the result as JSON");
    command.add_flag("--csv", options.csv, "the frontier as time,energy rows")->excludes(json)->excludes(ranks);
}

}  // namespace

int main(int argc, char** argv)
{
    CLI::App app{"rheo trains models in pipelines that flow around failures."};
    app.set_version_flag("--version", "rheo " RHEO_VERSION);
    app.require_subcommand(1);

    rheo::cli::train_options train;
    auto& train_command = *app.add_subcommand("train", "train; under mpirun on all its ranks");
    add_settings(train_command, train.config, train.settings);
    train_command.add_option("--data", train.data, "files or folders to train on, in place of data.paths")->expected(1, 1 << 20);
    train_command
        .add_option("--inject", train.inject,
                    "a fault for tests, kill:rank@step[.attempt][:phase], drain:rank@step or slow:rank@from-to:factor; may be given several times")
        ->expected(1)
        ->take_all();
    train_command.add_option("--plan", train.plan, "plan.json to begin with, as rheo plan --json prints it");
    train_command
        .add_option("--resume", train.resume,
                    "when the run folder has checkpoints: auto (go on from the newest), never, or fork (go on from it in a new folder)")
        ->check(CLI::IsMember({"auto", "never", "fork"}));
    train_command
        .add_option(
            "--max-time", train.max_time_s,
            "stop after the step in which so much time has passed, with a checkpoint and exit code 75: 90, 90s, 30m, 12h; SIGUSR1 to mpirun or to a rank does so at once")
        ->transform(CLI::AsNumberWithUnit(std::map<std::string, double>{{"s", 1.0}, {"m", 60.0}, {"h", 3600.0}}));
    train_command.add_option("--node-size", train.node_size, "ranks of a node, in place of plan.node_size: copies of a layer go to different nodes")
        ->check(CLI::Range(1, 1024));
    train_command.add_flag("--json", train.json, "the final report as JSON on standard output, nothing else");

    train_command.add_flag("--ended", train.ended, "train nothing: say how the run that this command starts has ended, with its exit code; 1 when it has not");

    rheo::cli::plan_options plan;
    auto& plan_command = *app.add_subcommand("plan", "show what train would run on a number of ranks");
    add_settings(plan_command, plan.config, plan.settings);
    plan_command.add_option("--ranks", plan.ranks, "how many; without it the sum of plan.pipelines")->check(CLI::Range(1, 1 << 16));
    plan_command.add_option("--schedule", plan.schedule, "compare for this model: all, one by name, or a file in PyTorch's text form");
    plan_command.add_option("--memory", plan.memory_mib, "MiB per rank that a compared schedule or a template may take")->check(CLI::PositiveNumber);
    plan_command.add_option("--node-size", plan.node_size, "ranks of a node: what the loss of each node leads to, and stages of several devices")
        ->check(CLI::Range(1, 64));
    plan_command.add_option("--layer-profile", plan.profile,
                            "times of the layers from a file (CSV), for all planning (as plan.layer_profile) or the comparison, instead of the model's");
    plan_command.add_flag("--json", plan.json, "the plan as JSON");

    rheo::cli::profile_options profile;
    auto& profile_command = *app.add_subcommand("profile", "measure the model's layers on this machine, for rheo plan --layer-profile");
    add_settings(profile_command, profile.config, profile.settings);
    profile_command.add_option("--out", profile.out, "the file to write, in place of standard output");
    profile_command
        .add_flag("--clocks", profile.clocks,
                  "times and energies at each clock instead, in a training under mpirun: a profile for rheo frontier and power.clock_profile")
        ->needs("--out");
    profile_command.add_option("--repeats", profile.repeats, "microbatches that are measured; each time is the least of them")->check(CLI::Range(1, 1000));

    rheo::cli::report_options report;
    auto& report_command = *app.add_subcommand("report", "one page about a run, for a browser without a network");
    report_command.add_option("run", report.folder, "the run's folder")->required();
    report_command.add_option("--out", report.out, "the file to write, in place of report.html in the folder");

    rheo::cli::schedule_command_options schedule;
    auto& schedule_command = add_schedule_command(app, schedule);

    rheo::cli::info_options info;
    auto& info_command = *app.add_subcommand("info", "show what was compiled in and what was found");
    info_command.add_flag("--json", info.json, "as JSON");

    rheo::cli::export_options out;
    auto& export_command = *app.add_subcommand("export", "weights of a checkpoint as model.safetensors and config.json");
    export_command.add_option("from", out.from, "a checkpoint, or a run's folder: its newest one")->required();
    export_command.add_option("folder", out.folder, "the folder to write")->required();

    rheo::cli::import_options in;
    auto& import_command = *app.add_subcommand("import", "a GPT-2 from model.safetensors and config.json, as a checkpoint to train from");
    import_command.add_option("from", in.from, "the folder that has them")->required();
    import_command.add_option("run", in.run, "the run's folder, which gets the checkpoint")->required();

    rheo::cli::frontier_options frontier;
    auto& frontier_command = *app.add_subcommand("frontier", "plan clocks: the least energy of an iteration at every time");
    add_frontier(frontier_command, frontier);

    auto const wrong_usage = [](std::string_view message) { return say(2, fmt::format("{}; rheo --help and rheo train --help say what there is", message)); };
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
        if (profile_command.parsed()) {
            return rheo::cli::profile(profile);
        }
        if (schedule_command.parsed()) {
            return rheo::cli::schedule(schedule);
        }
        if (export_command.parsed()) {
            return rheo::cli::export_weights(out);
        }
        if (import_command.parsed()) {
            return rheo::cli::import_weights(in);
        }
        if (frontier_command.parsed()) {
            return rheo::cli::frontier(frontier);
        }
        return train_command.parsed()    ? rheo::cli::train(train)
               : plan_command.parsed()   ? rheo::cli::plan(plan)
               : report_command.parsed() ? rheo::cli::report(report)
                                         : rheo::cli::info(info);
    } catch (rheo::cli::command_error const& error) {
        return say(error.exit_code, error.what());
    } catch (rheo::config_error const& error) {
        return say(2, error.what());
    } catch (rheo::data_error const& error) {
        return say(4, error.what());
    } catch (std::exception const& error) {
        return say(5, error.what());
    }
}
