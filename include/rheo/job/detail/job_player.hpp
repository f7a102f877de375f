#pragma once
// SPDX-License-Identifier: Apache-2.0

// The player of a job: steps of the plan in force, until something happens to its ranks; then what the functions of a run decide.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rheo/job/detail/broken_step.hpp"
#include "rheo/job/detail/job_state.hpp"
#include "rheo/job/detail/job_times.hpp"
#include "rheo/job/detail/plan_steps.hpp"
#include "rheo/job/job_event_source.hpp"
#include "rheo/job/simulated_job.hpp"
#include "rheo/recover/membership_plan.hpp"
#include "rheo/units/result.hpp"

namespace rheo::inline v0 {

namespace detail {

/// @tparam Model of the network  @tparam Observer is called when a step commits: (step, begin, its account, number of present ranks)
template <class Model, class Observer>
class job_player : job_state<Model> {
public:
    job_player(job_description const& job, job_policy policy, job_event_source events, Observer& observer, job_trace<>* trace)
        : state{job, std::move(events), trace}, policy_{policy}, observer_{&observer}
    {
    }

    result<simulated_job> play()
    {
        while (!is_done() && !ledger_.is_over() && failure_.empty() && out_.error.empty()) {
            if (++fruitless_ > most_fruitless) {
                out_.error = "the job stops at step " + std::to_string(step_) + ": losses come faster than recoveries end; no step has ended in " +
                             std::to_string(most_fruitless) + " attempts";
                break;
            }
            if (tracer_.is_too_large()) {
                failure_ = "the steps shown have more than " + std::to_string(tracer_.most()) + " events";
            } else if (!in_force_) {
                begin_again();
            } else if (members_.take_until(ledger_.now())) {
                lose_between_steps();
            } else if (step_ == job_->steps) {
                is_ended_ = evaluate();
            } else if (!regroup() && (!is_evaluation_due() || evaluate())) {
                play_whole_step();
            }
        }
        if (!failure_.empty()) {
            return failure{failure_};
        }
        note_pending(0);
        give_up_checkpoint(ledger_.now());
        out_.plans = steps_.plans();
        out_.account.steps = step_;
        out_.account.end = ledger_.now();
        out_.history = ledger_.history();
        expects(total_time(out_.account) == out_.account.end, "each nanosecond of a job is in one account");
        expects(total_time(out_.good) == out_.account.good, "each nanosecond of a step is in one part");
        return std::move(out_);
    }

private:
    using state = job_state<Model>;
    using ready_part = typename plan_steps<Model>::ready_part;
    using state::begin_again;
    using state::begin_checkpoint;
    using state::checkpoint_;
    using state::end_checkpoint;
    using state::failure_;
    using state::give_up_checkpoint;
    using state::halt;
    using state::in_force_;
    using state::in_time;
    using state::job_;
    using state::known_;
    using state::ledger_;
    using state::loss_before;
    using state::members_;
    using state::note;
    using state::note_pending;
    using state::out_;
    using state::restart;
    using state::rules_;
    using state::step_;
    using state::steps_;
    using state::times_;
    using state::tracer_;
    using state::whole_step;
    using state::write_checkpoint;
    using state::writing_;

    static constexpr int most_fruitless = 20'000;

    bool is_done() const { return step_ == job_->steps && (job_->eval_microbatches == 0 || is_ended_); }

    /// Before the step that is next.
    bool is_evaluation_due() const
    {
        return job_->eval_microbatches > 0 && job_->eval_every > 0 && step_ > 0 && step_ < job_->steps && step_ % job_->eval_every == 0;
    }

    /// @returns whether it ended: without losses, and before the job
    bool evaluate()
    {
        auto const account = in_force_.evaluation(steps_, members_.slowness());
        if (!account) {
            failure_ = account.error();
            return false;
        }
        auto const begin = ledger_.now();
        auto const loss = loss_before(begin + account->time);
        if (auto const step = std::min(step_, job_->steps - 1); tracer_.shows(step)) {
            auto const part = steps_.evaluation(*in_force_, members_.slowness());
            tracer_.evaluation(part, loss ? std::vector<trace_event>{} : steps_.events_of(part, false), step, begin, loss.value_or(begin + account->time));
        }
        if (loss) {
            ledger_.pass(&job_account::lost, *loss);
            lose_between_steps(*loss - begin);
            return false;
        }
        return ledger_.end_evaluation(*account);
    }

    void play_whole_step()
    {
        auto const account = whole_step();
        if (!account) {
            return;
        }
        auto const begin = ledger_.now();
        if (auto const loss = loss_before(begin + account->time)) {
            lose(steps_.whole(*in_force_, members_.slowness()), *loss);
        } else if (ledger_.end_step(*account)) {
            if (tracer_.shows(step_)) {
                show(steps_.whole(*in_force_, members_.slowness()), begin);
            }
            commit(*account);
        }
    }

    void show(ready_part const& part, whole_nanoseconds begin) { tracer_.part(part, steps_.events_of(part, true), step_, begin); }

    /// A part that began now, up to its losses. @param stops whether survivors don't finish what they compute
    void show_broken(ready_part const& part, whole_nanoseconds heard, bool stops)
    {
        if (tracer_.shows(step_)) {
            auto events = steps_.events_to_losses(part, members_.lost(), ledger_.now(), heard);
            if (stops) {
                cut_at(events, trace_time(heard - ledger_.now()));
            }
            tracer_.part(part, events, step_, ledger_.now());
        }
    }

    void commit(played_plan const& account)
    {
        (*observer_)(step_, ledger_.now() - account.time, account, members_.size());
        ++step_;
        fruitless_ = 0;
        out_.few_copies += static_cast<int>(in_force_->pipelines.size()) <= job_->request.failures ? account.time : whole_nanoseconds{};
        if (job_->checkpoint_every > 0 && step_ % job_->checkpoint_every == 0 && step_ < job_->steps) {
            begin_checkpoint();
        }
    }

    /// Members are lost in a part of a step that began now. @param first when the first of them is
    void lose(ready_part const& part, whole_nanoseconds first)
    {
        auto const begin = ledger_.now();
        auto const heard = first + in_time(times_.detection(), "detection");
        give_up_checkpoint(first);
        members_.take_losses(heard);
        job_change_record record{.at = first, .step = step_, .what = job_change::recovered, .lost = members_.lost_ranks(), .lost_time = first - begin};
        if (policy_ == job_policy::checkpoint) {
            show_broken(part, heard, true);
            ledger_.pass(&job_account::lost, first);
            restart(std::move(record), "the policy");
            return;
        }
        auto const played = steps_.play_to_losses(part, members_.lost(), begin, heard);
        if (!played) {
            failure_ = played.error();
            return;
        }
        bool const keeps = policy_ == job_policy::rheo;
        auto holdings = holdings_of_survivors(in_force_.holdings(), record.lost, part, *played, known_, keeps);
        auto planned = plan_membership(holdings, in_force_->pipelines, {}, known_, rules_);
        show_broken(part, heard, !planned.salvage.lost.empty() || !planned.error.empty());
        ledger_.break_step(first, times_of_survivors(*played), steps_.drawn_in(part, *played));
        auto const left = std::max(heard, begin + in_time(played->end, "a step"));
        recover(std::move(holdings), std::move(planned), left, std::move(record));
    }

    /// Members are lost now, where no step is under way. @param lost time of the evaluation that is
    void lose_between_steps(whole_nanoseconds lost = {})
    {
        auto const heard = ledger_.now() + in_time(times_.detection(), "detection");
        give_up_checkpoint(ledger_.now());
        members_.take_losses(heard);
        job_change_record record{.at = ledger_.now(), .step = step_, .what = job_change::recovered, .lost = members_.lost_ranks(), .lost_time = lost};
        if (policy_ == job_policy::checkpoint) {
            restart(std::move(record), "the policy");
            return;
        }
        auto holdings = without_ranks(in_force_.holdings(), record.lost);
        auto planned = plan_membership(holdings, in_force_->pipelines, {}, known_, rules_);
        recover(std::move(holdings), std::move(planned), heard, std::move(record));
    }

    /// Survivors recover together; a further loss restarts the recovery. @param left when the last of them is out of the step
    void recover(std::vector<rank_holdings> holdings, membership_plan planned, whole_nanoseconds left, job_change_record record)
    {
        for (auto first = record.at; failure_.empty();) {
            if (!planned.salvage.lost.empty()) {
                auto const layer = layer_of_cell(planned.salvage.lost.front(), known_.cells_per_layer);
                restart(std::move(record), "no survivor holds layer " + std::to_string(layer.value));
                return;
            }
            if (!planned.error.empty()) {
                halt(std::move(record), planned.error);
                return;
            }
            auto const copies = copies_of(planned, known_, job_->request.policy);
            auto const phases = times_.recovery(copies, members_.slowness().links);
            auto const end = left + in_time(total_time(phases), "a recovery");
            auto const again = loss_before(end);
            tracer_.detection(members_.present(), step_, first, first + in_time(times_.detection(), "detection"));
            tracer_.phases(phases, members_.present(), step_, left, again.value_or(end));
            if (!again) {
                if (ledger_.pass(&job_account::recovery, end)) {
                    finish_step(std::move(planned), copies.moved, std::move(record));
                }
                return;
            }
            ledger_.pass(&job_account::recovery, *again);
            auto const heard = *again + in_time(times_.detection(), "detection");
            left = std::max(left, heard);
            first = *again;
            members_.take_losses(heard);
            auto const lost = members_.lost_ranks();
            record.lost.insert(record.lost.end(), lost.begin(), lost.end());
            holdings = without_ranks(std::move(holdings), lost);
            planned = plan_membership(holdings, in_force_->pipelines, {}, known_, rules_);
        }
    }

    /// The rest of the step, under the new plan. Of the time spent in the step, as large a part is good as the rest is shorter than a whole step.
    void finish_step(membership_plan planned, bytes moved, job_change_record record)
    {
        if (step_ == job_->steps) {
            in_force_.put(std::move(planned));
            note(std::move(record), moved);
            return;
        }
        auto const before = whole_step();
        in_force_.put(std::move(planned));
        auto const in_force = *in_force_;  // a loss on the way replaces the plan in force
        auto const part = steps_.rest(in_force, members_.slowness());
        auto const rest = steps_.account_of_part(part);
        auto const whole = whole_step();
        if (!rest || !before || !whole) {
            failure_ = rest ? failure_ : rest.error();
            return;
        }
        auto const saved = 1.0 - rest->time / whole->time;
        record.lost_time -= ledger_.keep_of_step({static_cast<std::int64_t>(saved * static_cast<double>(before->time.count))});
        note(std::move(record), moved);
        if (is_evaluation_due() && !evaluate()) {
            return;
        }
        auto const begin = ledger_.now();
        if (auto const loss = loss_before(begin + rest->time)) {
            lose(part, *loss);
        } else if (ledger_.end_step(*rest)) {
            if (tracer_.shows(step_)) {
                show(part, begin);
            }
            in_force_.commit();
            commit(*rest);
        }
    }

    /// Returned ranks are taken in where that helps, drained ranks leave. False if nothing changes.
    bool regroup()
    {
        auto const leaving = members_.leaving();
        if (!members_.has_waiting() && leaving.empty()) {
            return false;
        }
        if (policy_ == job_policy::checkpoint) {
            return regroup_by_checkpoint(leaving);
        }
        in_force_.take_in(members_.take_waiting());
        if (leaving.empty() && !would_regroup(*in_force_, known_, rules_)) {
            return false;
        }
        job_change_record record{.at = ledger_.now(), .step = step_, .what = job_change::regrouped, .lost = leaving};
        auto planned = plan_membership(in_force_.holdings(), in_force_->pipelines, array_view{leaving}, known_, rules_);
        if (!planned.error.empty()) {
            members_.leave();
            halt(std::move(record), planned.error);
            return true;
        }
        auto const copies = copies_of(planned, known_, job_->request.policy);
        auto const phases = times_.regrouping(copies, members_.slowness().links);
        auto const end = ledger_.now() + in_time(total_time(phases), "a change of members");
        auto const loss = loss_before(end);
        tracer_.phases(phases, members_.present(), step_, ledger_.now(), loss.value_or(end));
        if (loss) {
            ledger_.pass(&job_account::recovery, *loss);  // the change is not in force
        } else if (ledger_.pass(&job_account::recovery, end)) {
            members_.leave();
            planned.salvage.after = without_ranks(std::move(planned.salvage.after), leaving);
            std::erase_if(planned.spares, [&](auto rank) { return std::binary_search(leaving.begin(), leaving.end(), rank); });
            in_force_.put(std::move(planned));
            note(std::move(record), copies.moved);
        }
        return true;
    }

    /// A job that restarts for every change does so at a checkpoint, which all ranks wait for; for ranks that leave it writes one.
    bool regroup_by_checkpoint(std::vector<rank_id> const& leaving)
    {
        end_checkpoint(ledger_.now());
        if (step_ != checkpoint_) {
            bool const is_due = writing_ && writing_->step == step_;
            if (leaving.empty() && !is_due) {
                return false;
            }
            if (!write_checkpoint()) {
                return true;
            }
        }
        if (!ledger_.is_over()) {
            job_change_record record{.at = ledger_.now(), .step = step_, .what = job_change::restarted, .lost = leaving};
            members_.leave();
            restart(std::move(record), "its members change");
        }
        return true;
    }

    job_policy policy_;
    Observer* observer_;
    int fruitless_ = 0;      ///< attempts since the last step ended
    bool is_ended_ = false;  ///< evaluation at the end, too
};

}  // namespace detail
}  // namespace rheo::inline v0
