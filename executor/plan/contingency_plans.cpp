// SPDX-License-Identifier: Apache-2.0
#include "executor/plan/contingency_plans.hpp"

#include <algorithm>
#include <utility>

#include "executor/plan/planning.hpp"
#include "rheo/pipeline/instantiate.hpp"

namespace rheo::inline v0 {

contingency_plans::contingency_plans(plan like, membership_plan in_force, replanning known, membership_rules rules)
    : like_{std::move(like)},
      in_force_{std::move(in_force)},
      known_{std::move(known)},
      rules_{rules},
      ranks_{static_cast<int>(in_force_.salvage.after.size()) - 1}
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

std::optional<plan> contingency_plans::next()
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

std::optional<plan> contingency_plans::after(std::vector<rank_id> const& gone) const
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

std::optional<plan> contingency_plans::for_ranks(int ranks) const
{
    auto const chosen = instantiate(known_.ready, {ranks, known_.wanted.failures, known_.wanted.microbatches});
    if (!chosen) {
        return std::nullopt;
    }
    auto p = like_;
    p.pipelines = pipelines_of_sizes(known_.ready, chosen.sizes);
    p.work = deal(chosen.shares);
    p.spares.clear();
    return p;
}

}  // namespace rheo::inline v0
