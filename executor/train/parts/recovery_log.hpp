#pragma once
// SPDX-License-Identifier: Apache-2.0

// The record of the recovery in progress: who was a member when it began, how long each phase took on this rank, what was lost, moved and
// salvaged. It opens with a loss or a regroup and is recorded with the first instruction after it.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "executor/os/launch_clock.hpp"
#include "executor/records/records.hpp"
#include "rheo/recover/membership_plan.hpp"
#include "rheo/recover/protocol.hpp"

namespace rheo::inline v0 {

/// What a merge moved and what it left to compute.
struct merge_account {
    bytes moved{};                                ///< of accumulators, all ranks
    std::optional<std::int64_t> pairs_of_step{};  ///< (use, item) pairs of a whole step; none: nothing is left to compute
    bool goes_on = false;                         ///< members leave, or ranks receive more: another round of the same recovery follows
};

class recovery_log {
public:
    using phase = seconds recovery_record::*;

    recovery_log(records& record, launch_clock clock) : record_{&record}, clock_{clock} {}

    /// This rank has got something done.
    void progress() { progress_ = clock_.now(); }
    seconds last_progress() const { return progress_; }

    bool is_open() const { return open_.has_value(); }
    void open(std::span<rank_id const> members);

    /// A peer was lost. @return whether that opens the record
    bool peer_lost(std::span<rank_id const> members);

    /// The phase took from `start` to now; `also`, in addition to what it took before. Nothing where no record is open.
    void took(phase field, seconds start);
    void also_took(phase field, seconds start);

    /// Members are left out. @pre a record is open
    void shrunk(generation_id generation, step_id step, attempt_id attempt, std::span<rank_id const> members, std::span<rank_id const> departed);
    /// Places change between two steps without a loss. @param change settings of the new plan; empty: spares join
    void regroups(generation_id generation, step_id step, std::span<rank_id const> members, std::string const& change);
    /// @param in_force the plan of a whole step from here on
    void merged(membership_plan const& members, plan in_force, merge_account const& account);
    seconds merged_at() const { return merged_at_; }

    /// @param first_instruction from the merge to it; 0: there was none  @pre a record is open  @returns what was recorded
    recovery_record close(seconds first_instruction, std::int64_t communicators);

    int recoveries() const { return recoveries_; }  ///< recorded so far

private:
    records* record_;
    launch_clock clock_;
    std::optional<recovery_record> open_;
    std::string change_;           ///< of the plan, not merged yet
    plan in_force_;                ///< since the last merge of the open record
    std::vector<rank_id> before_;  ///< members when it began
    seconds progress_;             ///< when this rank last got something done
    seconds merged_at_;
    bytes copied_in_rounds_{};  ///< before this one, in the same record
    int recoveries_ = 0;
};

}  // namespace rheo::inline v0
