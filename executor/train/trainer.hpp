#pragma once
// SPDX-License-Identifier: Apache-2.0

// The trainer performs what the protocol (rheo/recover/protocol.hpp) asks for, action by action, and
// answers with what happened. It decides nothing itself: which ranks continue, what is committed and what
// is done again are the protocol's. The loss of a peer is one of the things that happen. What it needs besides stands in parts/, each with one job.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "executor/faults/fence.hpp"
#include "executor/mpi/messenger.hpp"
#include "executor/records/earlier_run.hpp"
#include "executor/state/resident_state.hpp"
#include "executor/state/transfer.hpp"
#include "executor/train/checkpointing.hpp"
#include "executor/train/job.hpp"
#include "executor/train/parts/clock_follower.hpp"
#include "executor/train/parts/evaluation.hpp"
#include "executor/train/parts/optimizer_step.hpp"
#include "executor/train/parts/plan_changes.hpp"
#include "executor/train/parts/profile_sweep.hpp"
#include "executor/train/parts/recovery_log.hpp"
#include "executor/train/parts/safety_copying.hpp"
#include "executor/train/parts/section_transport.hpp"
#include "executor/train/parts/step_planner.hpp"
#include "executor/train/parts/step_totals.hpp"
#include "executor/train/rank_services.hpp"
#include "executor/train/worker.hpp"
#include "rheo/plan/memory_parts.hpp"
#include "rheo/plan/plan.hpp"
#include "rheo/recover/membership_plan.hpp"
#include "rheo/recover/protocol.hpp"
#include "rheo/units/exit_code.hpp"

namespace rheo::inline v0 {

struct training_end {
    leave_reason reason = leave_reason::finished;
    final_record record{};                 ///< as written by the reporter
    std::optional<step_id> resume_from{};  ///< state was lost, but there is a checkpoint; the same on all ranks
    steps_so_far so_far{};                 ///< of the steps before it
};

class trainer {
public:
    /// @param begins the generation that begins now
    /// @param planner makes the plans, the first one for all ranks at launch
    /// @param from the state to begin with; none: that of the seed  @param so_far what its steps were like
    /// @param begins moved from when it returns, and not when it throws
    trainer(job const& about, rank_services const& services, std::unique_ptr<mpi::generation>& begins, launch_id launch, step_planner planner,
            std::optional<checkpoint> from, steps_so_far so_far);

    /// Trains until the job ends. @throws what is an error and no loss: the caller must then leave alone.
    training_end run();

    /// The members that are left, for the caller to continue with.
    mpi::generation& members() { return *generation_; }
    std::unique_ptr<mpi::generation> release_members() { return std::move(generation_); }

    /// After an error in run(): the members, whose generation has ended here, with nothing pending.
    std::unique_ptr<mpi::generation> abandon();
    /// And whether this rank has made the generation's last agreement, which was not settled.
    bool generation_is_voted_down() const { return state_.phase == protocol_phase::shrinking; }

private:
    using state = protocol_state<membership_plan>;

    /// What runs in a section: the plan and its programs.
    struct section_programs {
        std::optional<section_work> work{};  ///< none: they are to be made
        rheo::plan plan{};
        std::vector<program> programs{};
        memory_parts planned_memory{};     ///< of this rank in a whole step
        parameter_bytes measured_state{};  ///< of this rank in that step, without reduced gradients
        flop_rate compute{};               ///< of all members' devices; 0: no description has them
    };

    /// What is known of an attempt when its section has ended, the same on every rank.
    struct attempt_result {
        step_totals totals{};
        joules energy{};             ///< of all ranks since the last settled attempt
        std::string not_finite{};    ///< where, when something is not finite
        std::string data_changed{};  ///< which file, when one was changed in place
    };

    protocol_event perform(run_section const& action);
    protocol_event perform(revoke_generation const& action);
    protocol_event perform(decide const& action);
    protocol_event perform(shrink const& action);
    protocol_event perform(link_generation const& action);
    protocol_event perform(exchange_holdings const& action);
    protocol_event perform(copy_state const& action);
    protocol_event perform(merge_staging const& action);
    protocol_event perform(update_state const& action);

    // a step
    void prepare_programs(section_work work);
    void report_other_schedules() const;
    void train_section(run_section const& action);
    void reduce_totals(run_section const& action, std::int64_t contributed_before);
    void add_energy(step_totals& totals, std::span<rank_id const> metered, joules counted) const;
    outcome verdict(run_section const& action) const;
    bool data_are_checked_after(step_id step) const;
    std::vector<rank_id> departing() const;
    void prepare_change(step_id after, std::vector<rank_id> const& leaving);
    void record_step(outcome found);

    // clocks
    void choose_clocks();
    std::span<megahertz const> clocks_of_row(plan_position place);
    std::span<megahertz const> carried_clocks_of(plan_position place, std::vector<instruction> const& row);

    // a recovery
    bool link_when_possible(link_generation const& action);
    void expect_same_plan();
    void give_up_half_done();
    void drop_accumulators();
    void took(recovery_log::phase field, seconds start);
    void keep_state_of_place(membership_plan const& next);
    void book_received(tensor_id arrived);
    void close_recovery(seconds first_instruction);
    step_planner const& coming_planner() const { return changes_.next() != nullptr ? *changes_.next() : planner_; }

    // the end
    void evaluate(step_id step);
    void close();
    void end_finished();
    void end_with_energy();
    void end_with_lost_state();
    std::vector<std::string> lost_state() const;
    void end_without_plan();
    bool save(tensor_holders const& holders);
    tensor_holders keepers() const;
    state_digest digest_of_state();
    void end_worker();
    std::string sample(plan_position const& place);

    bool is_reporter() const { return generation_->members.front() == self_; }
    void trace(activity kind, seconds start);

    job const* job_;
    rank_services const* with_;
    rank_id self_;
    step_planner planner_;
    fence fence_;
    std::unique_ptr<mpi::generation> generation_;
    std::unique_ptr<mpi::messenger> messages_;
    resident_state resident_;
    array<float> room_;  ///< for a piece of a gradient
    std::unique_ptr<worker> worker_;
    std::vector<staged_accumulator> staged_;
    state state_;
    protocol_action action_;
    section_programs section_;
    attempt_result attempt_;
    seconds attempt_began_;
    clock_follower clocks_;
    profile_sweep sweep_;
    safety_copying copies_;
    optimizer_step optimizer_;
    section_transport transport_;
    evaluation evaluation_;
    recovery_log recovery_;
    std::optional<checkpoint> from_;
    checkpointing checkpoints_;
    plan_changes changes_;
    bool regroup_ = false;                       ///< by the plan in force: a rank that waits would help, so places are dealt again after the step
    exit_code error_of_lost_ = exit_code::done;  ///< that of an error in which ranks have ended, agreed; done: none
    std::int64_t earlier_contributions_ = 0;     ///< of this rank's earlier workers
    steps_so_far so_far_;                        ///< of the committed steps
    training_end end_;
};

}  // namespace rheo::inline v0
