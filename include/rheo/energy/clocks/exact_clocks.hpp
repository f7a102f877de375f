#pragma once
// SPDX-License-Identifier: Apache-2.0

// The best choice of one option per operation, proved by branch and bound, for programs small enough to enumerate. Operations
// are decided in the order of time; a branch ends where the deadline cannot be met any more, or where the bound of a
// flow shows that nothing in it is cheaper than what is known.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "rheo/energy/clocks/clock_bound.hpp"
#include "rheo/energy/clocks/whole_options.hpp"
#include "rheo/energy/frontier/activity_network.hpp"
#include "rheo/energy/frontier/event_times.hpp"

namespace rheo::inline v0::detail {

inline constexpr std::int64_t enumerable_choices = std::int64_t{1} << 24;
inline constexpr std::size_t enumerable_operations = 64;

/// Whether a program is small enough: so many operations, and so many choices if no branch ended early.
template <class OnlyWhenCalled = void>
constexpr bool is_enumerable(activity_network const& p, std::vector<std::vector<whole_option>> const& tables)
{
    std::int64_t choices = 1;
    for (auto const curve : p.curve_of) {
        choices *= static_cast<std::int64_t>(tables[static_cast<std::size_t>(curve)].size());
        if (choices > enumerable_choices) {
            return false;
        }
    }
    return p.curve_of.size() <= enumerable_operations;
}

template <class OnlyWhenCalled = void>
class exact_clocks {
public:
    /// @param flows that bound costs: the closer to the deadline's optimum, the fewer branches
    constexpr exact_clocks(activity_network const& p, std::vector<std::vector<whole_option>> const& tables, std::vector<std::int64_t> const& flows,
                           watts waiting, std::int64_t deadline)
        : network_{&p}, tables_{&tables}, waiting_{waiting}, deadline_{deadline}
    {
        auto const unit = whole_unit(p.unit);
        auto const& arcs = p.network.arcs;
        event_times<> fastest{p.network};
        for (std::size_t a = 0; a < arcs.size(); ++a) {
            if (arcs[a].operation >= 0) {
                fastest.set_length(a, table(arcs[a]).front().nanoseconds);
            }
        }
        fastest.run();
        for (int v = 0; v < p.network.events; ++v) {
            to_end_.push_back(fastest.to_end(v));
        }
        auto const bound = bound_by(p, tables, flows);
        auto const at_latest = bound.at(deadline, unit) + waiting_cost(deadline);
        auto const at_earliest = bound.at(fastest.end(), unit) + waiting_cost(fastest.end());
        bound_ = std::min(at_latest, at_earliest);  // linear in the end but for roundings
        order_.resize(arcs.size());
        for (std::size_t a = 0; a < arcs.size(); ++a) {
            if (arcs[a].operation < 0) {
                continue;
            }
            auto const& options = table(arcs[a]);
            for (std::size_t o = 0; o < options.size(); ++o) {
                order_[a].push_back({priced(options[o], flows[a], unit), static_cast<int>(o)});
            }
            std::sort(order_[a].begin(), order_[a].end());
            auto const least = order_[a].front().first;
            for (auto& each : order_[a]) {
                each.first -= least;
            }
        }
        earliest_.assign(static_cast<std::size_t>(p.network.events), 0);
        choices_.assign(p.curve_of.size(), 0);
    }

    /// The best choice, or the one that is known if none is better. @pre the known one meets the deadline
    constexpr std::vector<int> best(std::vector<int> known, std::int64_t cost, std::int64_t time)
    {
        best_ = std::move(known);
        least_ = cost + waiting_cost(time);
        decide(0, 0, bound_);
        return best_;
    }

private:
    constexpr std::vector<whole_option> const& table(event_arc const& arc) const
    {
        return (*tables_)[static_cast<std::size_t>(network_->curve_of[static_cast<std::size_t>(arc.operation)])];
    }

    constexpr std::int64_t waiting_cost(std::int64_t time) const { return in_whole_nanojoules(waiting_ * nanoseconds(static_cast<double>(time))).count; }

    /// Decides the arcs from `next` on: what is decided costs `cost`, and all of it at least `bound`.
    constexpr void decide(std::size_t next, std::int64_t cost, std::int64_t bound)
    {
        auto const& arcs = network_->network.arcs;
        if (next == arcs.size()) {
            if (auto const sum = cost + waiting_cost(earliest_.back()); sum < least_) {
                least_ = sum;
                best_ = choices_;
            }
            return;
        }
        auto const& arc = arcs[next];
        auto const from = earliest_[static_cast<std::size_t>(arc.from)];
        auto const to = static_cast<std::size_t>(arc.to);
        auto const before = earliest_[to];
        if (arc.operation < 0) {
            earliest_[to] = std::max(before, from + arc.nanoseconds);
            decide(next + 1, cost, bound);
        } else {
            for (auto const& [above, option] : order_[next]) {
                if (bound + above >= least_) {
                    break;
                }
                auto const& one = table(arc)[static_cast<std::size_t>(option)];
                if (from + one.nanoseconds + to_end_[to] <= deadline_) {
                    earliest_[to] = std::max(before, from + one.nanoseconds);
                    choices_[static_cast<std::size_t>(arc.operation)] = option;
                    decide(next + 1, cost + one.cost, bound + above);
                }
            }
        }
        earliest_[to] = before;
    }

    activity_network const* network_;
    std::vector<std::vector<whole_option>> const* tables_;
    watts waiting_;
    std::int64_t deadline_;
    std::int64_t bound_ = 0;
    std::int64_t least_ = 0;
    std::vector<std::vector<std::pair<std::int64_t, int>>> order_;  ///< by arc: what its options cost above the least, with prices for time
    std::vector<std::int64_t> to_end_;                              ///< of events, at the fastest options
    std::vector<std::int64_t> earliest_;
    std::vector<int> choices_;
    std::vector<int> best_;
};

}  // namespace rheo::inline v0::detail
