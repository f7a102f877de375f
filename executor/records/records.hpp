#pragma once
// SPDX-License-Identifier: Apache-2.0

// What a run leaves behind, and a live progress line for people. Every rank records its own trace events;
// the rank that reports for the job (the lowest one alive, `reporter`) writes metrics and the progress line.
// Every rank gets every record and keeps the newest ones, so that any of them can speak next and adds what the last one
// had not written. The run folder:
//   config.toml            the effective config
//   ranks/<r>.json         process id and host of each rank; its memory since its first step with a plan, and its peak when it has ended in order
//   plan.json, command     the plan that it began with; where no loss is survived, the line that continues
//   plan-<g>.json          the plan since generation g
//   metrics.jsonl          one object per line, each with its time and the committed steps; "kind": start, step, redo, evaluation, recovery, safe, checkpoint, note, end; undone: a step, redo or
//                          evaluation ("was") that a later start went back behind. So each step is there once, each end belongs to the start before it
//   events.out.tfevents.*  run.tensorboard: curves (monitor/tensorboard_log.hpp)
//   trace/rank-<r>.jsonl   each rank's events; ends in a torn line when the rank was killed
//   trace.json             all of them on one time line, for Perfetto (trace_merge.hpp)
//   report.json            how it ended, with all recoveries

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "executor/config/config.hpp"
#include "executor/records/record_files.hpp"
#include "rheo/plan/memory_parts.hpp"
#include "rheo/plan/plan.hpp"
#include "rheo/tensor/digest.hpp"
#include "rheo/topology/tagged_index.hpp"
#include "rheo/trace/event.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

/// Makes the folder and writes the effective config; a run that continues loses its report, which it will write again. One rank
/// calls it before any rank makes its `records`. @pre goes_on, or an earlier run was set aside (executor/records/earlier_run.hpp). @throws exit_error
void begin_run_folder(std::string const& folder, run_config const& config, bool resumes = false);

/// The file with the plan that was in force since a generation.
std::string plan_since(std::string const& folder, generation_id since);

/// A launch begins to train, or the job goes back to a checkpoint.
struct start_record {
    generation_id generation;  ///< the one that begins: no two starts in a folder have the same
    step_id step;              ///< committed steps in the state to resume from: later ones are repeated
    int ranks = 0;
    bool from_checkpoint = false;  ///< else the state is that of the seed
};

struct step_record {
    step_id step;
    std::int64_t of_steps = 0;  ///< how many the run will have; 0: unknown
    attempt_id attempt;
    double loss = 0;  ///< nats per token, mean of the step; NaN: not finite
    double gradient_norm = 0;
    double learning_rate = 0;
    std::int64_t tokens = 0;
    seconds duration;  ///< of the attempt, recoveries within it included
    int ranks = 0;
    int recoveries = 0;  ///< so far
    bool skipped = false;
    bool redone = false;              ///< the attempt was not committed: the step is tried again with other scales
    std::int64_t pairs_computed = 0;  ///< (use, microbatch) contributions of all ranks in this attempt, since the last recovery in it
    joules energy{};                  ///< of all ranks since the last attempt; 0: not known
    seconds planned_time{};           ///< of the step at the plan's clocks; 0: it has none
    joules planned_energy{};          ///< of all ranks that have a place, then
    flop_rate model_rate{};           ///< model flops of the step (rheo/model/model_flops.hpp) in its duration
    flop_rate compute{};              ///< of the ranks' devices as plan.cluster describes them; 0: it does not
};

/// The model flops utilization (MFU) of a step, by what the devices compute; 0: not known.
constexpr double mfu(step_record const& r) { return r.compute.count > 0 ? r.model_rate.count / r.compute.count : 0.0; }

struct evaluation_record {
    step_id step;     ///< steps committed
    double loss = 0;  ///< nats per token of the validation split; NaN: not finite
};

/// The memory of this rank in a whole step.
struct memory_record {
    memory_parts planned;
    memory_parts measured;  ///< see recorded_memory.hpp
};

/// A change of the members: how long each part of it took on the reporter, what was lost and what was salvaged.
struct recovery_record {
    generation_id generation;  ///< the one that begins
    step_id step;
    attempt_id attempt;
    std::vector<rank_id> lost;
    std::vector<rank_id> left{};  ///< in order, after the step before; with no rank lost or gone, ranks that waited were given places
    std::string change{};         ///< of the plan, scheduled or requested, after the step before: "tensor=2 pipelines=[4,4]"
    int ranks = 0;                ///< that continue
    int pipelines = 0;
    seconds detect, revoke, decide, shrink, link, exchange, plan, copy, merge, first_instruction;
    bytes copied;                     ///< parameters and moments, all ranks
    int rounds = 1;                   ///< of copies: more if a rank had no memory for all at once
    bytes moved;                      ///< accumulators, all ranks
    std::int64_t pairs_total = 0;     ///< (use, microbatch) pairs of the step
    std::int64_t pairs_salvaged = 0;  ///< of these, those that need not be recomputed
    std::int64_t pairs_missing = 0;
    std::string message{};           ///< what can be lost from now on
    std::int64_t communicators = 0;  ///< that the reporter has open
    bytes memory;                    ///< of the reporter's process, now
};

/// A checkpoint that is there: all ranks know that it has its name.
struct checkpoint_record {
    step_id step;      ///< steps committed
    bytes size;        ///< of all its tensors
    seconds duration;  ///< from the copy of the state to the end of the step in which all knew, beside the training
};

/// A checkpoint that is safe in more and more places before it is published.
enum class safety_level : std::uint8_t {
    local,       ///< every part is on the disk of a node
    replicated,  ///< and, as a copy, on those of others
};

inline constexpr std::string_view safety_level_names[] = {"local", "replicated"};

struct level_record {
    step_id step;  ///< steps committed
    safety_level level = safety_level::local;
    bytes size;        ///< of all its tensors
    seconds duration;  ///< as in checkpoint_record
    int copies = 0;    ///< of each part on other nodes
};

struct final_record {
    int exit_code = 0;
    std::string message{};                    ///< why it ended
    step_id steps{};                          ///< committed
    std::optional<double> loss{};             ///< of the last committed step; NaN: not finite; none: not known
    std::optional<double> validation_loss{};  ///< of the last state; NaN: not finite; none: it was not evaluated
    double unigram_entropy = 0;
    state_digest digest{};
    bool digest_known = false;
    std::int64_t steps_skipped = 0;  ///< of the committed steps: a loss or gradient was not finite
    std::int64_t evaluations_not_finite = 0;
    std::int64_t pairs_by_survivors = 0;  ///< (use, microbatch) contributions that the surviving ranks made since the last start
    std::string sample{};                 ///< generated text
    std::string plan_drawing{};
    joules energy{};           ///< of all ranks in all attempts, and by the records of the run that this job continued with; 0: not known
    joules energy_per_step{};  ///< committed
    joules energy_per_token{};
    std::vector<rank_id> energy_missing{};  ///< lost ranks whose last joules are unknown
};

/// A run that has ended, as report.json keeps it.
struct ended_run {
    final_record record;
    std::vector<recovery_record> recoveries;
};

class records {
public:
    /// @param config with its run folder: what is written, and how often a line is printed  @param quiet nothing is printed, what there is to say is in the folder
    /// @throws exit_error. What cannot be written later is reported once and given up.
    records(run_config const& config, rank_id rank, bool quiet);
    /// Into a run folder, all else by default.
    records(std::string const& folder, rank_id rank, bool trace, bool quiet);
    ~records();
    records(records&&) noexcept;
    records& operator=(records&&) noexcept;

    void start(start_record const& record, bool reporter);
    void set_reporter(bool reporter);  ///< may change after every recovery
    void event(trace_event const& event);
    void step(step_record const& record);  ///< committed or redone; also flushes this rank's trace
    void evaluation(evaluation_record const& record);
    void recovery(recovery_record const& record);
    void in_force(plan const& p, generation_id since);  ///< reporter: plan-<since>.json
    void checkpoint(checkpoint_record const& record);
    void safe(level_record const& record);
    void note(std::string_view message);       ///< one line for people, also kept in the folder; the same on all ranks, or on the reporter alone
    void alone(std::string_view message);      ///< a note that only this rank has; a rank that is not the reporter prints it as an error
    void memory(memory_record const& record);  ///< kept in this rank's file from the end of its first step with a plan on
    void flush();                              ///< everything recorded is in the files when it returns
    void finish(final_record const& record);   ///< flushes; reporter: report.json, the final table

private:
    struct impl;
    std::unique_ptr<impl> impl_;
};

}  // namespace rheo::inline v0
