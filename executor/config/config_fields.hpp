#pragma once
// SPDX-License-Identifier: Apache-2.0

// The one list of all config keys: name, member, limits, meaning. Reading, writing back, checking the nearest
// known key and the reference pages all walk it, so a key cannot be known in one place and unknown in another.

#include <limits>
#include <string_view>

#include "executor/config/config.hpp"
#include "kernels/attention/attention.hpp"
#include "rheo/tensor/shard_grid.hpp"

namespace rheo::inline v0 {

/// Which numbers a key takes (of a list: each element), in the key's unit.
struct field_limits {
    double least = std::numeric_limits<double>::lowest();
    double most = std::numeric_limits<double>::max();
    bool above_least = false;  ///< least itself is out
    bool below_most = false;   ///< most itself is out
};

constexpr field_limits at_least(double least) { return {.least = least}; }
constexpr field_limits between(double least, double most) { return {.least = least, .most = most}; }

/// A fraction kept as an integer number of equal parts of one, so that it is the same everywhere.
template <class Int>
struct in_parts {
    Int& count;
    double parts;  ///< of one
};
template <class Int>
constexpr in_parts<Int> per_mille(Int& count)
{
    return {count, 1e3};
}
template <class Int>
constexpr in_parts<Int> per_billion(Int& count)
{
    return {count, 1e9};
}

/// A quantity in the unit that its key names: this many of its own units.
template <class Quantity>
struct in_unit {
    Quantity& quantity;
    double unit;
};
template <class Quantity>
constexpr in_unit<Quantity> in_key_seconds(Quantity& q)
{
    return {q, 1.0};
}
template <class Quantity>
constexpr in_unit<Quantity> in_key_minutes(Quantity& q)
{
    return {q, minutes(1).count};
}
template <class Quantity>
constexpr in_unit<Quantity> in_key_hours(Quantity& q)
{
    return {q, hours(1).count};
}
template <class Quantity>
constexpr in_unit<Quantity> in_key_watts(Quantity& q)
{
    return {q, 1.0};
}
template <class Quantity>
constexpr in_unit<Quantity> in_key_mebibytes(Quantity& q)
{
    return {q, static_cast<double>(mebibytes(1).count)};
}

/// Calls `visit(key, member, limits, meaning)` for every key in the order in which it is written.
/// Config is run_config or const.
template <class Config, class Visit>
void for_each_field(Config& c, Visit&& visit)
{
    visit("model.family", c.family, field_limits{}, "Model family: layers and operations.");
    visit("model.vocabulary", c.model.vocabulary, between(2, most_vocabulary), "Number of tokens. 256 for bytes.");
    visit("model.context", c.model.context, between(1, 1 << 20), "Longest sequence, in tokens.");
    visit("model.width", c.model.width, between(1, 1 << 16), "Columns between layers (hidden size).");
    visit("model.heads", c.model.heads, between(1, 1 << 10), "Attention heads. Must divide the width where model.head_dim is 0.");
    visit("model.blocks", c.model.blocks, between(0, 1 << 10), "Transformer blocks between embedding and classifier.");
    visit("model.dropout", per_mille(c.model.dropout_per_mille), field_limits{0, 1, false, true}, "Dropout fraction, a multiple of 0.001.");
    visit("model.tied", c.model.tied, field_limits{}, "Use the token table as the classifier's weight.");
    visit("model.norm_epsilon", per_billion(c.model.norm_epsilon_e9), between(1e-9, 1e-3), "Added to the mean square by norms, a multiple of 1e-9.");
    visit("model.kv_heads", c.llama.kv_heads, between(0, 1 << 10), "Not gpt2: heads of keys and values. 0 = as many as heads.");
    visit("model.head_dim", c.llama.head_dim, between(0, 1 << 10), "Not gpt2: width of a head. 0 = width / heads.");
    visit("model.mlp_width", c.llama.mlp_width, between(0, 1 << 18), "Not gpt2: width of the MLP. 0 = 8/3 of the width, rounded to 16.");
    visit("model.rope_base", c.llama.rope_base, between(1, 1 << 30), "Not gpt2: base of the rotary positions (rope_theta).");
    visit("model.rope_scaling", c.llama.scaling.kind, field_limits{}, "Not gpt2: rotary positions stretched by Hugging Face's rule of that name.");
    visit("model.rope_factor", per_mille(c.llama.scaling.factor_per_mille), between(0, 1000), "linear, llama3: the factor, from 1 on, a multiple of 0.001.");
    visit("model.rope_low_freq_factor", per_mille(c.llama.scaling.low_freq_factor_per_mille), between(0, 1000),
          "llama3: pairs that turn less often within the original context are stretched.");
    visit("model.rope_high_freq_factor", per_mille(c.llama.scaling.high_freq_factor_per_mille), between(0, 1000),
          "llama3: those that turn more often are not.");
    visit("model.rope_original_context", c.llama.scaling.original_context, between(0, 1 << 20), "llama3: tokens of the context before it was stretched.");

    visit("data.paths", c.data.paths, field_limits{}, "Files or folders. Empty = the newest C++ standard library headers.");
    visit("data.sources", c.data.sources, field_limits{},
          "In place of paths: files or folders with weights, e.g. [\"0.7: texts/web\", \"0.3: texts/code\"]. Sequences are from each in these parts.");
    visit("data.validation", c.data.validation, field_limits{}, "Files or folders for validation. Empty = validation_fraction of each source.");
    visit("data.validation_fraction", c.data.validation_fraction, field_limits{0, 1, true, true}, "Fraction of the tokens, from the end, for validation.");
    visit("data.order", c.data.order, field_limits{},
          "random: sequences begin anywhere. epochs: tokens are cut into sequences, and each comes once per epoch of its source, shuffled.");
    visit(
        "data.document_token", c.data.document_token, between(-1, 1 << 24),
        "Token that ends a document. Sequences then stay within one, and what a short one leaves of a sequence is padded, without loss. -1 = sequences span documents.");

    visit("train.steps", c.train.steps, at_least(0), "Optimizer steps.");
    visit("train.seed", c.train.seed, at_least(0), "Seed of initial values, dropout and data order.");
    visit("train.microbatches", c.train.microbatches, between(1, 1 << 20), "Microbatches per step.");
    visit("train.microbatch.sequences", c.train.microbatch.sequences, between(1, 1 << 20), "Sequences per microbatch.");
    visit("train.microbatch.tokens", c.train.microbatch.tokens, between(1, 1 << 20), "Tokens per sequence.");
    visit("train.slices", c.train.microbatch.slices, between(1, most_slices),
          "Slices of each sequence, computed one after the other. Must divide the tokens. Decides the bits.");
    visit("train.shards", c.train.shards, between(1, most_shards),
          "Shards of the model's width: heads, columns of the MLP, rows of the token table. Decides the bits.");
    visit("train.eval_every", c.train.eval_every, at_least(0), "Steps between evaluations. 0 = only after the last step.");
    visit("train.eval_microbatches", c.train.eval_microbatches, between(1, 1 << 20), "Microbatches per evaluation.");
    visit("train.dtype", c.train.dtype, field_limits{}, "Type of parameters, activations and messages. bf16 needs run.device = \"cuda\".");
    visit("train.state", c.train.state, field_limits{},
          "Type of the optimizer's parameters and moments. bf16 needs train.dtype = \"bf16\", takes half the memory, and is rounded stochastically.");
    visit("train.sums", c.train.sums, field_limits{}, "Integers for exact gradient sums. int32 has a scale per row and takes half the memory.");
    visit("train.skip_not_finite", c.train.skip_not_finite, field_limits{}, "Skip a step whose gradient is not finite, instead of stopping.");

    visit("optimizer.learning_rate", c.optimizer.learning_rate, at_least(0), "AdamW: learning rate after the warm-up.");
    visit("optimizer.final_learning_rate", c.optimizer.final_learning_rate, at_least(0), "Learning rate at the end of the decay.");
    visit("optimizer.warmup_steps", c.optimizer.warmup_steps, at_least(0), "Steps of linear warm-up.");
    visit(
        "optimizer.schedule", c.optimizer.schedule, field_limits{},
        "Learning rate after the warm-up: cosine or linear to the final one at train.steps, constant, wsd (stable_steps, then linear in decay_steps), table.");
    visit("optimizer.stable_steps", c.optimizer.stable_steps, at_least(0), "wsd: steps at the whole learning rate, after the warm-up.");
    visit("optimizer.decay_steps", c.optimizer.decay_steps, at_least(0), "wsd: steps of linear decay, after those.");
    visit("optimizer.table", c.optimizer.table, field_limits{},
          "table: learning rates by step, e.g. [\"0: 1e-3\", \"1000: 1e-4\"], in place of warm-up and decay. Linear in between.");
    visit("optimizer.beta1", c.optimizer.beta1, field_limits{0, 1, false, true}, "AdamW: decay of the first moment.");
    visit("optimizer.beta2", c.optimizer.beta2, field_limits{0, 1, false, true}, "AdamW: decay of the second moment.");
    visit("optimizer.epsilon", c.optimizer.epsilon, field_limits{.least = 0, .above_least = true}, "AdamW: added to the denominator.");
    visit("optimizer.weight_decay", c.optimizer.weight_decay, at_least(0), "AdamW: decoupled weight decay.");
    visit("optimizer.clip_norm", c.optimizer.clip_norm, at_least(0), "Global norm at which the mean gradient is clipped. 0 = no clipping.");

    visit("plan.schedule", c.plan.schedule, field_limits{}, "Schedule family (rheo schedule --list), a file, or \"auto\": chosen by the planner.");
    visit("plan.pipelines", c.plan.pipelines, between(1, 1 << 20), "Ranks of each pipeline, e.g. [2, 3]. Empty = chosen by the planner.");
    visit("plan.tensor", c.plan.tensor, between(0, most_shards),
          "Ranks that share each stage, at most train.shards: one number (0 = chosen by the planner), or a list with one for each position, pipelines one "
          "after the other.");
    visit("plan.layers", c.plan.layers, between(1, 1 << 20), "Layers of each stage, pipelines one after the other. Empty = cut by the planner.");
    visit("plan.shares", c.plan.shares, between(1, 1 << 20), "Microbatches of each pipeline, e.g. [3, 5]. Empty = by speed.");
    visit("plan.failures", c.plan.failures, between(0, 1 << 10), "f: keep at least f + 1 pipelines whenever possible.");
    visit("plan.min_ranks", c.plan.min_ranks, between(1, 1 << 20), "Fewest ranks per pipeline.");
    visit(
        "plan.recompute", c.plan.recompute, field_limits{},
        "Activation recomputation: false, true (all stages), \"auto\" (as few stages as memory_mib requires), \"selective\" (as few layers, cheapest first).");
    visit(
        "plan.optimizer_shards", c.plan.optimizer_shards, field_limits{},
        "f + 1 of the ranks that hold a parameter keep its moments, and its master where stages read a copy in bf16 (ZeRO-1), instead of all. The results are the same.");
    visit("plan.memory_mib", in_key_mebibytes(c.plan.memory), at_least(0),
          "Memory limit per rank in MiB (state + activations). Plans that need more are rejected. 0 = unlimited.");
    visit("plan.spares", c.plan.spares, between(0, 1 << 20), "Ranks that wait for a place.");
    visit("plan.changes", c.plan.changes, field_limits{},
          "Changes of pipelines, tensor, layers, shares and spares while the job runs: [\"100: tensor=2 pipelines=[4,4]\"] changes after 100 steps.");
    visit("plan.change_memory_mib", in_key_mebibytes(c.plan.change_memory), at_least(0),
          "Memory limit per rank in MiB for state while a running plan changes: with less than a rank needs at once, it changes in rounds. 0 = memory_mib.");
    visit("plan.mtbf_h", in_key_hours(c.plan.mtbf), field_limits{.least = 0, .above_least = true},
          "Mean time between failures of one rank, in hours. The longer, the more copies a shorter step is worth.");
    visit("plan.layer_profile", c.plan.layer_profile, field_limits{},
          "CSV with times of the layers (rheo profile), used for all planning. Empty = modelled times.");
    visit("plan.cluster", c.plan.cluster, field_limits{},
          "Described cluster (TOML) to plan for: its device, links, nodes and memory. Empty = processes of one machine.");
    visit("plan.node_size", c.plan.node_size, between(1, 1 << 10), "Ranks per node. Copies of a layer go to different nodes.");

    visit("checkpoint.every_steps", c.checkpoint.every_steps, at_least(0), "Steps between checkpoints. 0 = not by steps.");
    visit("checkpoint.every_minutes", in_key_minutes(c.checkpoint.interval), at_least(0), "Minutes between checkpoints. 0 = not by time.");
    visit("checkpoint.keep_last", c.checkpoint.keep_last, between(0, 1 << 20), "Checkpoints to keep. 0 = all.");
    visit("checkpoint.at_end", c.checkpoint.at_end, field_limits{}, "Write a checkpoint of the last state.");
    visit("checkpoint.local", c.checkpoint.local, field_limits{},
          "Folder of each node's own (NVMe, /dev/shm) that gets checkpoints first. {node} = number of the node. Empty = none.");
    visit("checkpoint.replicas", c.checkpoint.replicas, between(0, 1 << 10), "Other nodes that keep a copy in their local folder.");
    visit("checkpoint.publish_every", c.checkpoint.publish_every, between(1, 1 << 20),
          "With a local folder: of so many checkpoints one goes to the run folder, too.");

    visit("power.device", c.power.device, field_limits{}, "Device whose clock is set and whose energy is read. auto = nvml if there is one, else cpu.");
    visit("power.clock_profile", c.power.clock_profile, field_limits{}, "CSV with time and energy of each layer at each clock. Empty = clocks are left alone.");
    visit("power.blocking_w", in_key_watts(c.power.blocking), at_least(0), "Power of a waiting device, in W. 0 = from the profile, else 83.64.");
    visit("power.deadline_s", in_key_seconds(c.power.deadline), at_least(0), "Step time to plan clocks for, in s. 0 = no time is lost.");
    visit("power.switch_latency_s", in_key_seconds(c.power.switch_latency), at_least(0), "Time that a clock change takes, in s.");
    visit("power.straggler", c.power.straggler, field_limits{}, "When a rank is slow, run the others at the least energy for its time.");
    visit("power.straggler_threshold", c.power.slow.threshold, field_limits{.least = 1, .above_least = true},
          "A rank is slow from this multiple of the median time on.");
    visit("power.straggler_recovered", c.power.slow.recovered, at_least(1), "A slow rank has recovered below this multiple. At most straggler_threshold.");
    visit("power.straggler_change", c.power.slow.change, field_limits{.least = 0, .above_least = true},
          "Replan if the time of a slow rank changes by this fraction.");
    visit("power.straggler_steps", c.power.slow.steps, between(1, 1 << 20), "Steps in a row before a change counts.");
    visit("power.pace", c.power.pace, field_limits{}, "Emulated device: computations take this machine's time, or the profile's.");
    visit("power.nvml", c.power.nvml, field_limits{}, "NVML library.");
    visit("power.sysfs", c.power.sysfs, field_limits{}, "Root of sysfs.");
    visit("power.zeusd", c.power.zeusd, field_limits{}, "Socket of zeusd. Empty = zeusd's default.");
    visit("power.lock_command", c.power.lock_command, field_limits{}, "Site command that locks a clock, with {device} and {mhz}.");
    visit("power.restore_command", c.power.restore_command, field_limits{}, "Site command that restores the clock, with {device}.");
    visit("power.sweep", c.power.sweep, field_limits{}, "File for a clock profile made during this training. Set by rheo profile --clocks.");
    visit("power.claims", c.power.claims, field_limits{}, "Folder where ranks that share a device find each other. Empty = /dev/shm.");
    visit("power.guardian", c.power.guardian, field_limits{}, "Program that restores clocks. Empty = rheo-guardian beside rheo.");

    visit("run.folder", c.run.folder, field_limits{}, "Run folder. Empty = runs/<name of the config>.");
    visit("run.log_every", c.run.log_every, at_least(0), "Steps between two lines of progress, where no terminal shows one line. 0 = every five seconds.");
    visit("run.trace", c.run.trace, field_limits{}, "Record every instruction of every rank.");
    visit("run.tensorboard", c.run.tensorboard, field_limits{}, "Write event files for TensorBoard into the run folder.");
    visit("run.prometheus", c.run.prometheus, field_limits{},
          "File for Prometheus, replaced after steps, at most once a second. Name it *.prom in the folder of node_exporter's textfile collector.");
    visit("run.fuse", c.run.fuse, field_limits{}, "Run the fused operation list.");
    visit("run.device", c.run.device, field_limits{}, "What ranks compute with. Ranks of a node share its GPUs in turn.");
    visit("run.graphs", c.run.graphs, field_limits{}, "cuda: launch repeated work as CUDA graphs, with the same bits.");
    visit(
        "run.attention", c.run.attention, field_limits{},
        "cuda, bf16: attention kernel. auto = cudnn where it computes the model, else warpgroup on compute capability 9.0, else warp. Each gives other bits.");
    visit("run.transport", c.run.transport, field_limits{},
          "cuda: what moves data between ranks, with the same bits. auto = nccl where all ranks have it and a device each, else mpi.");
    visit("run.deterministic", c.run.deterministic, field_limits{},
          "cuda: false lets cuDNN add gradients in any order, in less memory. Two runs may then differ.");
    visit("run.threads", c.run.threads, between(1, 1 << 10), "Threads per rank.");
    visit("run.rendezvous", c.run.rendezvous, field_limits{}, "Send synchronously, to show that no buffer is needed. Slower.");
    visit("run.sample_tokens", c.run.sample_tokens, between(0, 1 << 20), "Tokens of text to generate after the last step.");
    visit("run.watchdog.factor", c.run.watchdog.factor, at_least(0), "A rank ends itself when an operation takes this multiple of its longest one. 0 = never.");
    visit("run.watchdog.least_s", in_key_seconds(c.run.watchdog.least), field_limits{.least = 0, .above_least = true}, "Lower bound of that time, in s.");
    visit("run.watchdog.start_s", in_key_seconds(c.run.watchdog.start), at_least(0), "Time for all ranks to begin, in s; then exit code 5. 0 = no limit.");
    visit("run.watchdog.stopped_s", in_key_seconds(c.run.watchdog.stopped), at_least(0),
          "Kill a rank of this host whose process has been stopped this long, in s. 0 = never.");
    visit("run.inject", c.run.inject, field_limits{}, "Faults for tests, e.g. [\"kill:2@3:backward\"].");
}

}  // namespace rheo::inline v0
