#pragma once
// SPDX-License-Identifier: Apache-2.0

// The commands of `rheo`. Each returns the process's exit code, or throws an exit_error that carries it (rheo/units/exit_code.hpp).

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace rheo::cli {

struct train_options {
    std::string config;
    std::vector<std::string> settings;
    std::vector<std::string> data;
    std::vector<std::string> inject;
    std::string plan;
    std::string resume = "auto";
    double max_time_s = 0;
    int node_size = 0;  ///< 0: as plan.node_size says
    bool json = false;
    bool ended = false;  ///< only say how the run has ended
};

struct plan_options {
    std::string config;
    std::vector<std::string> settings;
    int ranks = 0;            ///< 0: as many as plan.pipelines names
    std::string schedule;     ///< all, a name or a file: compare instead
    double memory_mib = 0.0;  ///< of one rank: a cap of the comparison, and of templates
    int node_size = 1;        ///< ranks of a node
    bool json = false;
    std::string profile;  ///< of the layers, for the plan or the comparison; empty: as the config says
    std::string cluster;  ///< that is described; empty: as the config says
};

struct profile_options {
    std::string config;
    std::vector<std::string> settings;
    std::string out;      ///< empty: standard output
    int repeats = 5;      ///< microbatches that are measured, after one that is not
    bool clocks = false;  ///< times and energies at each clock instead, in a training
};

struct report_options {
    std::vector<std::string> folders;
    std::string out;            ///< empty: report.html in the folder of a run; runs.html in a folder of runs, or in the working directory
    std::string csv;            ///< file that gets a row per step instead; empty: none
    std::optional<int> port{};  ///< serves the page instead
    std::string bind = "127.0.0.1";
};

struct watch_options {
    std::string folder;
    double interval_s = 1;
    double timeout_s = 0;  ///< without a new record; 0: none
    bool once = false;     ///< shows the state and returns
    bool lines = false;    ///< also in a terminal
};

struct info_options {
    std::string cluster;                ///< file that gets the measured cluster; empty: what was found is shown
    std::vector<std::string> settings;  ///< of the config with which it is measured
    int repeats = 5;                    ///< of each measurement, the first not counted
    bool json = false;
};

struct export_options {
    std::string from;  ///< a checkpoint, or a run folder: its newest one
    std::string folder;
    std::string dtype = "fp32";  ///< of the weights: fp32, bf16, fp16
    double shard_mib = 4096;     ///< most that a file has of them
};

struct import_options {
    std::string from;  ///< a folder with config.json, and model.safetensors or its shards
    std::string run;   ///< the run folder that gets a checkpoint and a config
};

struct frontier_options {
    std::string profile;
    std::string schedule = "1f1b";
    int microbatches = 0;
    std::string fit = "hull";
    std::string unit;                   ///< empty: the fit's own
    std::string blocking_power;         ///< empty: as the profile says, else 83.64W
    std::string deadline;               ///< empty: that of each computation at its fastest clock
    std::string straggler;              ///< the time that the iteration takes whatever we do; empty: no straggler
    std::string switch_latency;         ///< empty: a change of a clock takes no time
    std::string dwell;                  ///< empty: a clock may change at every computation
    double input_gradient_share = 0.0;  ///< of a backward, where it was measured whole; 0: no halves are made
    std::string ranks;                  ///< from..to: templates and clocks for each number of survivors
    int failures = 1;                   ///< that are to be survived, with --ranks
    int min_ranks = 1;                  ///< of a pipeline, with --ranks
    std::string svg;
    std::string emit_header;
    bool json = false;
    bool csv = false;
};

struct reshard_command_options {
    std::string from;                 ///< T,P,D or a file with a layout
    std::string to;                   ///< the same
    std::string model = "gpt3-1.3b";  ///< a preset, or a config
    int layers = 0;                   ///< blocks of the model; 0: as it has
    int node_size = 1;                ///< ranks of a node
    std::string roles = "pinned";
    double memory_mib = 0.0;  ///< of one rank; 0: no limit
    double round_mib = 0.0;   ///< received by one rank in a round; 0: one round
    double bandwidth = 0.0;   ///< of a rank in each direction, GB/s; 0: no time is reckoned
    std::string svg;
    bool json = false;
    bool csv = false;
};

struct reshape_options {
    std::string folder;  ///< of the run
    std::vector<std::string> settings;
    double timeout_s = 600;  ///< 0: does not wait for the answer
};

struct convert_options {
    std::string from;    ///< a checkpoint, or a run folder: its newest one, or a folder of PyTorch's
    std::string out;     ///< the folder that is made
    std::string layout;  ///< T,P,D or a file with a layout
    std::string format = "checkpoint";
    std::string like;  ///< what says step, config and scales of a checkpoint of PyTorch's
    double memory_mib = 64.0;
    bool json = false;
};

struct checkpoint_command_options {
    std::string action;  ///< list, verify, prune, copy
    std::string from;    ///< run folder, or a checkpoint (verify, copy)
    std::string to;      ///< of copy: the run folder that gets it
    std::int64_t step = -1;
    int keep = 0;  ///< of prune
    bool leftovers = false;
    bool dry_run = false;
    int threads = 0;  ///< 0: one for each processor
    bool json = false;
};

/// How steps are played (simulate/network_options.hpp).
struct network_options {
    std::string network = "contended";
    std::string reduction = "slice-owner";
};

struct simulate_options {
    std::string config;                 ///< of a run; empty: steps are a table
    std::vector<std::string> settings;  ///< of the config
    int ranks = 0;                      ///< 0: as plan.pipelines says, or as many as the cluster has devices
    std::string cluster;                ///< a described cluster; empty: plan.cluster, else processes of one machine
    std::int64_t steps = 0;             ///< 0: train.steps
    double until_s = 0;                 ///< time at which the job ends at the latest; 0: none
    double mtbf_s = 0;                  ///< of a node, for losses at random; 0: none
    double repair_s = 0;                ///< after which a node returns; 0: never
    std::uint64_t seed = 1;             ///< of random losses
    network_options on;
    std::string csv;                  ///< file that gets a row per step; empty: none
    std::string page;                 ///< file that gets it as a page; empty: none
    std::string svg;                  ///< file that gets the curves of the page as a picture; empty: none
    std::string chrome;               ///< file that gets the steps shown as a Chrome trace; empty: none
    std::string steps_shown;          ///< as 40..43; empty: the first two
    std::string steps_table;          ///< CSV: throughput by number of nodes
    std::string model;                ///< of the table; empty: its only one
    std::string policies;             ///< CSV: what each policy takes
    std::vector<std::string> policy;  ///< of a table: replay, checkpoint, salvage; of a config: rheo, replay, checkpoint, spares:N; none: all, or rheo
    std::string faults;               ///< CSV: what happens to nodes or ranks
    bool json = false;
};

struct sweep_options {
    std::string config;
    std::vector<std::string> settings;  ///< of the config
    std::string cluster;                ///< a described cluster; empty: plan.cluster, else processes of one machine
    std::string grid;                   ///< what varies
    std::string csv;                    ///< file that gets a row per point; empty: none
    std::string svg;                    ///< file that gets a picture; empty: none
    network_options on;
    int threads = 0;        ///< 0: one for each processor
    bool goodput = false;   ///< with the loss of a rank at each point
    bool no_binds = false;  ///< without what binds
};

struct trace_import_options {
    std::string prefix;   ///< of the files PREFIX.0.et, PREFIX.1.et, ...
    std::string cluster;  ///< a described cluster
    std::string network = "contended";
    bool unshared = false;  ///< integer-ns: without other messages on the way
    int chunks = 0;         ///< of a collective; 0: as the network's rules have it
    std::string form;       ///< of collectives that have it; empty: each its own
    std::string chrome;     ///< file that gets a Chrome trace; empty: none
    std::string page;       ///< file that gets it as a page; empty: none
    bool json = false;
};

struct trace_options {
    std::string action;                ///< check, export, diff, import
    std::vector<std::string> from;     ///< prefixes; export: plan.json, or a run folder
    std::string config;                ///< export: of a plan
    std::string chakra;                ///< export: prefix of the files that are written
    std::optional<std::int64_t> step;  ///< export: of a run; none: its last whole step
    bool times = false;                ///< diff: compare them, too
    trace_import_options play{};       ///< import
};

struct analyze_options {
    std::vector<std::string> traces;   ///< a run folder, two to compare, a prefix, or files of PyTorch's profiler, one per rank
    std::vector<std::string> against;  ///< to compare with: a run folder, a prefix, or files
    std::string csv;                   ///< file that gets a row per rank; empty: none
    std::string page;                  ///< file that gets it as a page; empty: none
    bool json = false;
};

struct tokenize_command_options {
    std::vector<std::string> paths;  ///< a tokenizer and texts; with train texts alone
    std::string out;
    std::string field = "text";      ///< of JSON lines
    std::string document_token;      ///< behind each document; empty: the tokenizer's own, none: none
    bool no_special_tokens = false;  ///< around each document
    std::string invalid = "replace";
    std::int64_t shard_tokens = INT32_MAX;  ///< most of one file
    int threads = 0;                        ///< 0: one for each processor
    std::string train;                      ///< bpe, unigram, sentencepiece-bpe; empty: tokenize
    std::int64_t vocabulary = 0;            ///< with train
    bool json = false;
};

struct evaluate_options {
    std::string run;                 ///< a run folder, a checkpoint, or a Hugging Face folder
    std::vector<std::string> files;  ///< texts, token files or questions; none: the run's validation split
    std::string tokenizer;           ///< empty: bytes, or that of a Hugging Face folder
    std::string field = "text";      ///< of JSON lines
    std::int64_t window = 0;         ///< tokens; 0: the sequences of the training
    std::int64_t stride = 0;         ///< 0: the window
    bool choices = false;            ///< the files are questions
    int threads = 0;                 ///< 0: run.threads
    bool json = false;
};

struct generate_options {
    std::string run;
    std::string prompt;
    std::string prompts;         ///< a file; or the prompt
    std::string field = "text";  ///< of JSON lines
    std::string tokenizer;
    std::int64_t tokens = 64;
    double temperature = 1;
    int top_k = 0;
    double top_p = 1;
    std::uint64_t seed = 1;
    bool ignore_end = false;  ///< continues after the token that ends a document
    int batch = 16;           ///< most prompts at once
    bool no_cache = false;
    int threads = 0;  ///< 0: run.threads
    bool json = false;
};

struct reference_options {
    std::string folder;  ///< gets reference/, man/ and completion/
};

int train(train_options const& options);
int plan(plan_options const& options);
int profile(profile_options const& options);
int report(report_options const& options);
int watch(watch_options const& options);
int info(info_options const& options);
int frontier(frontier_options const& options);
int reshard(reshard_command_options const& options);
int reshape(reshape_options const& options);
int convert_checkpoint(convert_options const& options);
int manage_checkpoints(checkpoint_command_options const& options);
int simulate(simulate_options const& options);
int sweep(sweep_options const& options);
int export_weights(export_options const& options);
int import_weights(import_options const& options);
int chakra_traces(trace_options const& options);
int analyze_traces(analyze_options const& options);
int tokenize(tokenize_command_options const& options);
int evaluate_model(evaluate_options const& options);
int generate_text(generate_options const& options);
int write_reference(reference_options const& options);

}  // namespace rheo::cli
