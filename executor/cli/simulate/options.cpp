// SPDX-License-Identifier: Apache-2.0
#include "executor/cli/amount_checks.hpp"
#include "executor/cli/command_line.hpp"
#include "executor/cli/simulate/network_options.hpp"
#include "executor/cli/simulate/simulate.hpp"
#include "rheo/units/exit_error.hpp"

namespace rheo::cli {

int simulate(simulate_options const& options)
{
    if (options.config.empty() == options.steps_table.empty()) {
        throw exit_error{exit_code::usage, "simulate: expected the config of a run, or --steps-table with --policies and --faults"};
    }
    return options.config.empty() ? simulate_steps_table(options) : simulate_config(options);
}

void command_line::add_simulate()
{
    auto& command = *app.add_subcommand("simulate", "Simulate a job with losses on a described cluster: goodput, energy, and where the time went.");
    command.callback([this] { chosen = [this] { return simulate(simulate_); }; });
    auto& options = simulate_;
    command.add_option("config", options.config, "Config of the run, in TOML. Without it: --steps-table.")->type_name("FILE");
    command.add_option("--set", options.settings, "Set a config key, for example train.steps=5. Repeatable.")->expected(1)->take_all()->type_name("KEY=VALUE");
    command.add_option("--ranks", options.ranks, "Ranks; rank r runs on device r. Default: the sum of plan.pipelines, else the devices of the cluster.")
        ->check(CLI::Range(1, 1 << 16));
    command.add_option("--cluster", options.cluster, "Described cluster, in TOML. Default: plan.cluster, else processes of one machine.")->type_name("FILE");
    command.add_option("--steps", options.steps, "Steps of the job. Default: train.steps.")->check(CLI::PositiveNumber);
    command.add_option("--until", options.until_s, "End the job after this time: 90, 90s, 30m, 12h, 7d.")->transform(as_seconds());
    command
        .add_option("--faults", options.faults,
                    "CSV with time_s,event,what,value: lose, return, drain, slow, link, well of rank:5 or node:3. Or rows time in ms,add or remove,node.")
        ->type_name("FILE");
    command.add_option("--mtbf", options.mtbf_s, "Mean time between losses of a node, at random: 400h.")->transform(as_seconds());
    command.add_option("--repair", options.repair_s, "Time after which a lost node returns, with --mtbf. Default: never.")->transform(as_seconds());
    command.add_option("--seed", options.seed, "Seed of the random losses.")->capture_default_str();
    command
        .add_option(
            "--policy", options.policy,
            "What the job does after a loss; several are set side by side. Of a config: rheo, replay (repeats the step), checkpoint (begins again from the newest "
            "one), spares:N (rheo with N ranks that wait). Of a table: replay, checkpoint, salvage. Default: rheo; all that --policies has.")
        ->expected(1)
        ->take_all()
        ->type_name("POLICY");
    add_network_options(command, options.on);
    command.add_option("--steps-table", options.steps_table, "CSV with columns model,samples_per_step,nodes,samples_per_s: steps are a table.")
        ->type_name("FILE");
    command.add_option("--model", options.model, "Model of the table. Default: its only one.")->type_name("NAME");
    command.add_option("--policies", options.policies, "CSV with columns model,policy,configure_ms,checkpoint_ms,checkpoint_every_steps, for a table.")
        ->type_name("FILE");
    command.add_option("--csv", options.csv, "Write a row for each step: policy,step,begin_s,time_s,ranks,joules.")->type_name("FILE");
    command
        .add_option("--page", options.page,
                    "Write a page: tokens per second, accounts and power over time, a step before and one after the first loss, changes of the members.")
        ->type_name("FILE");
    command.add_option("--svg", options.svg, "Write the curves of the page as a picture.")->type_name("FILE");
    auto* const chrome = command.add_option("--chrome", options.chrome, "Write the steps of --steps-shown as a Chrome trace, with the times of the job.");
    chrome->type_name("FILE");
    command.add_option("--steps-shown", options.steps_shown, "Steps of the trace, from 0 on: 40..43, or 40. Default: the first two.")
        ->needs(chrome)
        ->type_name("FIRST..LAST");
    command.add_flag("--json", options.json, "Print the accounts as JSON.");
}

}  // namespace rheo::cli
