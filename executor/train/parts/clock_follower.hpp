#pragma once
// SPDX-License-Identifier: Apache-2.0

// The clocks of the plan in force: those of a whole step, those that its remainder and an evaluation carry over from them, and those that
// contingency plans would have, precomputed. It follows who is slow. All members have the same numbers, so all take other clocks in the same step.

#include <span>
#include <string>
#include <vector>

#include "executor/clocks/frontier_cache.hpp"
#include "executor/os/launch_clock.hpp"
#include "executor/records/records.hpp"
#include "rheo/energy/clocks/carried_clocks.hpp"
#include "rheo/energy/clocks/straggler.hpp"
#include "rheo/planner/contingency_plans.hpp"
#include "rheo/units/result.hpp"

namespace rheo::inline v0 {

class clock_follower {
public:
    /// @param frontiers none: plans have no clocks, and nothing is chosen
    clock_follower(frontier_cache* frontiers, records& record, launch_clock clock) : frontiers_{frontiers}, record_{&record}, clock_{clock} {}

    bool follows() const { return frontiers_ != nullptr; }

    /// The clocks of a plan for those who are slow now. @param is_recovery note the frontiers that had not been precomputed  @pre follows()
    result<chosen_clocks> clocks_for(plan const& whole, bool is_recovery);

    /// Chooses those of a whole step of the plan in force. Where there are none the highest are taken. @param self whose row it carries over to what is
    /// not a whole step  @param is_quiet what was chosen is not noted  @pre follows()
    void choose(plan const& whole, rank_id self, bool is_recovery, bool is_quiet);
    bool must_choose() const { return follows() && !are_chosen_; }
    chosen_clocks const& chosen() const { return chosen_; }  ///< empty: the highest

    /// For a row that is not a whole step's, on the same stages; empty: the highest. Valid until the next call.
    std::span<megahertz const> carried_to(std::vector<instruction> const& row, int stages);

    /// Begins to make the clocks of these plans.
    void precompute(contingency_plans plans);
    bool must_precompute() const { return follows() && !are_precomputed_; }  ///< nothing was begun since the last merge
    /// What that cost, when it is done.
    void report_precomputed(bool is_reporter);

    /// The members have changed: clocks are chosen and precomputed again.
    void merged() { are_chosen_ = are_precomputed_ = false; }

    /// Slowness of the members in a settled attempt. @return whether clocks are to be chosen again
    bool observe_slowness(std::span<rank_id const> members, std::span<double const> slowness, straggler_rule rule);

private:
    frontier_cache* frontiers_;
    records* record_;
    launch_clock clock_;
    stragglers stragglers_;  ///< the same on every rank that has committed the same steps
    chosen_clocks chosen_{};
    bool are_chosen_ = false;       ///< since the members and who is slow have changed the last time
    bool are_precomputed_ = false;  ///< or are being
    std::string noted_;
    std::vector<kind_clock> carried_;  ///< of this rank's row in chosen_
    std::vector<megahertz> carried_row_;
};

}  // namespace rheo::inline v0
