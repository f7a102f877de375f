#pragma once
// SPDX-License-Identifier: Apache-2.0

// What `rheo frontier` finds out before it shows anything: the curve that was asked for, the frontier of what was measured with its
// plans at real clocks, the two plans that these are compared with, the chosen plan, and below what no plan is.

#include <algorithm>
#include <string>

#include "executor/cli/frontier/frontier_input.hpp"
#include "rheo/energy/clocks/clocked_plan.hpp"
#include "rheo/energy/clocks/round_to_clocks.hpp"
#include "rheo/energy/frontier/frontier.hpp"
#include "rheo/energy/frontier/make_activity_network.hpp"
#include "rheo/schedule/core/program.hpp"

namespace rheo::cli {

inline constexpr int table_rows = 10;

struct frontier_study {
    rheo::program program;
    watts blocking;
    made_network made;     ///< by the hull
    rheo::frontier hull;   ///< without plans where it was carried over from a shorter program
    rheo::frontier curve;  ///< what is shown: that of the fit
    real_frontier real;
    clocked_plan highest;  ///< all at the highest clock
    clocked_plan fastest;  ///< each at its fastest clock
    clocked_plan chosen;
    joules bound;          ///< no plan for the chosen deadline takes less
    std::string unproved;  ///< why the hull's plan at that deadline is not proved to be optimal; empty when it is
    seconds until;         ///< when the straggler is done; 0: no straggler
    bool fitted = false;   ///< the curve is not that of what was measured
    bool carried_over = false;

    /// The energy of an iteration of all devices, which wait until its own end, or until others are done.
    joules energy_of(clocked_plan const& plan, seconds others) const { return total_energy(hull, plan.cost, std::max(plan.time, others)); }

    /// The plan for a deadline.
    result<clocked_plan> real_clocks(seconds deadline) const
    {
        return round_to_clocks(real, deadline, waits() ? waiting_until::deadline : waiting_until::own_end);
    }

    bool waits() const { return until > seconds{0.0}; }
    ticks ticks_for(seconds time) const { return std::max(detail::ticks_within(curve, time), curve.vertices.back().time); }
    seconds time_of_row(int row) const
    {
        return fastest.time + (std::max(slowest_time(curve), fastest.time) - fastest.time) * (static_cast<double>(row) / table_rows);
    }
};

/// @throws exit_error
frontier_study make_study(frontier_options const& options);

}  // namespace rheo::cli
