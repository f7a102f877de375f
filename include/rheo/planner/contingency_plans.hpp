#pragma once
// SPDX-License-Identifier: Apache-2.0

// The plans to which losses may lead, one after the other, the likeliest first: the loss of each rank, of each node, of each two ranks, and then what the
// templates make of every smaller number of ranks. Clocks for them are precomputed. Two losses that lead to pipelines of the same cuts and
// shares need the same frontiers, so there are far fewer of those than plans.

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "rheo/pipeline/instantiate.hpp"
#include "rheo/plan/plan.hpp"
#include "rheo/planner/make_replanning.hpp"
#include "rheo/recover/membership_plan.hpp"
#include "rheo/topology/holdings.hpp"

namespace rheo::inline v0 {

class contingency_plans {
public:
    /// Above so many ranks pairs are left out: there are too many, and the numbers of ranks that follow have most of their pipelines.
    static constexpr std::size_t most_ranks_for_pairs = 32;

    /// @param like the plan in force, for a whole step  @param in_force the same with what each member holds
    template <class OnlyWhenCalled = void>
    contingency_plans(plan like, membership_plan in_force, replanning known, membership_rules rules)
        : like_{std::move(like)},
          in_force_{std::move(in_force)},
          known_{std::move(known)},
          rules_{rules},
          ranks_{known_.regroup ? 0 : static_cast<int>(in_force_.salvage.after.size()) - 1}
    {
        auto const& members = in_force_.salvage.after;
        for (auto const& member : members) {
            losses_.push_back({member.rank});
        }
        auto const nodes = nodes_of(members, rules_.node_size);
        for (std::size_t first = 0; rules_.node_size > 1 && first < members.size();) {
            auto& node = losses_.emplace_back();
            auto const which = nodes[first];
            for (; first < members.size() && nodes[first] == which; ++first) {
                node.push_back(members[first].rank);
            }
        }
        for (std::size_t a = 0; members.size() <= most_ranks_for_pairs && a < members.size(); ++a) {
            for (std::size_t b = a + 1; b < members.size(); ++b) {
                losses_.push_back({members[a].rank, members[b].rank});
            }
        }
    }

    /// The next plan of a whole step; none: these were all. Cost: that of a plan after a loss.
    template <class OnlyWhenCalled = void>
    std::optional<plan> next()
    {
        while (at_ < losses_.size()) {
            if (auto p = after(losses_[at_++])) {
                return p;
            }
        }
        while (ranks_ > 0) {
            if (auto p = for_ranks(ranks_--)) {
                return p;
            }
        }
        return std::nullopt;
    }

private:
    template <class OnlyWhenCalled = void>
    std::optional<plan> after(std::vector<rank_id> const& gone) const
    {
        std::vector<rank_holdings> left;
        for (auto const& member : in_force_.salvage.after) {
            if (std::find(gone.begin(), gone.end(), member.rank) == gone.end()) {
                left.push_back(member);
            }
        }
        if (left.empty()) {
            return std::nullopt;
        }
        auto const planned = plan_membership(left, in_force_.pipelines, {}, known_, rules_);
        if (!planned.error.empty() || !planned.salvage.lost.empty()) {
            return std::nullopt;
        }
        auto p = like_;
        p.pipelines = planned.pipelines;
        p.work = deal(planned.shares);
        p.spares = planned.spares;
        return p;
    }

    template <class OnlyWhenCalled = void>
    std::optional<plan> for_ranks(int ranks) const
    {
        auto const chosen = instantiate(known_.ready, {ranks, known_.wanted.failures, known_.wanted.microbatches});
        if (!chosen) {
            return std::nullopt;
        }
        auto p = like_;
        p.pipelines = pipelines_of_sizes(known_.ready, chosen->sizes, numbered_ranks(ranks));
        p.work = deal(chosen->shares);
        p.spares.clear();
        return p;
    }

    plan like_;
    membership_plan in_force_;
    replanning known_;
    membership_rules rules_;
    std::vector<std::vector<rank_id>> losses_;
    std::size_t at_ = 0;
    int ranks_ = 0;  ///< the number to be looked at when there are no more losses
};

}  // namespace rheo::inline v0
