#pragma once
// SPDX-License-Identifier: Apache-2.0

// The configuration of one training run, with its defaults. The command line reads it from TOML
// (`schema = 1`, one table per struct below, keys of the same names); a program with its own model fills
// it in. What decides the bits of the result is the numerics fingerprint (executor/train/fingerprint.hpp); the
// rest (plan, threads, records) may differ between runs that end with the same bits.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "executor/config/config_words.hpp"
#include "rheo/energy/clocks/straggler.hpp"
#include "rheo/model/model.hpp"
#include "rheo/planner/recompute_policy.hpp"
#include "rheo/planner/tensor_degrees.hpp"
#include "rheo/schedule/core/any_schedule.hpp"
#include "rheo/tensor/dtype.hpp"
#include "rheo/tensor/shape.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

/// A file or folder, and its weight among all.
struct weighted_path {
    double weight = 1;
    std::string path{};

    friend bool operator==(weighted_path const&, weighted_path const&) = default;
};

struct data_config {
    std::vector<std::string> paths{};       ///< files or folders; empty: the sources, or the C++ standard library headers
    std::vector<weighted_path> sources{};   ///< in place of paths
    std::vector<std::string> validation{};  ///< files or folders
    double validation_fraction = 0.05;      ///< of the tokens of each source, taken from the end, where `validation` is empty
    data_order order = data_order::random;
    int document_token = -1;  ///< ends a document; sequences stay within one. -1: they may span documents
};

struct train_config {
    std::int64_t steps = 100;
    std::uint64_t seed = 1;
    int microbatches = 8;                ///< per step
    microbatch_shape microbatch{4, 64};  ///< train.slices among it
    int shards = 1;                      ///< of the model's width
    std::int64_t eval_every = 0;         ///< steps; 0: only after the last one
    int eval_microbatches = 8;
    stored_numbers dtype = stored_numbers::float32;
    stored_numbers state = stored_numbers::float32;  ///< of the optimizer: parameters and moments
    sum_integers sums = sum_integers::int64;         ///< of gradients: int64, one scale per tensor, or int32, one per row in half the memory
    bool skip_not_finite = false;                    ///< true: a step with a gradient that is not finite is committed as skipped
};

/// A learning rate from a step on; "STEP: RATE" in files.
struct rate_from {
    std::int64_t step;
    double rate;

    friend constexpr bool operator==(rate_from, rate_from) = default;
};

struct optimizer_config {
    double learning_rate = 1e-3;
    double final_learning_rate = 1e-4;  ///< at the end of the decay
    std::int64_t warmup_steps = 10;
    rate_schedule schedule = rate_schedule::cosine;
    std::int64_t stable_steps = 0;   ///< of wsd: at the whole rate, after the warm-up
    std::int64_t decay_steps = 0;    ///< of wsd: after these
    std::vector<rate_from> table{};  ///< ascending; between steps the rate is on the line through both
    double beta1 = 0.9;
    double beta2 = 0.95;
    double epsilon = 1e-8;
    double weight_decay = 0.1;
    double clip_norm = 1.0;  ///< global norm of the mean gradient; 0: no clipping
};

/// 1F1B.
any_schedule default_schedule();

struct plan_config {
    any_schedule schedule = default_schedule();  ///< a family, see rheo schedule --list, a file in PyTorch's text form, or a type of one's own
    std::vector<int> pipelines;                  ///< ranks of each pipeline, e.g. {2, 3}; empty: chosen by the planner
    tensor_degrees tensor{};                     ///< ranks that share each stage
    std::vector<int> layers{};                   ///< of each stage, pipelines one after the other, e.g. {2, 6, 3, 3, 2}; empty: cut by the planner
    std::vector<int> shares;                     ///< microbatches of each pipeline, e.g. {3, 5}; empty: by speed
    int failures = 1;                            ///< f: at least f + 1 pipelines are kept whenever possible
    int min_ranks = 1;                           ///< n0: fewest ranks of a pipeline
    recompute_policy recompute = recompute_policy::never;
    bool optimizer_shards = false;       ///< f + 1 ranks keep each moment instead of all that hold its parameter
    bytes memory{};                      ///< of a rank, for state and activations: a plan that needs more is refused; 0: unlimited
    bytes change_memory{};               ///< of a rank, for state while a running plan changes; 0: `memory`
    int spares = 0;                      ///< ranks that wait until one is lost or leaves
    std::vector<std::string> changes{};  ///< of the plan while the job runs, e.g. "100: tensor=2 pipelines=[4,4]" (executor/config/plan_change.hpp)
    seconds mtbf =
        hours(10'000);  ///< mean time between losses of one rank: what a longer step costs against copies after a loss (rheo/pipeline/recovery_price.hpp)
    std::string layer_profile{};  ///< a file, see rheo profile, with times of the layers; empty: times as modelled
    std::string cluster{};        ///< a described cluster (docs/reference/cluster.md) that plans are made for; empty: processes of one machine
    int node_size = 1;            ///< rank / node_size is a rank's node: copies of a layer are kept on different nodes
};

/// When a rank counts as hung and is ended, which makes it a loss like any other.
struct watchdog_config {
    double factor = 20;   ///< deadline of an operation: times the longest one of this rank so far; 0: none
    seconds least{60};    ///< and never less than this
    seconds start{600};   ///< how long ranks may take to find each other, in MPI_Init and until all have begun; 0: without end
    seconds stopped{10};  ///< a process that has stood still that long is killed by others of its host; 0: never
};

/// The newest checkpoint is where the same command resumes.
struct checkpoint_config {
    std::int64_t every_steps = 0;    ///< 0: not by steps
    seconds interval = minutes(30);  ///< checkpoint.every_minutes; 0: not by time
    int keep_last = 2;               ///< older ones are removed; 0: all are kept
    bool at_end = true;              ///< also of the last state
    std::string local{};    ///< a folder of each node's own, where parts are safe before they are published; {node} in it is the node's number. Empty: none
    int replicas = 0;       ///< further nodes that keep each part in their local folder
    int publish_every = 1;  ///< with a local folder: every so many checkpoints one goes on to the run folder
};

/// Most tokens that a vocabulary may have.
inline constexpr int most_vocabulary = 1 << 24;
/// Most that a norm adds to the mean square, in 1e-9.
inline constexpr int most_epsilon_e9 = 1'000'000;

/// What a model with a Llama's layers has besides the shape that all have.
struct llama_config {
    int kv_heads = 0;   ///< heads of keys and values; 0: as many as heads
    int head_dim = 0;   ///< 0: width / heads
    int mlp_width = 0;  ///< 0: 8/3 of the width, in whole sixteens
    int rope_base = 10000;
    rope_scaling scaling{};

    friend bool operator==(llama_config const&, llama_config const&) = default;
};

/// The device whose clock a rank sets and whose energy it reads.
struct power_config {
    power_source device = power_source::none;
    std::string clock_profile;  ///< a file, see rheo frontier, with the model's layers as its stages; empty: clocks are left alone
    watts blocking{};           ///< what a device draws while it waits; 0: as the profile says, or as usual (rheo/energy/profile/profile.hpp)
    seconds deadline{};         ///< of a step; 0: no time is lost
    seconds switch_latency{};   ///< how long a change of the clock takes
    bool straggler = true;      ///< when a rank is slow, the others need not hurry
    straggler_rule slow{};      ///< when it counts as slow: the keys straggler_threshold, straggler_recovered, straggler_change, straggler_steps
    emulation_pace pace = emulation_pace::machine;
    std::string nvml = "libnvidia-ml.so.1";  ///< the library
    std::string sysfs = "/sys";
    std::string zeusd;            ///< its socket; empty: where its own clients look for it
    std::string lock_command;     ///< the site's command that locks a clock, with {device} and {mhz}; empty: none
    std::string restore_command;  ///< the one that undoes it, with {device}
    std::string sweep;            ///< a file: steps are made at each clock, from the highest down, and what they took and drew is written there
    std::string claims;           ///< folder in which ranks that share a device find each other; empty: /dev/shm
    std::string guardian;         ///< the program that puts clocks back; empty: rheo-guardian next to this one
};

struct run_folder_config {
    std::string folder;          ///< empty: runs/<config stem>
    std::int64_t log_every = 0;  ///< steps between two lines of progress; 0: every five seconds
    bool trace = true;
    bool tensorboard = false;                                  ///< event files for TensorBoard in the run folder
    std::string prometheus;                                    ///< file for Prometheus, replaced after steps; empty: none
    bool fuse = true;                                          ///< run the fused operation list
    compute_device device = compute_device::cpu;               ///< what a rank computes with: its threads, or a device of its node
    bool graphs = true;                                        ///< a device's work that comes again and again is recorded as CUDA graphs
    attention_kernel attention = attention_kernel::automatic;  ///< in bf16 on a device; compute capability 9.0 has warpgroups
    transport_choice transport = transport_choice::automatic;  ///< of data between GPUs, with the same bits
    bool deterministic = true;                                 ///< false: libraries may add in an order that differs from run to run
    int threads = 1;                                           ///< per rank
    bool rendezvous = false;                                   ///< stages meet for every message: synchronous sends, one tag per direction
    int sample_tokens = 0;                                     ///< tokens generated after the last step
    watchdog_config watchdog{};
    std::vector<std::string> inject;  ///< faults for tests, e.g. "kill:2@3:backward"
};

struct run_config {
    model_family family = model_family::gpt2;
    gpt_shape model;  ///< its shape; a Llama has no dropout
    llama_config llama;
    data_config data;
    train_config train;
    optimizer_config optimizer;
    plan_config plan;
    checkpoint_config checkpoint;
    power_config power;
    run_folder_config run;
};

/// Which dtype plays which part. @pre check finds no fault
constexpr dtype_policy policy_of(run_config const& config)
{
    auto const type_of = [](stored_numbers kept) { return kept == stored_numbers::brain_float16 ? dtype::bf16 : dtype::f32; };
    return {.storage = type_of(config.train.dtype),
            .accumulate = config.train.sums == sum_integers::int32 ? dtype::i32 : dtype::i64,
            .master = type_of(config.train.state)};
}

/// How many items (slices of microbatches) a message may have to tell apart.
constexpr std::int64_t items_in_messages(train_config const& train)
{
    return std::int64_t{train.microbatches > train.eval_microbatches ? train.microbatches : train.eval_microbatches} * train.microbatch.slices;
}

/// The key at fault, as in TOML ("train.steps"), and one sentence that says what was expected.
struct invalid_key {
    std::string key;
    std::string message;

    friend bool operator==(invalid_key const&, invalid_key const&) = default;
};

/// The first fault of anything but [model]: values out of their limits, keys that contradict each other.
std::optional<invalid_key> check(run_config const& config);

/// The first fault of [model]: for runs of the model that it describes.
std::optional<invalid_key> check_model(run_config const& config);

/// The shape of its layers, where they are a Llama's. @pre check_model finds no fault
llama_shape llama_shape_of(run_config const& config);

/// The model that [model] describes, not fused, on train.shards. @pre check_model finds no fault
model_description model_of(run_config const& config);
/// The same on a grid of one: whatever files of weights hold.
model_description whole_model_of(run_config const& config);
/// The same as ranks run it: fused or not.
model_description running_model(run_config const& config);

/// Why the config cannot be run on that many ranks.
std::optional<invalid_key> check_ranks(run_config const& config, int ranks);

}  // namespace rheo::inline v0
