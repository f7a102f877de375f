#pragma once
// SPDX-License-Identifier: Apache-2.0

// The one list of all config keys: name, member, limits, meaning. Reading, writing back, checking and the
// nearest known key all walk it, so a key cannot be known in one place and unknown in another.

#include <limits>
#include <string_view>

#include "executor/config/config.hpp"
#include "kernels/attention/attention.hpp"

namespace rheo::inline v0 {

/// Which numbers a key takes; for lists: each element. Text and truth values have none.
struct field_limits {
    double least = std::numeric_limits<double>::lowest();
    double most = std::numeric_limits<double>::max();
    bool above_least = false;  ///< least itself is out
    bool below_most = false;   ///< most itself is out
};

constexpr field_limits at_least(double least) { return {.least = least}; }
constexpr field_limits between(double least, double most) { return {.least = least, .most = most}; }

/// A fraction kept as an integer number of thousandths, so that it is the same everywhere.
template <class Int>
struct per_mille {
    Int& count;
};
template <class Int>
per_mille(Int&) -> per_mille<Int>;  // which clang before 17 does not find by itself

/// Calls `visit(key, member, limits, meaning)` for every key in the order in which it is written.
/// Config is run_config or const.
template <class Config, class Visit>
void for_each_field(Config& c, Visit&& visit)
{
    visit("model.family", c.family, field_limits{}, "gpt2 or llama");
    visit("model.vocabulary", c.model.vocabulary, between(2, 65536), "tokens that exist; bytes: 256");
    visit("model.context", c.model.context, between(1, 1 << 20), "longest sequence, in tokens");
    visit("model.width", c.model.width, between(1, 1 << 16), "columns between the layers");
    visit("model.heads", c.model.heads, between(1, 1 << 10), "of the attention; divides the width");
    visit("model.blocks", c.model.blocks, between(0, 1 << 10), "transformer blocks between embedding and classifier");
    visit("model.dropout", per_mille{c.model.dropout_per_mille}, field_limits{0, 1, false, true}, "fraction, in thousandths");
    visit("model.tied", c.model.tied, field_limits{}, "the classifier's weight is the token table");
    visit("model.kv_heads", c.llama.kv_heads, between(0, 1 << 10), "of a llama: heads of keys and values; 0: as many as heads");
    visit("model.mlp_width", c.llama.mlp_width, between(0, 1 << 18), "of a llama; 0: 8/3 of the width, in whole sixteens");
    visit("model.rope_base", c.llama.rope_base, between(1, 1 << 30), "of a llama's positions");

    visit("data.paths", c.data.paths, field_limits{}, "files or folders; none: the C++ standard library headers");
    visit("data.validation_fraction", c.data.validation_fraction, field_limits{0, 1, true, true}, "of the tokens, taken from the end");

    visit("train.steps", c.train.steps, at_least(0), "");
    visit("train.seed", c.train.seed, at_least(0), "");
    visit("train.microbatches", c.train.microbatches, between(1, 1 << 20), "per step");
    visit("train.microbatch.sequences", c.train.microbatch.sequences, between(1, 1 << 20), "");
    visit("train.microbatch.tokens", c.train.microbatch.tokens, between(1, 1 << 20), "per sequence");
    visit("train.slices", c.train.microbatch.slices, between(1, most_slices), "of each sequence, computed one after the other; they divide the tokens");
    visit("train.eval_every", c.train.eval_every, at_least(0), "steps; 0: only after the last one");
    visit("train.eval_microbatches", c.train.eval_microbatches, between(1, 1 << 20), "of each evaluation");
    visit("train.dtype", c.train.dtype, field_limits{}, "fp32 or, on a device, bf16: parameters and activations as stages have them; the optimizer's are fp32");
    visit("train.sums", c.train.sums, field_limits{},
          "int64 or int32: the integers that gradients are summed in, exactly; int32 has a scale per row of a tensor, in half the memory");
    visit("train.skip_not_finite", c.train.skip_not_finite, field_limits{}, "true: a step with a gradient that is not finite is skipped");

    visit("optimizer.learning_rate", c.optimizer.learning_rate, at_least(0), "after the warm-up");
    visit("optimizer.final_learning_rate", c.optimizer.final_learning_rate, at_least(0), "at the end of the cosine");
    visit("optimizer.warmup_steps", c.optimizer.warmup_steps, at_least(0), "");
    visit("optimizer.beta1", c.optimizer.beta1, field_limits{0, 1, false, true}, "");
    visit("optimizer.beta2", c.optimizer.beta2, field_limits{0, 1, false, true}, "");
    visit("optimizer.epsilon", c.optimizer.epsilon, field_limits{.least = 0, .above_least = true}, "");
    visit("optimizer.weight_decay", c.optimizer.weight_decay, at_least(0), "");
    visit("optimizer.clip_norm", c.optimizer.clip_norm, at_least(0), "global norm of the mean gradient; 0: no clipping");

    visit("plan.schedule", c.plan.schedule, field_limits{}, "a family, see rheo schedule --list, or a file");
    visit("plan.pipelines", c.plan.pipelines, between(1, 1 << 20), "ranks of each, e.g. [2, 3]; none: chosen by the planner");
    visit("plan.layers", c.plan.layers, between(1, 1 << 20), "of each stage, pipelines one after the other; none: cut by the planner");
    visit("plan.shares", c.plan.shares, between(1, 1 << 20), "microbatches of each, e.g. [3, 5]; none: by speed");
    visit("plan.failures", c.plan.failures, between(0, 1 << 10), "f: at least f + 1 pipelines are kept whenever possible");
    visit("plan.min_ranks", c.plan.min_ranks, between(1, 1 << 20), "fewest ranks of a pipeline");
    visit(
        "plan.recompute", c.plan.recompute, field_limits{},
        "keep only the inputs of stages and recompute activations: a forward more, less memory; \"auto\": as few stages as memory_mib asks for; \"selective\": as few layers, first what costs no product");
    visit("plan.memory_mib", c.plan.memory_mib, at_least(0), "of a rank; a plan that needs more is refused; 0: not looked at");
    visit("plan.spares", c.plan.spares, between(0, 1 << 20), "ranks that wait until one is lost or leaves");
    visit("plan.mtbf_h", c.plan.mtbf_h, field_limits{.least = 0, .above_least = true},
          "mean time between losses of one rank, in hours: the longer, the more copies a shorter step is worth after a loss");
    visit("plan.layer_profile", c.plan.layer_profile, field_limits{},
          "times of the layers, a file of rheo profile, that all planning follows; none: as modelled");
    visit("plan.node_size", c.plan.node_size, between(1, 1 << 10), "ranks of a node: copies of a layer go to different nodes");

    visit("checkpoint.every_steps", c.checkpoint.every_steps, at_least(0), "0: not by steps");
    visit("checkpoint.every_minutes", c.checkpoint.every_minutes, at_least(0), "0: not by time");
    visit("checkpoint.keep_last", c.checkpoint.keep_last, between(0, 1 << 20), "older ones are removed; 0: all are kept");
    visit("checkpoint.at_end", c.checkpoint.at_end, field_limits{}, "also of the last state");

    visit("power.device", c.power.device, field_limits{}, "none, emulated, nvml, cpu or auto: whose clock is set and whose energy is read");
    visit("power.clock_profile", c.power.clock_profile, field_limits{}, "times and energies of layers at each clock; none: clocks are left alone");
    visit("power.blocking_w", c.power.blocking_w, at_least(0), "drawn by a device that waits; 0: as the profile says, else 83.64");
    visit("power.deadline_s", c.power.deadline_s, at_least(0), "of a step, for less energy; 0: no time is lost");
    visit("power.switch_latency_s", c.power.switch_latency_s, at_least(0), "of a change of the clock");
    visit("power.straggler", c.power.straggler, field_limits{}, "when a rank is slow, the others need not hurry");
    visit("power.straggler_threshold", c.power.slow.threshold, field_limits{.least = 1, .above_least = true},
          "times as long as the others: from here on a rank is slow");
    visit("power.straggler_recovered", c.power.slow.recovered, at_least(1), "and below this, at most the former, well again");
    visit("power.straggler_change", c.power.slow.change, field_limits{.least = 0, .above_least = true},
          "part by which a slow rank must become another to be planned anew");
    visit("power.straggler_steps", c.power.slow.steps, between(1, 1 << 20), "one after the other, before it counts");
    visit("power.pace", c.power.pace, field_limits{}, "of an emulated device: machine or profile");
    visit("power.nvml", c.power.nvml, field_limits{}, "the library");
    visit("power.sysfs", c.power.sysfs, field_limits{}, "");
    visit("power.zeusd", c.power.zeusd, field_limits{}, "its socket; none: where its clients look");
    visit("power.lock_command", c.power.lock_command, field_limits{}, "the site's command, with {device} and {mhz}");
    visit("power.restore_command", c.power.restore_command, field_limits{}, "the one that undoes it, with {device}");
    visit("power.sweep", c.power.sweep, field_limits{}, "a profile to make in this training, at each clock from the highest down");
    visit("power.claims", c.power.claims, field_limits{}, "folder for ranks that share a device; none: /dev/shm");
    visit("power.guardian", c.power.guardian, field_limits{}, "the program; none: next to rheo");

    visit("run.folder", c.run.folder, field_limits{}, "none: runs/<name of the config>");
    visit("run.trace", c.run.trace, field_limits{}, "record every instruction of every rank");
    visit("run.fuse", c.run.fuse, field_limits{}, "run the fused operation list");
    visit("run.device", c.run.device, field_limits{}, "cpu or cuda: what ranks compute with; those of a node share its devices in turn");
    visit("run.graphs", c.run.graphs, field_limits{}, "on cuda: what a stage does in a slot is recorded and launched as one CUDA graph, with the same bits");
    visit("run.attention", c.run.attention, field_limits{},
          "on cuda, in bf16: by the tensor cores of a warp or of a warpgroup (compute capability 9.0), or by cudnn; the bits are not the same");
    visit("run.deterministic", c.run.deterministic, field_limits{},
          "false: cudnn may add gradients in any order, which wants less memory; then two runs need not end with the same bits");
    visit("run.threads", c.run.threads, between(1, 1 << 10), "per rank");
    visit("run.rendezvous", c.run.rendezvous, field_limits{}, "stages meet for every message; slower, to show that no buffer is needed");
    visit("run.sample_tokens", c.run.sample_tokens, between(0, 1 << 20), "generated after the last step");
    visit("run.watchdog.factor", c.run.watchdog.factor, at_least(0), "deadline: times the rank's longest operation; 0: none");
    visit("run.watchdog.least_s", c.run.watchdog.least_s, field_limits{.least = 0, .above_least = true}, "and never less than this");
    visit("run.watchdog.start_s", c.run.watchdog.start_s, at_least(0), "until all ranks have begun, else exit code 5; 0: no limit");
    visit("run.watchdog.stopped_s", c.run.watchdog.stopped_s, at_least(0), "a stopped rank is killed after; 0: never");
    visit("run.inject", c.run.inject, field_limits{}, "faults for tests, e.g. [\"kill:2@3:backward\"]");
}

}  // namespace rheo::inline v0
