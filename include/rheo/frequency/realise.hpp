#pragma once
// SPDX-License-Identifier: Apache-2.0

// From a point of the frontier to clocks that exist. Each operation takes the slowest clock that its time allows;
// what time that leaves is given, operation by operation, to whoever saves most with it. The relaxation's cost at
// the same time is a lower bound, so the loss is known. Devices that can change the clock inside an operation lose
// nothing: two clocks that are neighbours on the hull, in turn, reach every point of it.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "rheo/frequency/frontier.hpp"
#include "rheo/frequency/make_project.hpp"
#include "rheo/frequency/trade_off.hpp"

namespace rheo::inline v0 {

/// A plan at real clocks.
struct clocked_plan {
    seconds time;                       ///< how long the iteration takes
    joules computing;                   ///< sum of the energies of the computations
    nanojoules cost;                    ///< sum of e - P_b t: what is compared with the frontier's
    std::vector<clock_option> options;  ///< operation -> what it runs at

    friend constexpr bool operator==(clocked_plan const&, clocked_plan const&) = default;
};

/// The answer of realise: a plan, or the reason why there is none.
struct realised_plan {
    clocked_plan plan;
    std::string reason;  ///< empty when there is a plan

    constexpr explicit operator bool() const { return reason.empty(); }
};

namespace detail {

/// An option in whole numbers.
struct whole_option {
    std::int64_t nanoseconds;
    std::int64_t cost;
    std::size_t place;  ///< among the options of the curve
};

/// Options of which each is slower and cheaper than the one before.
template <class = void>
constexpr std::vector<whole_option> worth_choosing(std::vector<clock_option> const& options, watts blocking)
{
    std::vector<whole_option> kept;
    for (std::size_t k = 0; k < options.size(); ++k) {
        auto const cost = in_whole_nanojoules(options[k].energy - blocking * options[k].time).count;
        if (kept.empty() || cost < kept.back().cost) {
            kept.push_back({nanoseconds_above(options[k].time), cost, k});
        }
    }
    return kept;
}

/// Choices of options on a network, with the earliest and latest times of its events in nanoseconds.
template <class = void>
class clock_choice {
public:
    constexpr clock_choice(project const& p, std::vector<std::vector<clock_option>> const& options, watts blocking, std::int64_t deadline)
        : project_{&p}, deadline_{deadline}
    {
        for (auto const& o : options) {
            tables_.push_back(worth_choosing(o, blocking));
        }
        choices_.resize(p.network.operations.size());
        for (auto const& arc : p.network.arcs) {
            lengths_.push_back(arc.nanoseconds);
        }
    }

    constexpr std::vector<whole_option> const& table(std::size_t operation) const
    {
        return tables_[static_cast<std::size_t>(project_->curve_of[operation])];
    }

    constexpr whole_option const& chosen(std::size_t operation) const { return table(operation)[choices_[operation]]; }

    constexpr void choose(std::size_t operation, std::size_t option)
    {
        choices_[operation] = option;
        lengths_[static_cast<std::size_t>(project_->network.operations[operation].arc)] = table(operation)[option].nanoseconds;
    }

    /// The slowest option of an operation that takes at most this long; the fastest when none does.
    constexpr std::size_t slowest_within(std::size_t operation, std::int64_t nanoseconds) const
    {
        auto const& options = table(operation);
        std::size_t k = 0;
        while (k + 1 < options.size() && options[k + 1].nanoseconds <= nanoseconds) {
            ++k;
        }
        return k;
    }

    /// The end of the iteration; fills in the earliest times.
    constexpr std::int64_t run()
    {
        auto const& network = project_->network;
        earliest_.assign(static_cast<std::size_t>(network.events), 0);
        for (std::size_t a = 0; a < network.arcs.size(); ++a) {
            auto& end = earliest_[static_cast<std::size_t>(network.arcs[a].to)];
            end = std::max(end, earliest_[static_cast<std::size_t>(network.arcs[a].from)] + lengths_[a]);
        }
        return earliest_.back();
    }

    /// Speeds up operations on the longest path, whoever pays least for a nanosecond, until the deadline is met. False
    /// when the highest clocks miss it.
    constexpr bool meet_deadline()
    {
        auto const& network = project_->network;
        for (auto end = run(); end > deadline_; end = run()) {
            look_back(end);
            std::size_t which = choices_.size();
            for (std::size_t k = 0; k < choices_.size(); ++k) {
                auto const& arc = network.arcs[static_cast<std::size_t>(network.operations[k].arc)];
                auto const room = latest_[static_cast<std::size_t>(arc.to)] - earliest_[static_cast<std::size_t>(arc.from)];
                if (choices_[k] > 0 && room == chosen(k).nanoseconds && (which == choices_.size() || price(k) < price(which))) {
                    which = k;
                }
            }
            if (which == choices_.size()) {
                return false;
            }
            choose(which, choices_[which] - 1);
        }
        return true;
    }

    /// Gives what time is left to the operations that save most with it. @pre run() <= the deadline
    constexpr void use_what_is_left()
    {
        auto const& network = project_->network;
        for (bool improved = true; improved;) {
            improved = false;
            (void)run();
            look_back(deadline_);
            std::int64_t most = 0;
            std::size_t which = 0;
            std::size_t option = 0;
            for (std::size_t k = 0; k < choices_.size(); ++k) {
                auto const& arc = network.arcs[static_cast<std::size_t>(network.operations[k].arc)];
                auto const room = latest_[static_cast<std::size_t>(arc.to)] - earliest_[static_cast<std::size_t>(arc.from)];
                auto const slower = slowest_within(k, room);
                if (slower > choices_[k] && chosen(k).cost - table(k)[slower].cost > most) {
                    most = chosen(k).cost - table(k)[slower].cost;
                    which = k;
                    option = slower;
                    improved = true;
                }
            }
            if (improved) {
                choose(which, option);
            }
        }
    }

    constexpr std::int64_t cost() const
    {
        std::int64_t sum = 0;
        for (std::size_t k = 0; k < choices_.size(); ++k) {
            sum += chosen(k).cost;
        }
        return sum;
    }

    constexpr std::size_t operations() const { return choices_.size(); }

private:
    /// Fills in the latest times for an end.
    constexpr void look_back(std::int64_t end)
    {
        auto const& arcs = project_->network.arcs;
        latest_.assign(earliest_.size(), end);
        for (auto a = arcs.size(); a-- > 0;) {
            auto& begin = latest_[static_cast<std::size_t>(arcs[a].from)];
            begin = std::min(begin, latest_[static_cast<std::size_t>(arcs[a].to)] - lengths_[a]);
        }
    }

    /// What the next faster clock costs per nanosecond.
    constexpr double price(std::size_t operation) const
    {
        auto const& faster = table(operation)[choices_[operation] - 1];
        return static_cast<double>(faster.cost - chosen(operation).cost)
            / static_cast<double>(chosen(operation).nanoseconds - faster.nanoseconds + 1);
    }

    project const* project_;
    std::int64_t deadline_;
    std::vector<std::vector<whole_option>> tables_;
    std::vector<std::size_t> choices_;
    std::vector<std::int64_t> lengths_;
    std::vector<std::int64_t> earliest_;
    std::vector<std::int64_t> latest_;
};

}  // namespace detail

/// Real clocks for a deadline: from the frontier's plan at it (or at T*, if that is earlier), rounded to faster
/// clocks, then slowed down where time is left. A deadline below the frontier's fastest time by no more than the
/// rounding of ticks is still met: who is too slow is sped up where it costs least. @pre `options` are those the frontier's project was made with
/// Cost: a pass over network and options per change of a clock.
template <class = void>
constexpr realised_plan realise(frontier const& f, std::vector<std::vector<clock_option>> const& options, watts blocking, seconds deadline)
{
    auto const unit = detail::whole_unit(f.what.unit);
    auto const end = in_whole_nanoseconds(std::min(deadline, std::max(slowest_time(f), fastest_time(f))));
    detail::clock_choice choice{f.what, options, blocking, end};
    auto const whole = std::max(end / unit, static_cast<std::int64_t>(f.vertices.back().time.count));
    auto const plan = plan_at(f, ticks{static_cast<std::int32_t>(whole)});
    for (std::size_t k = 0; k < choice.operations(); ++k) {
        auto const& arc = f.what.network.arcs[static_cast<std::size_t>(f.what.network.operations[k].arc)];
        auto const there = plan.events[static_cast<std::size_t>(arc.to)] - plan.events[static_cast<std::size_t>(arc.from)];
        choice.choose(k, choice.slowest_within(k, there * unit));
    }
    if (!choice.meet_deadline()) {
        return {{}, "no plan meets this deadline: at the highest clocks the iteration takes longer"};
    }
    choice.use_what_is_left();
    realised_plan result{{nanoseconds(static_cast<double>(choice.run())), {0.0}, {choice.cost()}, {}}, {}};
    for (std::size_t k = 0; k < choice.operations(); ++k) {
        auto const& option = options[static_cast<std::size_t>(f.what.curve_of[k])][choice.chosen(k).place];
        result.plan.options.push_back(option);
        result.plan.computing += option.energy;
    }
    return result;
}

}  // namespace rheo::inline v0
