#pragma once
// SPDX-License-Identifier: Apache-2.0

// The frontier at real clocks: plans with one clock per operation. They are a fixed family, found from the fastest plan
// on at deadlines that follow from the relaxed curve alone, and the answer at a deadline is the least of those that were
// found by then. So a longer deadline never takes more energy. What a search at the deadline itself might
// find is not in it: there the answers are better by less than one step of the family.
//
// Plans found elsewhere can be added to the family: then it is never dearer than they are.
//
// The steps are of equal cost. At each, time that is left goes to the operations that save most, exchanges improve on
// that, and every fourth step (fewer of long programs) begins again from the relaxed plan, rounded down in three ways, where that is cheaper.
// Programs that are small enough to enumerate have no family: their answers are the optimum.
//
// Real clocks follow from what was measured. The frontier of another fit than the hull is used for its range alone, so
// the rounding of no fit is better than that of the hull.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "rheo/energy/clocks/clock_search.hpp"
#include "rheo/energy/clocks/clocked_plan.hpp"
#include "rheo/energy/clocks/detail/family_search.hpp"
#include "rheo/energy/clocks/exact_clocks.hpp"
#include "rheo/energy/clocks/whole_options.hpp"
#include "rheo/energy/frontier/certificate.hpp"
#include "rheo/energy/frontier/frontier.hpp"

namespace rheo::inline v0 {

/// A plan of the family.
struct real_point {
    std::int64_t deadline;  ///< of the step before, nanoseconds: it was looked for by then
    std::int64_t time;      ///< eligible from here on
    std::int64_t cost;
    std::size_t changes;  ///< it is what so many changes make of the fastest options

    friend constexpr bool operator==(real_point, real_point) = default;
};

/// One operation that takes another option.
struct real_change {
    int operation;
    int option;  ///< among those worth choosing

    friend constexpr bool operator==(real_change, real_change) = default;
};

/// Plans at real clocks for all deadlines up to `until`.
struct real_frontier {
    frontier relaxed;  ///< of the hull; without events where the family is all that is needed
    std::vector<std::vector<clock_option>> options;
    watts blocking;
    std::int64_t fastest;            ///< nanoseconds
    std::int64_t end;                ///< beyond it no plan is of use
    std::int64_t until;              ///< what it was made for, at most the end
    bool exact;                      ///< small enough to enumerate
    std::vector<real_point> points;  ///< in the order of their deadlines
    std::vector<real_change> changes;

    friend constexpr bool operator==(real_frontier const&, real_frontier const&) = default;
};

/// Until when devices that wait are counted.
enum class waiting_until {
    deadline,  ///< others end then: what counts is the cost, sum of e - P_b t
    own_end,   ///< no straggler: a plan that is slower draws more while it waits
};

namespace detail {

/// Notes the plans that a search finds, as changes from one to the next.
template <class OnlyWhenCalled = void>
class family_recorder {
public:
    constexpr family_recorder(real_frontier& to, std::size_t operations) : to_{&to}, choices_(operations, 0) {}

    constexpr void begin_step(std::int64_t deadline) { deadline_ = deadline; }

    /// What the search has now, of which it says what it has changed.
    constexpr void note_changes(clock_search<> const& search)
    {
        for (auto const& each : search.changes()) {
            note_choice(each.operation, search.choices()[each.operation]);
        }
        note_point(search);
    }

    /// All that the search has now.
    constexpr void note_all(clock_search<> const& search)
    {
        for (std::size_t k = 0; k < choices_.size(); ++k) {
            note_choice(k, search.choices()[k]);
        }
        note_point(search);
    }

private:
    constexpr void note_choice(std::size_t k, int choice)
    {
        if (choices_[k] != choice) {
            choices_[k] = choice;
            to_->changes.push_back({static_cast<int>(k), choice});
        }
    }

    /// A point if it is the least so far, by its cost or with waiting until its end.
    constexpr void note_point(clock_search<> const& search)
    {
        auto const total = search.cost() + in_whole_nanojoules(to_->relaxed.waiting * nanoseconds(static_cast<double>(search.time()))).count;
        if (to_->points.empty() || search.cost() < least_cost_ || total < least_total_) {
            least_cost_ = to_->points.empty() ? search.cost() : std::min(least_cost_, search.cost());
            least_total_ = to_->points.empty() ? total : std::min(least_total_, total);
            to_->points.push_back({deadline_, search.time(), search.cost(), to_->changes.size()});
        }
    }

    real_frontier* to_;
    std::vector<int> choices_;
    std::int64_t deadline_ = 0;
    std::int64_t least_cost_ = 0;
    std::int64_t least_total_ = 0;
};

/// A plan as choices among what is worth choosing: each operation takes what is neither slower nor dearer.
template <class OnlyWhenCalled = void>
constexpr std::vector<int> choices_of(activity_network const& p, std::vector<std::vector<whole_option>> const& tables, clocked_plan const& plan)
{
    std::vector<int> choices;
    for (std::size_t k = 0; k < plan.options.size(); ++k) {
        choices.push_back(slowest_within(tables[static_cast<std::size_t>(p.curve_of[k])], nanoseconds_above(plan.options[k].time)));
    }
    return choices;
}

/// Fills in the family. @pre the rest is there; the plans of others come fastest first
template <class OnlyWhenCalled = void>
constexpr void find_family(real_frontier& r, std::vector<std::vector<whole_option>> const& tables, std::vector<clocked_plan> const& others)
{
    auto const& f = r.relaxed;
    clock_search search{f.activities, tables};
    family_recorder<> recorder{r, f.activities.curve_of.size()};
    auto const note = [&](auto const& s) { recorder.note_changes(s); };
    auto const effort = effort_for(f.activities.curve_of.size());
    auto const deadlines = steps_of(f, r.fastest, std::max(r.fastest, in_whole_nanoseconds(slowest_time(f))), effort.steps);
    recorder.begin_step(r.fastest);
    recorder.note_all(search);
    std::size_t other = 0;
    for (std::size_t k = 0; k < deadlines.size() && (k == 0 || deadlines[k - 1] <= r.until); ++k) {
        recorder.begin_step(deadlines[k == 0 ? 0 : k - 1]);
        for (; other < others.size() && in_whole_nanoseconds(others[other].time) <= deadlines[k]; ++other) {
            if (others[other].cost.count < search.cost()) {
                search.restart(choices_of(f.activities, tables, others[other]));
                recorder.note_all(search);
            }
        }
        search.fill(deadlines[k], note);
        if (k % effort.again == 0 || k + 1 == deadlines.size()) {
            restart_search(search, f, deadlines[k]);
            recorder.note_all(search);
        }
        search.exchange(deadlines[k], k == 0 ? effort.at_the_fastest : effort.at_each_step, note);
    }
}

/// The plan that so many changes make.
template <class OnlyWhenCalled = void>
constexpr std::vector<int> choices_after(real_frontier const& r, std::size_t changes)
{
    std::vector<int> choices(r.relaxed.activities.curve_of.size(), 0);
    for (std::size_t i = 0; i < changes; ++i) {
        choices[static_cast<std::size_t>(r.changes[i].operation)] = r.changes[i].option;
    }
    return choices;
}

/// The optimum for a deadline.
template <class OnlyWhenCalled = void>
constexpr std::vector<int> exact_choices(real_frontier const& r, std::vector<std::vector<whole_option>> const& tables, std::int64_t deadline, watts waiting)
{
    auto const& f = r.relaxed;
    clock_search search{f.activities, tables};
    restart_search(search, f, deadline);
    search.exchange(deadline, effort_for(f.activities.curve_of.size()).at_the_fastest, [](auto const&) {});
    auto const tick = std::clamp<std::int64_t>(deadline / whole_unit(f.activities.unit), f.vertices.back().time.count, f.vertices.front().time.count);
    auto const flows = certify(f, ticks{static_cast<std::int32_t>(tick)}).flows;
    return exact_clocks{f.activities, tables, flows, waiting, deadline}.best(search.choices(), search.cost(), search.time());
}

/// The frontier itself if its curves are hulls of the options, else that of the hulls.
template <class OnlyWhenCalled = void>
constexpr frontier frontier_of_hulls(frontier const& f, std::vector<std::vector<clock_option>> const& options, watts blocking)
{
    auto const hulls = [&](seconds unit) {
        std::vector<cost_curve> curves;
        for (auto const& each : options) {
            curves.push_back(hull_curve(each, blocking, unit));
        }
        return curves;
    };
    if (f.activities.curves == hulls(f.activities.unit)) {
        return f;
    }
    auto const unit = std::min(f.activities.unit, microseconds(1.0));
    return make_frontier(activity_network{f.activities.network, hulls(unit), f.activities.curve_of, unit}, f.waiting, frontier_begin::slowest);
}

}  // namespace detail

/// The frontier at real clocks for deadlines up to `until`, and no later than where the frontier begins.
/// @param others plans of the same operations that it is not to be dearer than, fastest first
/// @pre `options` are those the frontier's activity network was made with. Cost: some times that of the frontier itself; little where `until` is its fastest time
template <class OnlyWhenCalled = void>
constexpr real_frontier make_real_frontier(frontier const& f, std::vector<std::vector<clock_option>> const& options, watts blocking, seconds until,
                                           std::vector<clocked_plan> const& others = {})
{
    auto const tables = detail::worth_choosing(options, blocking);
    real_frontier result{detail::frontier_of_hulls(f, options, blocking), options, blocking, 0, 0, 0, detail::is_enumerable(f.activities, tables), {}, {}};
    result.fastest = detail::clock_search{f.activities, tables}.time();
    result.end = std::max(result.fastest, in_whole_nanoseconds(slowest_time(f)));
    result.until = until.count * 1e9 < static_cast<double>(result.end) ? in_whole_nanoseconds(until) : result.end;
    if (!result.exact && result.until >= result.fastest) {
        detail::find_family(result, tables, others);
        result.relaxed.events.clear();
    }
    return result;
}

#ifdef RHEO_COMPILED  // in rheo::compiled
extern template real_frontier make_real_frontier<>(frontier const&, std::vector<std::vector<clock_option>> const&, watts, seconds,
                                                   std::vector<clocked_plan> const&);
#endif

}  // namespace rheo::inline v0
