#pragma once
// SPDX-License-Identifier: Apache-2.0

// A schedule in its steady state does the same for one microbatch after the other, so from some number of microbatches on
// further ones do not change the slopes of the frontier: each vertex comes later by the same time and costs more by the
// same amount for every one of them. Two solved programs are then enough for all longer ones.
//
// That is a claim, not a proof. Plans are proved one by one (continued_plan.hpp), or all of them; where that fails the
// caller solves the whole program.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "rheo/energy/frontier/activity_network.hpp"
#include "rheo/energy/frontier/frontier.hpp"
#include "rheo/units/expects.hpp"
#include "rheo/units/result.hpp"

namespace rheo::inline v0 {

/// Two programs of a schedule, the longer one by a period, whose frontiers have the same slopes.
struct steady_state {
    int microbatches = 0;  ///< of the shorter one
    int period = 1;        ///< microbatches more in the longer one
    frontier shorter;
    frontier longer;
};

/// Where to look for it: from so many microbatches, doubled until they are more than `to`.
struct steady_search {
    int from;
    int to;
    int period = 1;
};

namespace detail {

/// The same slopes, and no piece gets shorter: else it would be gone in a longer program.
constexpr bool is_steady(frontier const& shorter, frontier const& longer)
{
    auto const& a = shorter.vertices;
    auto const& b = longer.vertices;
    bool same = a.size() == b.size();
    for (std::size_t k = 0; same && k < a.size(); ++k) {
        same = a[k].slope == b[k].slope && (k == 0 || a[k - 1].time - a[k].time <= b[k - 1].time - b[k].time);
    }
    return same;
}

}  // namespace detail

/// The first steady state found. `make(microbatches)` returns an activity network. @pre 1 <= from, period >= 1
/// Cost: two frontiers of `from` microbatches, and so on doubled.
template <class MakeProject>
constexpr result<steady_state> find_steady_state(MakeProject const& make, watts waiting, steady_search where)
{
    expects(where.from >= 1 && where.period >= 1, "a steady state is looked for from one microbatch on");
    for (int microbatches = where.from; microbatches <= where.to; microbatches *= 2) {
        auto shorter = make_frontier(make(microbatches), waiting);
        auto longer = make_frontier(make(microbatches + where.period), waiting);
        if (detail::is_steady(shorter, longer)) {
            return steady_state{microbatches, where.period, std::move(shorter), std::move(longer)};
        }
    }
    return failure{"no steady state was found with so few microbatches"};
}

/// True for the programs that the steady state stands for.
constexpr bool stands_for(steady_state const& s, int microbatches) { return microbatches >= s.microbatches && (microbatches - s.microbatches) % s.period == 0; }

/// The curve of a longer program: its vertices without events, which serves for all but plans.
/// @pre `p` is the activity network of so many microbatches, for which the steady state stands. Cost: linear in the vertices.
template <class OnlyWhenCalled = void>
constexpr frontier continued_curve(steady_state const& s, activity_network p, int microbatches)
{
    expects(stands_for(s, microbatches), "a steady state stands for programs that are longer by whole periods");
    frontier result{std::move(p), s.shorter.waiting, {}, {}};
    std::int64_t const periods = (microbatches - s.microbatches) / s.period;
    for (std::size_t k = 0; k < s.shorter.vertices.size(); ++k) {
        auto const& from = s.shorter.vertices[k];
        auto const& to = s.longer.vertices[k];
        auto const time = from.time.count + periods * (to.time.count - from.time.count);
        expects(time < std::numeric_limits<std::int32_t>::max(), "the slowest plan takes more ticks than can be counted: choose a coarser unit");
        result.vertices.push_back({ticks{static_cast<std::int32_t>(time)}, from.cost + (to.cost - from.cost) * periods, from.slope});
    }
    return result;
}

}  // namespace rheo::inline v0
