#pragma once
// SPDX-License-Identifier: Apache-2.0

// The trainer performs what the protocol (rheo/recover/protocol.hpp) asks for, action by action, and
// answers with what happened. It decides nothing itself: who goes on, what is committed and what
// is done again are the protocol's. The loss of a peer is one of the things that happen.

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "executor/clocks/clock_sweep.hpp"
#include "executor/faults/fence.hpp"
#include "executor/mpi/messenger.hpp"
#include "executor/records/earlier_run.hpp"
#include "executor/state/resident_state.hpp"
#include "executor/state/transfer.hpp"
#include "executor/train/checkpointing.hpp"
#include "executor/train/job.hpp"
#include "executor/train/worker.hpp"
#include "rheo/energy/clocks/carried_clocks.hpp"
#include "rheo/energy/clocks/straggler.hpp"
#include "rheo/plan/plan.hpp"
#include "rheo/recover/membership_plan.hpp"
#include "rheo/recover/protocol.hpp"

namespace rheo::inline v0 {

struct training_end {
    leave_reason reason = leave_reason::finished;
    final_record record;  ///< as written by the reporter
    std::optional<step_id> resume_from{};  ///< state was lost, but there is a checkpoint; the same on all ranks
    steps_so_far so_far{};                  ///< of the steps before it
};

class trainer {
public:
    /// @param begins the generation that begins now
    /// @param first the plan to begin with, for all ranks at launch
    /// @param from the state to begin with; none: that of the seed  @param so_far what its steps were like
    /// @param begins moved from when it returns, and not when it throws
    trainer(job const& about, std::unique_ptr<mpi::generation>& begins, launch_id launch, plan first, replanning known, std::optional<checkpoint> from,
            steps_so_far so_far);

    /// Trains until the job ends. @throws what is an error and no loss: the caller must then leave alone.
    training_end run();

    /// The members that are left, for the caller to go on with.
    mpi::generation& members() { return *generation_; }
    std::unique_ptr<mpi::generation> release_members() { return std::move(generation_); }

    /// After an error in run(): the members, whose generation has ended here, with nothing pending.
    std::unique_ptr<mpi::generation> abandon();
    /// And whether this rank has made the generation's last agreement, which was not settled.
    bool generation_is_voted_down() const { return state_.phase == protocol_phase::shrinking; }

private:
    using state = protocol_state<membership_plan>;

    protocol_event perform(run_section const& action);
    protocol_event perform(revoke_generation const& action);
    protocol_event perform(decide const& action);
    protocol_event perform(shrink const& action);
    protocol_event perform(link_generation const& action);
    protocol_event perform(exchange_holdings const& action);
    protocol_event perform(copy_state const& action);
    protocol_event perform(merge_staging const& action);
    protocol_event perform(update_state const& action);

    membership_plan plan_for(std::vector<rank_holdings> const& holdings, membership_plan const& in_force, std::vector<rank_id> const& departing);
    bool link_when_possible(link_generation const& action);
    void expect_same_plan();
    void give_up_half_done();
    void book_received(tensor_id arrived);
    void copy_kept_layers();
    void pass_gradients_on();
    plan plan_in_force(section_work work) const;
    plan whole_step(membership_plan const& p) const;
    void report_other_schedules() const;
    void choose_clocks();
    chosen_clocks clocks_for(plan const& whole);
    void precompute_clocks();
    void report_precomputed_clocks();
    void watch_for_stragglers();
    std::span<megahertz const> clocks_of_row(plan_position place);
    std::span<megahertz const> carried_to(plan_position place, std::vector<instruction> const& row);
    bool sweeps() const { return job_->device != nullptr && !job_->config.power.sweep.empty() && !sweep_.ended(); }
    void note_sweep(bool committed);
    void gather_sweep();
    void write_sweep();
    std::vector<program> const& programs_for(section_work work);
    outcome reduce_scalars(run_section const& action);
    bool data_are_checked_after(step_id step) const;
    void evaluate(step_id step);
    void close();
    void end_finished();
    bool save(tensor_holders const& holders);
    void look_for_checkpoint(std::vector<std::int64_t>& words);
    std::string sample();
    std::int64_t drawn_token(stage const& layers, activation const& kept, std::int64_t row, int number) const;
    std::string broadcast_from_holder(std::string const& mine);
    state_digest digest_of_state();
    void update_parameters(step_id step);
    double targets_of_step() const { return static_cast<double>(std::max<std::int64_t>(1, loss_.targets)); }
    bool is_reporter() const { return generation_->members.front() == self_; }
    seconds since(seconds start) const { return {job_->clock.now().count - start.count}; }
    void trace(activity what, seconds start);
    void close_recovery_record(seconds first_instruction);

    job const* job_;
    rank_id self_;
    plan first_;
    replanning known_;
    membership_rules rules_;
    fence fence_;
    std::unique_ptr<mpi::generation> generation_;
    std::unique_ptr<mpi::messenger> messages_;
    resident_state resident_;
    std::unique_ptr<worker> worker_;
    std::vector<staged_accumulator> staged_;
    state state_;
    protocol_action action_;

    // the plan in force and its programs
    plan plan_;
    std::vector<program> programs_;
    std::optional<section_work> programs_are_for_;
    bytes planned_activations_;      ///< of this rank in a whole step

    // clocks and energy
    stragglers stragglers_;          ///< the same on every rank that has committed the same steps
    chosen_clocks chosen_{};         ///< for a whole step of the plan in force
    bool clocks_are_chosen_ = false; ///< since the members and who is slow have changed the last time
    std::string reported_clocks_;
    bool clocks_are_precomputed_ = false;  ///< those that a loss would lead to are made, or being made
    std::vector<kind_clock> carried_;///< of this rank's row in chosen_: for what is not a whole step
    std::vector<megahertz> carried_row_;  ///< the clocks of such a row
    joules energy_before_{};         ///< of this rank, when scalars were reduced the last time
    joules energy_;                  ///< of all ranks since the last settled attempt, reduced
    std::vector<double> slowness_;   ///< of each member, reduced
    joules computing_;               ///< what computations of all ranks drew in the last section, reduced
    seconds reduced_at_;             ///< when scalars were reduced the last time
    seconds since_reduced_;          ///< from then to the time before that
    joules drawn_{};                 ///< by this rank in that time

    // a profile made in this training
    clock_sweep sweep_;
    sweep_rows swept_;                   ///< by this rank
    std::vector<megahertz> sweep_clocks_;  ///< of this rank's device
    std::size_t sweep_count_ = 1;        ///< clocks that every rank has, reduced
    std::vector<megahertz> sweep_row_;   ///< the clock that is tried, for each computation
    std::optional<sweep_rows> gathered_; ///< of all ranks; counts when the attempt is settled
    bool sweep_written_ = false;

    // copies for safety, by the plan in force: all ranks know of all
    struct kept_gradient {
        tensor_id tensor;
        array<float> values;  ///< in messages
    };
    std::vector<copy> kept_;                     ///< tensor -> who keeps it besides its holder
    std::vector<kept_gradient> kept_gradients_;  ///< of the tensors that this rank keeps

    /// Elements of a gradient that are turned into floats at a time where that is no buffer of its own.
    static constexpr std::int64_t gradient_piece = std::int64_t{1} << 22;
    array<float> room_;              ///< for a piece

    // of the attempt in progress, the same on every rank once reduced
    std::vector<double> squares_;    ///< tensor -> sum of squares of its reduced gradient
    std::vector<float> maxima_;      ///< by scale: the largest |g| of all contributions
    loss_sum loss_;
    std::string not_finite_;         ///< where, when something is not finite
    std::string data_changed_;       ///< which file, when one was changed in place
    seconds section_began_;
    double validation_loss_ = 0;
    step_id evaluated_{-1};          ///< the last evaluation recorded: one that is repeated after a loss is not recorded twice
    steps_so_far so_far_;            ///< of the committed steps
    double gradient_norm_ = 0;

    // of the recovery in progress
    std::optional<recovery_record> recovery_;
    std::vector<rank_id> departing_;       ///< reduced: who wants to leave after the step
    bool regroup_ = false;                 ///< by the plan in force: a rank that waits would help, so places are dealt anew after the step
    std::int64_t copied_for_departing_ = 0;  ///< bytes of the round before the shrink, in the same record
    seconds progress_;               ///< when this rank last got something done
    seconds merged_at_;
    int recoveries_ = 0;
    std::vector<rank_id> before_;    ///< members when the recovery began
    std::int64_t pairs_by_me_ = 0;   ///< contributions of this rank's earlier workers
    std::int64_t contributed_before_ = 0;  ///< by this rank's worker, when the section began
    std::int64_t pairs_of_section_ = 0;    ///< contributions of all ranks in the last section, the same on every rank
    final_record end_;
    std::optional<checkpoint> from_;
    checkpointing checkpoints_;
    bool wants_checkpoint_ = false;  ///< reduced: some rank's time is up
    std::optional<step_id> resume_from_;
    steps_so_far resume_totals_;
    int error_of_lost_ = 0;          ///< the exit code of an error in which ranks have ended, agreed; 0: none
};

}  // namespace rheo::inline v0
