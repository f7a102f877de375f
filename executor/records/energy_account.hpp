#pragma once
// SPDX-License-Identifier: Apache-2.0

// What the ranks of a job have drawn. At each reduction of scalars each contributes its device's count, and that counts when the attempt
// is settled: what was drawn in one that came to nothing is part of the next one that is. A lost rank contributes nothing any more; what it
// had last shown to the others of its host (executor/faults/watchdog.hpp) is counted instead, once; where no rank saw it, it is missing, and the account says so.
// The same on every rank that has settled the same attempts.

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "rheo/topology/tagged_index.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

/// What was drawn before, by the records of the run that is continued with.
struct energy_so_far {
    joules energy{};
    std::int64_t tokens = 0;  ///< of committed steps whose energy is known

    friend bool operator==(energy_so_far, energy_so_far) = default;
};

/// Of the records of a run folder. @param from the step from which the run continues: later ones are committed again
energy_so_far energy_of_records(std::string const& folder, step_id from);

class energy_account {
public:
    /// @param launched all ranks of the job  @param tokens_per_step when it is committed
    energy_account(std::span<rank_id const> launched, energy_so_far before, std::int64_t tokens_per_step);

    /// The state is that after so many steps: later ones are committed again. Called when a job begins, and when it goes back to a checkpoint.
    void resume_from(step_id step);

    /// The ranks whose counts are reduced, in the order of the numbers: the members, and those that are gone and not accounted for.
    std::vector<rank_id> ranks() const;

    /// All counts are here. @param known of each of ranks(): 1 when any rank knows its count  @param counts what its device has counted by now
    /// @return what all of them have drawn since the last settled attempt
    joules update(std::span<rank_id const> members, std::span<double const> known, std::span<double const> counts);

    /// The attempt of the last update is settled. @return lost ranks whose last joules are unknown
    std::vector<rank_id> settled(bool committed);

    joules total() const { return total_; }                                      ///< in all settled attempts
    std::int64_t tokens() const { return before_ + steps_ * tokens_per_step_; }  ///< of the committed steps among them
    std::vector<rank_id> const& missing() const { return missing_; }             ///< ranks that drew more than was counted

private:
    std::map<rank_id, joules> counted_;  ///< of each rank, as of the last settled attempt
    std::map<rank_id, joules> pending_;  ///< as it will be
    std::vector<rank_id> lacks_;         ///< of the last update
    joules drawn_{};
    joules total_{};
    std::int64_t tokens_per_step_;
    std::int64_t before_;     ///< tokens that records of before know
    std::int64_t steps_ = 0;  ///< committed since then
    step_id first_{-1};       ///< of those; -1: the job has not begun
    std::vector<rank_id> missing_;
};

}  // namespace rheo::inline v0
