#pragma once
// SPDX-License-Identifier: Apache-2.0

// The frontiers of this job's pipelines and the clocks of its plans, each made once: for the plan in force, and, on a thread of its own
// while training continues, for the plans that the next losses would lead to, so that after one the plan has its clocks at once.
// Both are pure functions of plan, profile and request, so only the time depends on what was precomputed.

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <thread>
#include <vector>

#include "rheo/energy/profile/profile.hpp"
#include "rheo/plan/plan.hpp"
#include "rheo/planner/plan_clocks.hpp"
#include "rheo/units/result.hpp"

namespace rheo::inline v0 {

/// What making clocks ahead came to.
struct precomputed_clocks {
    std::size_t plans = 0;
    std::size_t frontiers = 0;  ///< that were not there before
    seconds took{};

    friend bool operator==(precomputed_clocks, precomputed_clocks) = default;
};

class frontier_cache {
public:
    /// @param exchanges of the model, if ranks share stages
    frontier_cache(profile layers, clock_request request, group_exchanges exchanges = {})
        : layers_{std::move(layers)}, request_{request}, exchanges_{std::move(exchanges)}
    {
    }
    ~frontier_cache();
    frontier_cache(frontier_cache const&) = delete;
    frontier_cache& operator=(frontier_cache const&) = delete;

    /// The clocks of a plan, the same on every rank. @pre the plan's schedule is known
    result<chosen_clocks> choose(plan const& p, std::span<slow_rank const> slow);

    /// Begins to make the frontiers of the plans that `next` returns until it returns none. It is called on the other thread, which runs when nothing else
    /// wants to; what was begun before is given up.
    void precompute(std::function<std::optional<plan>()> next);

    /// The result of what was begun, once, when it is done.
    std::optional<precomputed_clocks> take_precomputed();

    /// Frontiers that choose() had to make itself.
    std::size_t made_at_once() const { return at_once_; }

    /// Plans whose clocks choose() had to search for itself.
    std::size_t searched_at_once() const { return searches_; }

    /// Waits until what was begun is done. @return frontiers that there are
    std::size_t made();

private:
    struct found {
        result<chosen_clocks> const* clocks;
        std::size_t frontiers = 0;  ///< made now
        bool searched = false;      ///< now
    };
    found clocks_of(plan const& p, std::span<slow_rank const> slow, std::stop_token ends);
    void give_up();

    profile layers_;
    clock_request request_;
    group_exchanges exchanges_;
    std::size_t at_once_ = 0;
    std::size_t searches_ = 0;
    std::mutex mutex_;  // of the three below, whose elements stay where they are
    std::map<pipeline_frontier_key, result<pipeline_frontier>> frontiers_;
    std::map<std::vector<pipeline_frontier_key>, result<chosen_clocks>> clocks_;
    std::optional<precomputed_clocks> done_;
    std::stop_source ahead_ends_;
    std::thread ahead_;
};

}  // namespace rheo::inline v0
