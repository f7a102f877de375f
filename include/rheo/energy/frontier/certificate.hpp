#pragma once
// SPDX-License-Identifier: Apache-2.0

// The proof that a plan is of least cost at its time: a flow. For any flow f of value F from the first event to the
// last, any plan that takes at most T costs at least sum over arcs of min over t of (c(t) + f t), less F T: the
// terms f t telescope to F T or less. A plan whose cost equals that bound is optimal, no matter who found it, and what a
// plan at real clocks costs above the bound is at most what rounding has lost.

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "rheo/energy/frontier/activity_network.hpp"
#include "rheo/energy/frontier/flow_from_plan.hpp"
#include "rheo/energy/frontier/frontier.hpp"

namespace rheo::inline v0 {

/// A plan's times with its dual flow.
struct certificate {
    std::vector<std::int32_t> events;  ///< when each event happens, in ticks
    std::vector<std::int64_t> flows;   ///< on each arc, nanojoules per tick

    friend constexpr bool operator==(certificate const&, certificate const&) = default;
};

/// What verify found.
struct proof {
    nanojoules cost;    ///< of the plan
    nanojoules bound;   ///< no plan at its time costs less, by this flow
    std::string error;  ///< why this proves nothing; empty when cost and bound are equal

    constexpr explicit operator bool() const { return error.empty(); }
};

namespace detail {

/// The least of c(t) + flow t over the times of an arc. @pre flow >= 0
template <class OnlyWhenCalled = void>
constexpr std::int64_t least_sum(activity_network const& p, event_arc const& arc, std::int64_t flow)
{
    auto const* curve = curve_of(p, arc);
    auto time = least_time(p, arc);
    std::int64_t sum = (curve == nullptr ? 0 : curve->dearest.count) + flow * time.count;
    for (std::size_t k = 0; curve != nullptr && k < curve->slopes.size() && curve->slopes[k].count > flow; ++k) {
        sum += (flow - curve->slopes[k].count) * (curve->times[k + 1] - curve->times[k]).count;
    }
    return sum;
}

}  // namespace detail

/// Checks the plan and its flow in one pass over the arcs: times are kept, the flow is one, cost equals bound.
template <class OnlyWhenCalled = void>
constexpr proof verify(activity_network const& p, certificate const& claim)
{
    auto const& network = p.network;
    if (claim.events.size() != static_cast<std::size_t>(network.events) || claim.flows.size() != network.arcs.size()) {
        return {{}, {}, "the certificate is of another network"};
    }
    proof result{};
    std::vector<std::int64_t> balance(claim.events.size(), 0);
    for (std::size_t a = 0; a < network.arcs.size(); ++a) {
        auto const& arc = network.arcs[a];
        auto const from = static_cast<std::size_t>(arc.from);
        auto const to = static_cast<std::size_t>(arc.to);
        ticks const there{claim.events[to] - claim.events[from]};
        if (there < least_time(p, arc)) {
            return {{}, {}, "arc " + std::to_string(a) + " takes longer than the plan leaves it"};
        }
        if (claim.flows[a] < 0) {
            return {{}, {}, "arc " + std::to_string(a) + " carries a negative flow"};
        }
        balance[from] += claim.flows[a];
        balance[to] -= claim.flows[a];
        if (auto const* curve = curve_of(p, arc)) {
            result.cost += cost_at(*curve, there);
        }
        result.bound.count += detail::least_sum(p, arc, claim.flows[a]);
    }
    for (std::size_t v = 1; v + 1 < balance.size(); ++v) {
        if (balance[v] != 0) {
            return {{}, {}, "at event " + std::to_string(v) + " more flows in or out than the other way"};
        }
    }
    result.bound.count -= balance.front() * (claim.events.back() - claim.events.front());
    if (result.cost != result.bound) {
        result.error = "the plan costs " + std::to_string((result.cost - result.bound).count) + " nJ more than the flow proves necessary";
    }
    return result;
}

/// The certificate of the frontier's plan at a time. @pre as plan_at. Cost: one maximal flow.
template <class OnlyWhenCalled = void>
constexpr certificate certify(frontier const& f, ticks time)
{
    auto events = plan_at(f, time).events;
    auto flows = flow_for(f.activities, events);
    return {std::move(events), std::move(flows)};
}

#ifdef RHEO_COMPILED  // in rheo::compiled
extern template proof verify<>(activity_network const&, certificate const&);
#endif

}  // namespace rheo::inline v0
