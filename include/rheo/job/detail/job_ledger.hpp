#pragma once
// SPDX-License-Identifier: Apache-2.0

// The clock of a simulated job and its accounts: each advance of the clock is booked.

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "rheo/job/detail/job_history.hpp"
#include "rheo/job/detail/job_members.hpp"
#include "rheo/job/detail/played_plan.hpp"
#include "rheo/job/job_account.hpp"
#include "rheo/job/simulated_job.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

namespace detail {

template <class OnlyWhenCalled = void>
class job_ledger {
public:
    using time_class = whole_nanoseconds job_account::*;

    job_ledger(job_description const& job, job_members<> const& members, simulated_job& out) : job_{&job}, members_{&members}, out_{&out} {}

    whole_nanoseconds now() const { return now_; }
    bool is_over() const { return now_ >= job_->until; }

    /// Time passes up to `end`, in which ranks wait; or to where the job ends. @returns whether it came to `end`
    bool pass(time_class into, whole_nanoseconds end) { return pass(into, end, false); }

    /// A step, or the rest of one, ends. @returns false when the job ends in it
    bool end_step(played_plan const& account)
    {
        if (!advance(account, &job_account::good)) {
            return false;
        }
        add_good(account.time, account.parts);
        history_.settle(broken_.kept);
        broken_ = {};
        return true;
    }

    /// An evaluation ends. @returns false when the job ends in it
    bool end_evaluation(played_plan const& account)
    {
        if (!advance(account, &job_account::evaluation)) {
            return false;
        }
        out_->account.evaluation += account.time;
        since_.evaluation += account.time;
        return true;
    }

    /// A step breaks. What ranks have spent in it is lost, unless keep_of_step() says otherwise.
    /// @param computing what ended computations have drawn
    void break_step(whole_nanoseconds end, rank_step_times<> const& spent, joules computing)
    {
        broken_.time += end - now_;
        for (auto const part : rank_step_parts<>) {
            broken_.spent.*part += spent.*part;
        }
        pass(&job_account::lost, end, true);
        out_->computing += computing;
        out_->waiting -= (job_->clocks ? job_->clocks->request.costs.blocking : job_->cluster.device.waiting) * spent.computing;
    }

    /// So much of the time spent in the broken step so far need not be spent again: it is good. @returns how much more or less that is than before
    whole_nanoseconds keep_of_step(whole_nanoseconds kept)
    {
        kept = std::clamp(kept, whole_nanoseconds{}, broken_.time);
        auto const more = kept - broken_.kept;
        auto const parts = kept > whole_nanoseconds{} ? rounded_parts(broken_.spent, kept) : rank_step_times<whole_nanoseconds>{};
        for (auto const part : rank_step_parts<whole_nanoseconds>) {
            out_->good.*part += parts.*part - broken_.parts.*part;
            since_.parts.*part += parts.*part - broken_.parts.*part;
        }
        out_->account.good += more;
        out_->account.lost -= more;
        since_.good += more;
        broken_.kept = kept;
        broken_.parts = parts;
        return more;
    }

    /// What was done so far will stay if a checkpoint that begins now ends.
    void begin_keeping()
    {
        history_.settle(broken_.kept);
        history_.begin_keeping();
        broken_ = {};
        keeping_ = since_;
    }

    /// The checkpoint has ended. @pre one has begun
    void keep()
    {
        since_.good -= keeping_.good;
        since_.evaluation -= keeping_.evaluation;
        for (auto const part : rank_step_parts<whole_nanoseconds>) {
            since_.parts.*part -= keeping_.parts.*part;
        }
        history_.keep();
    }

    /// All that was good since the newest checkpoint is lost, evaluations, too. @returns how much that is
    whole_nanoseconds undo()
    {
        auto const undone = since_.good + since_.evaluation;
        out_->account.good -= since_.good;
        out_->account.evaluation -= since_.evaluation;
        out_->account.lost += undone;
        for (auto const part : rank_step_parts<whole_nanoseconds>) {
            out_->good.*part -= since_.parts.*part;
        }
        since_ = {};
        broken_ = {};
        history_.undo();
        return undone;
    }

    /// The classes over time.
    std::vector<job_time_span> history()
    {
        history_.settle(broken_.kept);
        return history_.take();
    }

    /// The job continues after a change of its members.
    void note(job_change_record record)
    {
        record.recovery = now_ - record.at;
        std::sort(record.lost.begin(), record.lost.end());
        out_->copied += record.copied;
        out_->changes.push_back(std::move(record));
    }

private:
    struct work_done {
        whole_nanoseconds good{};
        whole_nanoseconds evaluation{};
        rank_step_times<whole_nanoseconds> parts{};
    };
    struct broken_step {
        whole_nanoseconds time{};  ///< spent in its parts
        whole_nanoseconds kept{};  ///< of that
        rank_step_times<> spent{};
        rank_step_times<whole_nanoseconds> parts{};  ///< of what is kept
    };

    /// @param is_broken whether it is lost only if nothing of it is kept
    bool pass(time_class into, whole_nanoseconds end, bool is_broken)
    {
        auto const reached = std::min(end, job_->until);
        auto const takes = reached - now_;
        into = reached < end ? &job_account::unfinished : into;
        out_->account.*into += takes;
        history_.add(now_, reached, into, is_broken && reached == end);
        for (auto const rank : members_->present()) {
            out_->waiting += waiting_power(*job_, rank) * nanoseconds(static_cast<double>(takes.count));
        }
        now_ = reached;
        return reached == end;
    }

    /// What is played takes place. @returns false when the job ends in it
    bool advance(played_plan const& account, time_class into)
    {
        history_.add(now_, std::min(now_ + account.time, job_->until), now_ + account.time > job_->until ? &job_account::unfinished : into);
        if (now_ + account.time > job_->until) {
            out_->account.unfinished += job_->until - now_;
            now_ = job_->until;
            return false;
        }
        out_->computing += account.computing;
        out_->waiting += account.waiting;
        now_ += account.time;
        return true;
    }

    void add_good(whole_nanoseconds time, rank_step_times<whole_nanoseconds> const& parts)
    {
        for (auto const part : rank_step_parts<whole_nanoseconds>) {
            out_->good.*part += parts.*part;
            since_.parts.*part += parts.*part;
        }
        out_->account.good += time;
        since_.good += time;
    }

    job_description const* job_;
    job_members<> const* members_;
    simulated_job* out_;
    whole_nanoseconds now_{};
    work_done since_{};     ///< the newest checkpoint
    work_done keeping_{};   ///< of that, until the one began that is being written
    broken_step broken_{};  ///< the running step
    job_history<> history_;
};

}  // namespace detail
}  // namespace rheo::inline v0
