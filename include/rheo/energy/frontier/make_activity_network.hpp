#pragma once
// SPDX-License-Identifier: Apache-2.0

// From a program and a profile to the network with its curves: which computation has which options, by the rank it
// runs on and the stage it belongs to. What the profile lacks is an answer, not an error of the caller.

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "rheo/energy/frontier/event_network.hpp"
#include "rheo/energy/frontier/parametric_flow.hpp"
#include "rheo/energy/profile/cost_curve.hpp"
#include "rheo/energy/profile/exponential_fit.hpp"
#include "rheo/energy/profile/profile.hpp"
#include "rheo/schedule/core/text.hpp"
#include "rheo/units/result.hpp"

namespace rheo::inline v0 {

enum class cost_fit {
    hull,         ///< the lower convex hull of what was measured
    exponential,  ///< the published fit
};

/// What a frontier is computed for.
struct frontier_request {
    watts blocking;  ///< drawn by a device that waits
    cost_fit fit = cost_fit::hull;
    seconds unit{0.0};  ///< 0: the fit's own, a microsecond for the hull, a millisecond for the exponential

    friend constexpr bool operator==(frontier_request, frontier_request) = default;
};

/// An activity network and, per operation, its options.
struct made_network {
    activity_network activities;
    std::vector<std::vector<clock_option>> options;  ///< curve -> the options behind it, fastest first
};

/// The times of a program's transfers as the profile has them (rows send_activation and send_gradient); others take none.
template <class OnlyWhenCalled = void>
constexpr stage_costs transfer_times(profile const& measured, program const& p)
{
    stage_costs costs(p.placement.size());
    for (std::size_t stage = 0; stage < costs.size(); ++stage) {
        for (auto const& row : measured.rows) {
            if (at(row.stage) != stage % static_cast<std::size_t>(stages_per_copy(p))) {
                continue;
            }
            if (row.kind == instruction_kind::send_activation) {
                costs[stage].send_activation = row.time;
            } else if (row.kind == instruction_kind::send_gradient) {
                costs[stage].send_gradient = row.time;
            }
        }
    }
    return costs;
}

/// The activity network of an event network; copies of a stage share its profile. Cost: operations + kinds of operation x profile rows.
template <class OnlyWhenCalled = void>
constexpr result<made_network> make_activity_network(event_network network, profile const& measured, frontier_request request)
{
    auto const own = request.fit == cost_fit::hull ? microseconds(1.0) : milliseconds(1.0);
    made_network made{{std::move(network), {}, {}, request.unit > seconds{0.0} ? request.unit : own}, {}};
    struct key {
        int row;
        int stage;
        instruction_kind kind;
    };
    std::vector<key> known;
    bool ranks = false;
    for (auto const& row : measured.rows) {
        ranks = ranks || row.rank.value >= 0;
    }
    for (auto const& o : made.activities.network.operations) {
        key const wanted{ranks ? o.row : -1, o.instruction.stage % made.activities.network.stages, o.instruction.kind};
        std::size_t k = 0;
        while (k < known.size() && !(known[k].row == wanted.row && known[k].stage == wanted.stage && known[k].kind == wanted.kind)) {
            ++k;
        }
        if (k == known.size()) {
            auto options = options_of(measured, rank_id{wanted.row}, stage_id{wanted.stage}, o.instruction.kind);
            if (options.empty()) {
                return failure{"the profile has nothing for " + to_string(o.instruction) + " on rank " + std::to_string(o.row)};
            }
            known.push_back(wanted);
            if (request.fit == cost_fit::hull) {
                made.activities.curves.push_back(hull_curve(options, request.blocking, made.activities.unit));
            } else {
                made.activities.curves.push_back(exponential_curve(options, request.blocking, made.activities.unit));
            }
            made.options.push_back(std::move(options));
        }
        made.activities.curve_of.push_back(static_cast<int>(k));
    }
    return made;
}

#ifdef RHEO_COMPILED  // in rheo::compiled
extern template result<made_network> make_activity_network<>(event_network, profile const&, frontier_request);
#endif

}  // namespace rheo::inline v0
