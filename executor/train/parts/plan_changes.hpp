#pragma once
// SPDX-License-Identifier: Apache-2.0

// Changes of the plan while the job runs: those of plan.changes when their step has come, and those that `rheo reshape` asks for. A change is planned
// between two steps, on all ranks alike, and put into force on the road of ranks that wait: exchange, copy, decide, merge. One that cannot be
// made is refused in a sentence, and the job goes on as it was. A loss on the way drops what was planned; it is planned again after the next step. So
// what is done with is forgotten only where all ranks know that the others forget it: after a settled vote.

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

/// What all members know when a section has ended.
struct members_after_step {
    step_id step;                         ///< committed then
    membership_plan const& in_force;
    std::vector<rank_id> const& staying;  ///< members without those that leave, ascending
    bool is_reporter = false;             ///< this rank
};

class plan_changes {
public:
    plan_changes(job const& about, records& record);

    /// Whether a request waits in the run folder. The reporter looks, and the answer goes with the totals.
    bool is_requested() const;

    /// Plans what is due after the step. @param requested whether the reporter has found a request  @throws mpi::peer_lost
    void prepare(mpi::messenger& messages, step_planner const& planner, members_after_step const& now, bool requested);

    /// The planner that a change brings after the step; null when none comes.
    step_planner const* next() const { return next_ ? &*next_ : nullptr; }
    /// The settings of that change. @pre next()
    std::string const& text() const { return wanted_->text; }

    /// The step is settled: a refusal is final.
    void settled(step_id step, bool is_reporter);
    /// The change is in force. @pre next()  @returns its planner
    step_planner merge(step_id step);
    /// The first instruction after it. @param message what moved, for the answer to a request
    void finish(std::string const& message, bool is_reporter);
    /// The generation has ended, and nothing of this with it.
    void drop();

private:
    struct wish {
        std::string text{};
        std::vector<std::vector<std::string>> changes{};  ///< settings of each
        std::string error{};                              ///< why it cannot be
        bool requested = false;                           ///< by a file, else by the schedule
    };

    void share_request(mpi::messenger& messages, bool is_reporter);
    void forget_schedule(wish const& done);
    void answer(reshape_answer const& answer);

    job const* job_;
    records* record_;
    std::vector<plan_change> schedule_;      ///< what is to come
    std::optional<wish> wanted_;             ///< what is due after the step
    std::optional<step_planner> next_;       ///< where it can be made
    std::optional<step_id> unanswered_;      ///< a request that is in force since this step
};

}  // namespace rheo::inline v0
