#pragma once
// SPDX-License-Identifier: Apache-2.0

// The plan in force in a simulated job: its pipelines, what its members hold, and the accounts of a whole step and of an evaluation.

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
        forget_accounts();
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
        forget_accounts();
    }

    /// The account of a whole step. @param slow how ranks are now
    template <class Steps>
    result<played_plan> whole_step(Steps& steps, rank_slowness const& slow)
    {
        return known(step_, slow, [&] { return steps.whole_account(*plan_, slow); });
    }

    /// The same of an evaluation.
    template <class Steps>
    result<played_plan> evaluation(Steps& steps, rank_slowness const& slow)
    {
        return known(evaluation_, slow, [&] { return steps.evaluation_account(*plan_, slow); });
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
        forget_accounts();
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
    struct known_account {
        std::optional<played_plan> account{};
        rank_slowness slow_then{};  ///< for which it is
    };

    template <class Account>
    static result<played_plan> known(known_account& of, rank_slowness const& slow, Account const& play)
    {
        if (!of.account || !(of.slow_then == slow)) {
            auto account = play();
            if (!account) {
                return account;
            }
            of = {*std::move(account), slow};
        }
        return *of.account;
    }

    void forget_accounts()
    {
        step_.account.reset();
        evaluation_.account.reset();
    }

    std::optional<membership_plan> plan_;
    known_account step_;
    known_account evaluation_;
};

}  // namespace detail
}  // namespace rheo::inline v0
