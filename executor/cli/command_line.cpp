// SPDX-License-Identifier: Apache-2.0
#include "executor/cli/command_line.hpp"

#include <string>
#include <vector>

#include "executor/cli/amount_checks.hpp"
#include "rheo/version.hpp"

namespace rheo::cli {

namespace {

void add_settings(CLI::App& command, std::string& config, std::vector<std::string>& settings)
{
    command.add_option("config", config, "Config of the run, in TOML.")->required()->type_name("FILE");
    command.add_option("--set", settings, "Set a config key, for example train.steps=5. Repeatable.")->expected(1)->take_all()->type_name("KEY=VALUE");
}

}  // namespace

command_line::command_line()
{
    app.set_version_flag("--version", "rheo " RHEO_VERSION, "Print the version and exit.");
    app.set_help_flag("-h,--help", "Print this help and exit.");
    app.require_subcommand(1);
    add_train();
    add_plan();
    add_profile();
    add_schedule();
    add_frontier();
    add_reshard();
    add_reshape();
    add_convert();
    add_checkpoint();
    add_simulate();
    add_sweep();
    add_records();
    add_trace();
    add_analyze();
    add_tokenize();
    add_evaluate();
    add_generate();
    add_reference();
}

void command_line::add_train()
{
    auto& command = *app.add_subcommand("train", "Train. Under mpirun on all its ranks, else on one.");
    command.callback([this] { chosen = [this] { return train(train_); }; });
    add_settings(command, train_.config, train_.settings);
    command.add_option("--data", train_.data, "Files or folders to train on. Overrides data.paths and data.sources.")->expected(1, 1 << 20)->type_name("PATH");
    command.add_option("--plan", train_.plan, "Plan to begin with, as rheo plan --json prints it.")->type_name("FILE");
    command
        .add_option("--resume", train_.resume,
                    "If the run folder has checkpoints: auto continues from the newest, never starts at step 0, fork continues in a new folder.")
        ->check(CLI::IsMember({"auto", "never", "fork"}))
        ->capture_default_str();
    command
        .add_option("--max-time", train_.max_time_s,
                    "Stop after the step in which this time has passed, with a checkpoint and exit code 75: 90, 90s, 30m, 12h, 7d.")
        ->transform(as_seconds());
    command.add_option("--node-size", train_.node_size, "Ranks per node. Overrides plan.node_size.")->check(CLI::Range(1, 1024));
    command.add_flag("--json", train_.json, "Print only the final report, as JSON.");
    command.add_flag("--ended", train_.ended, "Train nothing. Report how the run ended, with its exit code; 1 if it has not.");
    command
        .add_option("--inject", train_.inject, "Fault for tests: kill:rank@step[.attempt][:phase], drain:rank@step or slow:rank@from-to:factor. Repeatable.")
        ->expected(1)
        ->take_all()
        ->type_name("FAULT");
}

void command_line::add_plan()
{
    auto& command = *app.add_subcommand("plan", "Show what train would run on a number of ranks.");
    command.callback([this] { chosen = [this] { return plan(plan_); }; });
    add_settings(command, plan_.config, plan_.settings);
    command.add_option("--ranks", plan_.ranks, "Number of ranks. Default: the sum of plan.pipelines.")->check(CLI::Range(1, 1 << 16));
    command.add_option("--schedule", plan_.schedule, "Compare schedules for this model: all, a name, or a file in PyTorch's text form.")->type_name("NAME");
    command.add_option("--memory", plan_.memory_mib, "Memory limit per rank in MiB, for templates and compared schedules.")->check(is_mebibytes());
    command.add_option("--node-size", plan_.node_size, "Ranks per node: shows the loss of each node, allows stages of several devices.")
        ->check(CLI::Range(1, 64));
    command.add_option("--cluster", plan_.cluster, "Described cluster to plan for, in TOML. Overrides plan.cluster.")->type_name("FILE");
    command.add_option("--layer-profile", plan_.profile, "CSV with times of the layers (rheo profile). Overrides plan.layer_profile.")->type_name("FILE");
    command.add_flag("--json", plan_.json, "Print the plan as JSON.");
}

void command_line::add_profile()
{
    auto& command = *app.add_subcommand("profile", "Measure the model's layers on this machine.");
    command.callback([this] { chosen = [this] { return profile(profile_); }; });
    add_settings(command, profile_.config, profile_.settings);
    command.add_option("--out", profile_.out, "File to write. Default: standard output.")->type_name("FILE");
    command
        .add_flag("--clocks", profile_.clocks,
                  "Measure time and energy at each clock instead, in a training under mpirun: for rheo frontier and power.clock_profile.")
        ->needs("--out");
    command.add_option("--repeats", profile_.repeats, "Microbatches to measure. Each time is the least of them.")
        ->check(CLI::Range(1, 1000))
        ->capture_default_str();
}

void command_line::add_schedule()
{
    auto& command = *app.add_subcommand("schedule", "Show one schedule: drawing, figures, proof.");
    command.callback([this] { chosen = [this] { return schedule(schedule_); }; });
    command.add_option("name", schedule_.name, "Family (--list), or a file in PyTorch's text form.")->type_name("NAME");
    command.add_option("--ranks", schedule_.ranks, "Ranks of the pipeline.")->check(CLI::Range(1, 1 << 10));
    command.add_option("--microbatches", schedule_.microbatches, "Microbatches per step.")->check(CLI::Range(1, 1 << 16));
    command.add_option("--chunks", schedule_.chunks, "Stages per rank.")->check(CLI::Range(1, 1 << 6));
    command.add_option("--group", schedule_.group, "Microbatches through one chunk before the next.")->check(CLI::Range(1, 1 << 16));
    command.add_option("--slices", schedule_.slices, "Slices per microbatch, along its sequence.")->check(CLI::Range(1, 1 << 10));
    command.add_option("--format", schedule_.format, "Output format.")->check(CLI::IsMember({"text", "pytorch", "svg", "json"}))->capture_default_str();
    command.add_option("--costs", schedule_.costs, "Times of forward, input gradient and weight gradient of a full stage, and of a transfer.")
        ->type_name("F,I,W,TRANSFER")
        ->capture_default_str();
    command.add_flag("--list", schedule_.list, "List all families with their sources.");
}

void command_line::add_frontier()
{
    auto& command = *app.add_subcommand("frontier", "Plan clocks: the least energy of an iteration at every time.");
    command.callback([this] { chosen = [this] { return frontier(frontier_); }; });
    auto& options = frontier_;
    command.add_option("profile", options.profile, "CSV with columns stage,instruction,frequency,time,energy in MHz, s, J.")->required()->type_name("FILE");
    command.add_option("--schedule", options.schedule, "Schedule family.")->type_name("NAME")->capture_default_str();
    command.add_option("--microbatches", options.microbatches, "Microbatches per iteration.")->required()->check(CLI::Range(1, 1 << 14));
    command.add_option("--fit", options.fit, "Cost model: hull of the measurements, or the published exponential fit.")
        ->check(CLI::IsMember({"hull", "exponential"}))
        ->capture_default_str();
    command
        .add_option("--unit", options.unit,
                    "Unit of time, for example 0.1ms. Default: 1us for hull, 1ms for exponential. With --csv a row per unit, else per ms.")
        ->type_name("TIME");
    command.add_option("--blocking-power", options.blocking_power, "Power of a waiting device. Default: from the profile, else 83.64W.")->type_name("POWER");
    auto* const deadline =
        command.add_option("--deadline", options.deadline, "Time to choose a plan for, for example 3.1s. Default: each computation at its fastest clock.")
            ->type_name("TIME");
    command.add_option("--straggler", options.straggler, "As --deadline, but all ranks wait until then for another pipeline.")
        ->excludes(deadline)
        ->type_name("TIME");
    command.add_option("--switch-latency", options.switch_latency, "Time that a clock change takes, for example 5ms.")->type_name("TIME");
    command.add_option("--dwell", options.dwell, "Least time between clock changes, for example 100ms.")->type_name("TIME");
    command
        .add_option("--input-gradient-share", options.input_gradient_share,
                    "Share of the input gradient in a backward, if the profile has only whole backwards.")
        ->check(CLI::Range(0.01, 0.99));
    auto* const ranks =
        command.add_option("--ranks", options.ranks, "Choose templates and clocks for each number of ranks, as 8..16. The profile's stages are layers.")
            ->type_name("FROM..TO");
    command.add_option("--failures", options.failures, "With --ranks: failures to survive.")->check(CLI::Range(0, 64))->needs(ranks)->capture_default_str();
    command.add_option("--min-ranks", options.min_ranks, "With --ranks: fewest ranks per pipeline.")
        ->check(CLI::Range(1, 1 << 14))
        ->needs(ranks)
        ->capture_default_str();
    command.add_option("--svg", options.svg, "Write a picture of the frontier and of the pipeline at the chosen point.")->excludes(ranks)->type_name("FILE");
    command.add_option("--emit-header", options.emit_header, "Write the chosen plan as constexpr C++.")->excludes(ranks)->type_name("FILE");
    auto* const json = command.add_flag("--json", options.json, "Print the result as JSON.");
    command.add_flag("--csv", options.csv, "Print the frontier as time,energy rows.")->excludes(json)->excludes(ranks);
}

void command_line::add_reshard()
{
    auto& command = *app.add_subcommand("reshard", "Plan how state moves from one layout to another: fewest bytes, with bounds.");
    command.callback([this] { chosen = [this] { return reshard(reshard_); }; });
    auto& options = reshard_;
    command.add_option("--from", options.from, "Layout that is there: degrees of tensor, pipeline and data parallelism as 4,2,1, or a file (JSON).")
        ->required()
        ->type_name("T,P,D|FILE");
    command.add_option("--to", options.to, "Layout that is wanted.")->required()->type_name("T,P,D|FILE");
    command.add_option("--model", options.model, "Model of T,P,D: gpt3-125m to gpt3-175b, or the config of a run.")
        ->type_name("NAME|FILE")
        ->capture_default_str();
    command.add_option("--layers", options.layers, "Transformer blocks of the model. Default: as the model has.")->check(CLI::Range(1, 1 << 12));
    command.add_option("--node-size", options.node_size, "Ranks per node.")->check(CLI::Range(1, 1 << 10))->capture_default_str();
    command.add_option("--roles", options.roles, "Who takes which place of the wanted layout: the rank of its number, any rank, or whole nodes in any order.")
        ->check(CLI::IsMember({"pinned", "any", "nodes"}))
        ->capture_default_str();
    command.add_option("--memory", options.memory_mib, "Memory limit per rank in MiB while state moves.")->check(is_mebibytes());
    command.add_option("--round", options.round_mib, "Most that a rank receives in a round, in MiB. Default: one round.")->check(is_mebibytes());
    command.add_option("--bandwidth", options.bandwidth, "Bandwidth of a rank in each direction in GB/s, for the time.")->check(is_rate());
    command.add_option("--svg", options.svg, "Write a picture of who sends what to whom in each round.")->type_name("FILE");
    auto* const json = command.add_flag("--json", options.json, "Print the result as JSON.");
    command.add_flag("--csv", options.csv, "Print the transfers as CSV.")->excludes(json);
}

void command_line::add_reshape()
{
    auto& command = *app.add_subcommand("reshape", "Change the plan of a running job after its step, with the same bits.");
    command.callback([this] { chosen = [this] { return reshape(reshape_); }; });
    command.add_option("run", reshape_.folder, "Run folder of the job.")->required()->type_name("FOLDER");
    command.add_option("--set", reshape_.settings, "Set pipelines, tensor, layers, shares or spares of [plan], for example tensor=2. Repeatable.")
        ->required()
        ->expected(1)
        ->take_all()
        ->type_name("KEY=VALUE");
    command.add_option("--timeout", reshape_.timeout_s, "Seconds to wait for the job's answer; 0 does not wait.")
        ->check(CLI::Range(0.0, 1e6))
        ->capture_default_str();
}

void command_line::add_convert()
{
    auto& command = *app.add_subcommand("convert", "Write a checkpoint in another layout, or in PyTorch's form, without loading it.");
    command.callback([this] { chosen = [this] { return convert_checkpoint(convert_); }; });
    auto& options = convert_;
    command.add_option("from", options.from, "Checkpoint, run folder (its newest one), or PyTorch distributed checkpoint (safetensors).")
        ->required()
        ->type_name("CHECKPOINT");
    command.add_option("out", options.out, "Folder to make.")->required()->type_name("OUT");
    command.add_option("--layout", options.layout, "Layout to write: degrees of tensor, pipeline and data parallelism as 4,2,1, or a file (JSON).")
        ->required()
        ->type_name("T,P,D|FILE");
    command.add_option("--format", options.format, "Form to write: checkpoint, or dcp, PyTorch's distributed checkpoint in safetensors.")
        ->check(CLI::IsMember({"checkpoint", "dcp"}))
        ->capture_default_str();
    command.add_option("--like", options.like, "For a PyTorch checkpoint without rheo.json: the checkpoint that says its step, config and scales.")
        ->type_name("CHECKPOINT");
    command.add_option("--memory", options.memory_mib, "Most MiB of values in memory at once.")->check(is_mebibytes())->capture_default_str();
    command.add_flag("--json", options.json, "Print the result as JSON.");
}

void command_line::add_records()
{
    auto& report_command = *app.add_subcommand("report", "Write one HTML page about a run, or one that compares several.");
    report_command.callback([this] { chosen = [this] { return report(report_); }; });
    report_command.add_option("run", report_.folders, "Run folder. Several, or a folder of runs, are compared.")->required()->type_name("FOLDER");
    report_command.add_option("--out", report_.out, "File to write. Default: report.html in the run folder; runs.html for several.")->type_name("FILE");
    auto* const csv =
        report_command.add_option("--csv", report_.csv, "Write a row per step of one run to this file instead.")->type_name("FILE")->excludes("--out");
    report_command.add_option("--serve", report_.port, "Serve the page at this port instead, made at each request, until Ctrl-C. 0 = a free port.")
        ->check(CLI::Range(0, 65535))
        ->excludes("--out")
        ->excludes(csv)
        ->type_name("PORT");
    report_command.add_option("--bind", report_.bind, "Address to serve at. 0.0.0.0 lets every host in that can reach the port.")
        ->needs("--serve")
        ->capture_default_str()
        ->type_name("ADDRESS");

    auto& watch_command = *app.add_subcommand("watch", "Follow a job in the terminal until it ends, and return its exit code.");
    watch_command.callback([this] { chosen = [this] { return watch(watch_); }; });
    watch_command.add_option("run", watch_.folder, "Run folder, which the job may still have to make.")->required()->type_name("FOLDER");
    watch_command.add_flag("--once", watch_.once, "Print the state and return.");
    watch_command.add_flag("--lines", watch_.lines, "Print a line for each piece of news, also in a terminal.");
    watch_command.add_option("--interval", watch_.interval_s, "Time between two looks. Default: 1 s.")
        ->transform(as_seconds())
        ->check(CLI::Range(0.01, 86400.0));
    watch_command.add_option("--timeout", watch_.timeout_s, "Return 1 when there was no new record for this time. Default: wait.")->transform(as_seconds());

    auto& export_command = *app.add_subcommand("export", "Write the weights of a checkpoint as a folder that transformers loads.");
    export_command.callback([this] { chosen = [this] { return export_weights(export_); }; });
    export_command.add_option("from", export_.from, "Checkpoint, or a run folder: its newest one.")->required()->type_name("FOLDER");
    export_command.add_option("folder", export_.folder, "Folder to write.")->required()->type_name("FOLDER");
    export_command.add_option("--dtype", export_.dtype, "Type of the weights.")->check(CLI::IsMember({"fp32", "bf16", "fp16"}))->capture_default_str();
    export_command.add_option("--shard-size", export_.shard_mib, "Most MiB of weights in one file; more files have an index.")
        ->check(is_mebibytes())
        ->capture_default_str();

    auto& import_command = *app.add_subcommand("import", "Make a checkpoint of weights that transformers saved, and a config that trains on.");
    import_command.callback([this] { chosen = [this] { return import_weights(import_); }; });
    import_command.add_option("from", import_.from, "Folder with config.json, and model.safetensors or its shards and their index.")
        ->required()
        ->type_name("FOLDER");
    import_command.add_option("run", import_.run, "Run folder that gets the checkpoint and config.toml.")->required()->type_name("FOLDER");

    auto& info_command = *app.add_subcommand("info", "Show what was compiled in and what was found.");
    info_command.callback([this] { chosen = [this] { return info(info_); }; });
    info_command
        .add_option("--cluster", info_.cluster,
                    "Measure this machine, under mpirun with its ranks, and write it as a described cluster: devices, and messages inside and between nodes.")
        ->type_name("FILE");
    info_command.add_option("--set", info_.settings, "With --cluster: set a config key, for example run.device=cuda. Repeatable.")
        ->expected(1)
        ->take_all()
        ->type_name("KEY=VALUE");
    info_command.add_option("--repeats", info_.repeats, "With --cluster: measurements of each kind; the least counts.")
        ->check(CLI::Range(1, 1000))
        ->capture_default_str();
    info_command.add_flag("--json", info_.json, "Print it as JSON.");
}

void command_line::add_trace()
{
    auto& command =
        *app.add_subcommand("trace", "Export, compare and check Chakra execution traces, or play traces from any tool on the network of a cluster.");
    auto& play = trace_.play;
    command.callback([this] { chosen = [this] { return chakra_traces(trace_); }; });
    command
        .add_option("action", trace_.action,
                    "check: whether every consumer takes the traces, and whether they end or hang. export: write the step of a plan, or of a run with its "
                    "times. diff: the first difference of two sets. import: how long they take on the network of a cluster.")
        ->required()
        ->check(CLI::IsMember({"check", "export", "diff", "import"}))
        ->type_name("ACTION");
    command
        .add_option(
            "from", trace_.from,
            "check, diff, import: PREFIX of the traces PREFIX.0.et, PREFIX.1.et, ... and PREFIX.groups.json, if there are groups. export: plan.json or a run "
            "folder.")
        ->required()
        ->type_name("PATH");
    command.add_option("--chakra", trace_.chakra, "export: prefix of the files to write.")->type_name("PREFIX");
    command.add_option("--config", trace_.config, "export: the config of a plan.")->type_name("FILE");
    command.add_option("--step", trace_.step, "export: step of a run. Default: its last whole one.")->check(CLI::NonNegativeNumber);
    command.add_flag("--times", trace_.times, "diff: compare times, too.");
    command.add_option("--cluster", play.cluster, "import: described cluster, in TOML. Rank r runs on its device r.")->type_name("FILE");
    command
        .add_option(
            "--network", play.network,
            "import: messages share links, or have them for themselves, and all that is ready goes at once; integer-ns: whole nanoseconds, by the rules of "
            "ASTRA-sim, one message or collective of a rank at once.")
        ->check(CLI::IsMember({"contended", "free", "integer-ns"}))
        ->capture_default_str();
    command.add_flag("--unshared", play.unshared, "import: with integer-ns, messages do not share links.");
    command.add_option("--chunks", play.chunks, "import: chunks of a collective, one under way at once. Default: 4 with integer-ns, else 1.")
        ->check(CLI::Range(1, 1 << 20));
    command
        .add_option(
            "--form", play.form,
            "import: form of the collectives that have it. Default: ring; direct for all-to-all; tree for broadcast and barrier. With integer-ns only in "
            "groups of all ranks.")
        ->check(CLI::IsMember({"ring", "direct", "halving_doubling", "tree"}));
    command.add_option("--chrome", play.chrome, "import: write the time lines of all ranks as a Chrome trace.")->type_name("FILE");
    command.add_option("--page", play.page, "import: write the result as one HTML page.")->type_name("FILE");
    command.add_flag("--json", play.json, "import: print the result as JSON.");
}

void command_line::add_analyze()
{
    auto& command = *app.add_subcommand("analyze", "Say what the ranks of a job wait for, from the traces of a run or of PyTorch's profiler.");
    command.callback([this] { chosen = [this] { return analyze_traces(analyze_); }; });
    command
        .add_option(
            "traces", analyze_.traces,
            "A run folder, two of them to compare, plan.json and a run, the prefix of Chakra execution traces with times, or traces of PyTorch's profiler in JSON, one per rank. "
            "Files may be packed by gzip.")
        ->required()
        ->type_name("RUN|PREFIX|FILE");
    command.add_option("--against", analyze_.against, "Compare with this run, these traces or this prefix: what the others have more of.")
        ->expected(1, 1 << 20)
        ->type_name("RUN|PREFIX|FILE");
    command.add_option("--csv", analyze_.csv, "Write a row per rank.")->type_name("FILE");
    command.add_option("--page", analyze_.page, "Write the analysis as one HTML page.")->type_name("FILE");
    command.add_flag("--json", analyze_.json, "Print the analysis as JSON.");
}

void command_line::add_reference()
{
    auto& command = *app.add_subcommand("reference", "Write reference pages, man pages and shell completion.")->group("");  // for the build
    command.callback([this] { chosen = [this] { return write_reference(reference_); }; });
    command.add_option("folder", reference_.folder, "Folder to write.")->required()->type_name("FOLDER");
}

}  // namespace rheo::cli
