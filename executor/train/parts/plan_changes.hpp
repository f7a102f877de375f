#pragma once
// SPDX-License-Identifier: Apache-2.0

// Changes of the plan while the job runs: those that plan.changes schedules, and those that `rheo reshape` requests. After a step every rank plans the
// change from the same inputs. The protocol then puts it into force as it does for spares that join: exchange, copy, decide, merge. A change that
// cannot be made is refused with an error, and the job continues with its plan. If a rank is lost on the way, the change is planned again after the
// next step. Therefore ranks remove a change from the schedule only after a settled vote: then all of them do.

#include <optional>
#include <string>
#include <vector>

#include "executor/config/plan_change.hpp"
#include "executor/mpi/messenger.hpp"
#include "executor/records/records.hpp"
#include "executor/records/reshape_request.hpp"
#include "executor/train/job.hpp"
#include "executor/train/parts/step_planner.hpp"

namespace rheo::inline v0 {

/// What all members know at the end of a section.
struct members_after_step {
    step_id step;  ///< steps committed after this section
    membership_plan const& in_force;
    std::vector<rank_id> const& staying;  ///< members without those that leave, ascending
    bool is_reporter = false;             ///< this rank
};

class plan_changes {
public:
    plan_changes(job const& about, records& record);

    /// Whether the run folder has a request. Only the reporter calls it; the totals carry the result to all ranks.
    bool is_requested() const;

    /// Plans the change that is due after the step, if any. @param requested whether the reporter found a request  @throws mpi::peer_lost
    void prepare(mpi::messenger& messages, step_planner const& planner, members_after_step const& now, bool requested);

    /// The planner to use after the step if the plan changes; else null.
    step_planner const* next() const { return next_ ? &*next_ : nullptr; }
    /// The settings of that change; empty if the plan does not change.
    std::string text() const { return next_ ? due_->text : std::string{}; }

    /// The vote on the step is settled: reports a refusal.
    void settled(step_id step, bool is_reporter);
    /// Puts the change into force. @pre next()  @returns its planner
    step_planner merge(step_id step);
    /// Answers the request whose change is in force. @param message what moved and how long it took
    void finish(std::string const& message, bool is_reporter);
    /// Forgets what was planned: the generation has ended.
    void drop();

private:
    struct due_change {
        std::string text{};
        std::vector<std::vector<std::string>> settings{};  ///< of each change of the schedule, or of the request
        std::string error{};                               ///< why it is refused
        bool requested = false;                            ///< by `rheo reshape`; false: by the schedule
    };

    void share_request(mpi::messenger& messages, bool is_reporter);
    void remove_from_schedule(due_change const& done);
    void answer(reshape_answer const& answer);

    job const* job_;
    records* record_;
    std::vector<plan_change> schedule_;  ///< changes to come
    std::optional<due_change> due_;      ///< after the step
    std::optional<step_planner> next_;   ///< of the due change; none if it is refused
    std::optional<step_id> unanswered_;  ///< step of the requested change that is in force and not answered yet
};

}  // namespace rheo::inline v0
