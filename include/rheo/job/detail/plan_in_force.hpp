#pragma once
// SPDX-License-Identifier: Apache-2.0

// The plan in force in a simulated job: its pipelines, what its members hold, and the account of a whole step.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "rheo/job/detail/plan_steps.hpp"
#include "rheo/job/rank_slowness.hpp"
#include "rheo/pipeline/instance.hpp"
#include "rheo/recover/membership_plan.hpp"
#include "rheo/topology/tagged_index.hpp"
#include "rheo/units/result.hpp"

namespace rheo::inline v0 {

namespace detail {

template <class OnlyWhenCalled = void>
class plan_in_force {
public:
    membership_plan const& operator*() const { return *plan_; }
    membership_plan const* operator->() const { return &*plan_; }
    /// False: the job does not run.
    explicit operator bool() const { return plan_.has_value(); }

    std::vector<rank_holdings> const& holdings() const { return plan_->salvage.after; }

    void put(membership_plan plan)
    {
        plan_ = std::move(plan);
        account_.reset();
        for (auto const& one : plan_->safety_copies) {  // kept up to date by second ranks
            for (auto& holds : plan_->salvage.after) {
                auto const place = std::lower_bound(holds.layers.begin(), holds.layers.end(), one.layer);
                if (holds.rank == one.to && (place == holds.layers.end() || *place != one.layer)) {
                    holds.layers.insert(place, one.layer);
                }
            }
        }
    }

    void drop()
    {
        plan_.reset();
        account_.reset();
    }

    /// The account of a whole step. @param slow how ranks are now
    template <class Steps>
    result<played_plan> whole_step(Steps& steps, rank_slowness const& slow)
    {
        if (!account_ || !(slow_then_ == slow)) {
            auto account = steps.whole_account(*plan_, slow);
            if (!account) {
                return account;
            }
            account_ = *std::move(account);
            slow_then_ = slow;
        }
        return *account_;
    }

    /// A step has ended: accumulators are empty.
    void commit()
    {
        for (auto& holds : plan_->salvage.after) {
            for (auto& use : holds.uses) {
                use.done.clear();
            }
        }
    }

    /// Adds members that hold nothing.
    void take_in(std::vector<rank_id> const& ranks)
    {
        for (auto const rank : ranks) {
            auto& after = plan_->salvage.after;
            auto const place = std::lower_bound(after.begin(), after.end(), rank, [](auto const& h, rank_id r) { return h.rank < r; });
            after.insert(place, {rank, {}, {}, {}});
            plan_->spares.insert(std::lower_bound(plan_->spares.begin(), plan_->spares.end(), rank), rank);
        }
        account_.reset();
    }

    /// Ranks with a place.
    int places() const
    {
        int ranks = 0;
        for (auto const& pipeline : plan_->pipelines) {
            ranks += static_cast<int>(ranks_of(pipeline).size());
        }
        return ranks;
    }

private:
    std::optional<membership_plan> plan_;
    std::optional<played_plan> account_;
    rank_slowness slow_then_;  ///< for which it is
};

}  // namespace detail
}  // namespace rheo::inline v0
