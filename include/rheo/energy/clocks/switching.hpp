#pragma once
// SPDX-License-Identifier: Apache-2.0

// Real clocks where a change of the clock takes time and a clock has to be kept for a while. Then neighbours on a rank
// share clocks: what the frontier proposes operation by operation is taken over run by run, beginning with every rank
// at its highest clock, as long as the deadline is kept and it saves energy. Iterations follow each other, so the last
// clock of a rank meets its first one. While a clock changes the device waits, and draws what a waiting device draws.
//
// This is a search, not an optimum; how far it is from one is bounded by the frontier's certificate like any plan. As without
// a rule it goes from deadline to deadline, at fixed ones, and the answer is the least of what was found by then: a
// longer deadline never takes more energy.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "rheo/energy/clocks/detail/run_search.hpp"
#include "rheo/energy/clocks/round_to_clocks.hpp"
#include "rheo/energy/clocks/switching_rule.hpp"

namespace rheo::inline v0 {

namespace detail {

/// Deadlines for which plans are looked for, in whole nanoseconds: so many to twice the fastest time.
inline constexpr std::int64_t switching_steps = 64;

}  // namespace detail

/// As round_to_clocks without a rule, with the changes of clocks in the times and each clock kept for long enough. The plan's time holds
/// the changes. @pre as there, or the frontier was made for a step more. Cost: for each of some deadlines up to this one, a pass over the network per run that is tried.
template <class OnlyWhenCalled = void>
constexpr result<clocked_plan> round_to_clocks(real_frontier const& r, seconds deadline, switching_rule rule, waiting_until waits = waiting_until::deadline)
{
    if (rule == switching_rule{} || r.relaxed.activities.curve_of.empty()) {
        return round_to_clocks(r, deadline, waits);
    }
    detail::run_search<> search{r, rule};
    auto const end = deadline.count < 1e9 ? in_whole_nanoseconds(deadline) : std::int64_t{1'000'000'000'000'000'000};
    if (end < search.fastest()) {
        return failure{"no plan meets this deadline: with each rank at its highest clock, which it keeps, the iteration takes longer"};
    }
    auto const step = std::max<std::int64_t>(search.fastest() / detail::switching_steps, 1);
    auto const last = std::max(r.end, search.fastest());
    auto before = search.fastest();
    for (auto next = before; before <= end; next += step) {
        next = std::min(next, last);
        search.step(before, next, *round_to_clocks(r, nanoseconds(static_cast<double>(next))));
        if (next == last) {
            break;
        }
        before = next;
    }
    std::int64_t least = 0;
    typename detail::run_search<>::found_plan const* best = nullptr;
    auto const waiting = waits == waiting_until::own_end ? r.relaxed.waiting : watts{0.0};
    for (auto const& plan : search.found()) {
        auto const total = plan.cost + in_whole_nanojoules(waiting * nanoseconds(static_cast<double>(plan.time))).count;
        if (plan.deadline <= end && plan.time <= end && (best == nullptr || total < least)) {
            best = &plan;
            least = total;
        }
    }
    return search.plan(r.relaxed.activities, *best);
}

/// The same for one deadline. @pre as there
template <class OnlyWhenCalled = void>
constexpr result<clocked_plan> round_to_clocks(frontier const& f, std::vector<std::vector<clock_option>> const& options, watts blocking, seconds deadline,
                                               switching_rule rule, waiting_until waits = waiting_until::deadline)
{
    auto const step = at_highest_clocks(f.activities, options, blocking).time / static_cast<double>(detail::switching_steps);
    return round_to_clocks(make_real_frontier(f, options, blocking, rule == switching_rule{} ? deadline : deadline + step), deadline, rule, waits);
}

#ifdef RHEO_COMPILED  // in rheo::compiled
extern template result<clocked_plan> round_to_clocks<>(real_frontier const&, seconds, switching_rule, waiting_until);
#endif

}  // namespace rheo::inline v0
