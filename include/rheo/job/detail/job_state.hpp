#pragma once
// SPDX-License-Identifier: Apache-2.0

// The state of a simulated job, and how it begins, writes checkpoints, restarts and waits for ranks. Its steps and losses are in job_player.hpp.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "rheo/job/detail/job_ledger.hpp"
#include "rheo/job/detail/job_members.hpp"
#include "rheo/job/detail/job_times.hpp"
#include "rheo/job/detail/job_tracer.hpp"
#include "rheo/job/detail/plan_in_force.hpp"
#include "rheo/job/detail/plan_steps.hpp"
#include "rheo/job/job_event_source.hpp"
#include "rheo/job/simulated_job.hpp"
#include "rheo/plan/holdings_under.hpp"
#include "rheo/planner/make_replanning.hpp"
#include "rheo/recover/membership_plan.hpp"
#include "rheo/units/result.hpp"

namespace rheo::inline v0 {

namespace detail {

/// @tparam Model of the network
template <class Model>
class job_state {
public:
    job_state(job_state const&) = delete;  // parts of it point to others
    job_state& operator=(job_state const&) = delete;

protected:
    job_state(job_description const& job, job_event_source events, job_trace<>* trace)
        : job_{&job},
          steps_{job},
          times_{job},
          first_plans_{job},
          known_{make_replanning(job.model, job.request, job.ranks)},
          rules_{membership_rules_of(job.request)},
          members_{job.ranks, job.begins_with_ranks, std::move(events)},
          ledger_{job, members_, out_},
          tracer_{job, trace}
    {
    }

    ~job_state() = default;

    whole_nanoseconds in_time(seconds time, std::string const& what)
    {
        auto const whole = job_time(time, what);
        failure_ = whole ? failure_ : whole.error();
        return whole ? *whole : whole_nanoseconds{};
    }

    /// What a whole step comes to; nothing when that failed.
    std::optional<played_plan> whole_step()
    {
        auto account = in_force_.whole_step(steps_, members_.slowness());
        if (!account) {
            failure_ = account.error();
            return std::nullopt;
        }
        out_.fullest = std::max(out_.fullest, account->fullest);
        return *std::move(account);
    }

    /// The next loss, if it comes before that time and before the job ends.
    std::optional<whole_nanoseconds> loss_before(whole_nanoseconds time)
    {
        auto const loss = members_.next_loss(time);
        return loss && *loss < std::min(time, job_->until) ? loss : std::nullopt;
    }

    /// Ranks stop while they copy what they write; steps continue beside the writing. As in a run, none begins while another one is being written.
    void begin_checkpoint()
    {
        end_checkpoint(ledger_.now());
        if (writing_) {
            return;
        }
        auto const copied = ledger_.now() + in_time(times_.snapshot(static_cast<int>(members_.size())), "a copy of the state");
        if (auto const loss = loss_before(copied)) {
            ledger_.pass(&job_account::lost, *loss);
            return;
        }
        if (ledger_.pass(&job_account::checkpoint, copied)) {
            writing_ = checkpoint_in_writing{step_, copied, copied + in_time(times_.checkpoint(members_.nodes(rules_.node_size)), "a checkpoint")};
            ledger_.begin_keeping();
            end_checkpoint(copied);
        }
    }

    /// The one that is being written is there, if its writing ends by then.
    void end_checkpoint(whole_nanoseconds by)
    {
        if (writing_ && writing_->end <= by) {
            tracer_.checkpoint(members_.present(), writing_->step - 1, writing_->begin, writing_->end);
            checkpoint_ = writing_->step;
            ledger_.keep();
            writing_.reset();
        }
    }

    /// Ranks are lost, or all stop: one that is being written is given up.
    void give_up_checkpoint(whole_nanoseconds at)
    {
        end_checkpoint(at);
        if (writing_) {
            tracer_.checkpoint(members_.present(), writing_->step - 1, writing_->begin, at);
            writing_.reset();
        }
    }

    /// All ranks write one and wait for it. False when a loss comes before its end: the next step begins with that.
    bool write_checkpoint()
    {
        give_up_checkpoint(ledger_.now());
        auto const end = ledger_.now() + in_time(times_.checkpoint(members_.nodes(rules_.node_size)), "a checkpoint");
        auto const loss = loss_before(end);
        tracer_.checkpoint(members_.present(), step_ - 1, ledger_.now(), loss.value_or(end));
        if (loss) {
            ledger_.pass(&job_account::lost, *loss);
            return false;
        }
        keep_once_written(end);
        return true;
    }

    void keep_once_written(whole_nanoseconds end)
    {
        if (ledger_.pass(&job_account::checkpoint, end)) {
            checkpoint_ = step_;
            ledger_.begin_keeping();
            ledger_.keep();
        }
    }

    /// All ranks restart from the newest checkpoint.
    void restart(job_change_record record, std::string why)
    {
        record.what = job_change::restarted;
        record.why = std::move(why);
        record.lost_time += ledger_.undo();
        step_ = checkpoint_;
        in_force_.drop();
        pending_ = std::move(record);
    }

    /// Survivors have all state, but are too few: they write it and wait.
    void halt(job_change_record record, std::string why)
    {
        record.what = job_change::halted;
        record.why = std::move(why);
        pending_ = std::move(record);
        give_up_checkpoint(ledger_.now());
        auto const end = ledger_.now() + in_time(times_.checkpoint(members_.nodes(rules_.node_size)), "a checkpoint");
        tracer_.checkpoint(members_.present(), step_, ledger_.now(), end);
        keep_once_written(end);
        in_force_.drop();
    }

    /// Starts from the newest checkpoint with a plan for the present ranks, or waits for more.
    void begin_again()
    {
        members_.take_all(ledger_.now());
        auto const present = members_.present();
        auto const made = first_plans_.on(present);
        if (!made) {
            wait_for_ranks(made.error());
            return;
        }
        auto const phases = has_begun_ ? times_.restart(members_.nodes(rules_.node_size)) : recovery_times{};
        auto const end = ledger_.now() + in_time(total_time(phases), "a restart");
        auto const loss = loss_before(end);
        tracer_.phases(phases, present, tracer_.shows(step_) || !pending_ ? step_ : pending_->step, ledger_.now(), loss.value_or(end));
        if (loss) {
            ledger_.pass(&job_account::recovery, *loss);
            return;
        }
        if (ledger_.pass(&job_account::recovery, end)) {
            has_begun_ = true;
            auto const held = holdings_under(*made, array_view{present}, known_.cells_per_layer, known_.optimizer);
            in_force_.put(plan_as_chosen(held, known_, rules_, recomposition_of(*made)));
            note_pending(in_force_.places());
        }
    }

    void wait_for_ranks(std::string const& why)
    {
        auto const event = members_.next_event();
        if (!event) {
            out_.error = "the job stops at step " + std::to_string(step_) + ": " + why + ", and no rank returns";
            return;
        }
        if (pending_) {
            pending_->what = job_change::halted;
            pending_->why = why;
        }
        ledger_.pass(has_begun_ ? &job_account::halted : &job_account::creating, *event);
    }

    void note(job_change_record record, bytes copied)
    {
        record.copied = copied;
        record.ranks = in_force_.places();
        ledger_.note(std::move(record));
        tracer_.change();
    }

    /// A restart or halt has ended.
    void note_pending(int ranks)
    {
        if (pending_) {
            pending_->ranks = ranks;
            ledger_.note(*std::exchange(pending_, std::nullopt));
            tracer_.change();
        }
    }

    job_description const* job_;
    simulated_job out_;
    plan_steps<Model> steps_;
    change_times<Model> times_;
    first_plans<> first_plans_;
    replanning known_;
    membership_rules rules_;
    job_members<> members_;
    job_ledger<> ledger_;
    job_tracer<> tracer_;
    std::int64_t step_ = 0;
    struct checkpoint_in_writing {
        std::int64_t step;
        whole_nanoseconds begin;
        whole_nanoseconds end;
    };
    std::int64_t checkpoint_ = 0;  ///< step of the newest one
    std::optional<checkpoint_in_writing> writing_{};
    bool has_begun_ = false;
    plan_in_force<> in_force_;
    std::optional<job_change_record> pending_;  ///< a restart or halt that has not ended
    std::string failure_;
};

}  // namespace detail
}  // namespace rheo::inline v0
