#pragma once
// SPDX-License-Identifier: Apache-2.0

// The search of energy/clocks/switching.hpp: choices for all operations, changed run by run of neighbours on a rank, with the length of the iteration
// that they make under a switching rule.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "rheo/energy/clocks/clocked_plan.hpp"
#include "rheo/energy/clocks/real_frontier.hpp"
#include "rheo/energy/clocks/switching_rule.hpp"

namespace rheo::inline v0::detail {

template <class OnlyWhenCalled = void>
class run_search {
public:
    /// A plan that was found on the way.
    struct found_plan {
        std::int64_t deadline;  ///< of the step before: it was looked for by then
        std::int64_t time;
        std::int64_t cost;
        std::vector<std::size_t> choice;
    };

    /// Begins with every rank at its highest clock.
    constexpr run_search(real_frontier const& r, switching_rule rule)
        : network_{&r.relaxed.activities.network}, rule_{rule}, waiting_{r.relaxed.waiting}, blocking_{r.blocking}
    {
        auto const& all = network_->operations;
        for (std::size_t k = 0; k < all.size(); ++k) {
            tables_.push_back(&r.options[static_cast<std::size_t>(r.relaxed.activities.curve_of[k])]);
            choice_.push_back(0);
        }
        for (std::size_t begin = 0, end = 0; begin < all.size(); begin = end) {
            while (end < all.size() && all[end].row == all[begin].row) {
                ++end;
            }
            rows_.push_back({begin, end});
        }
        set_to_highest();
    }

    /// How long the iteration takes with every rank at its highest clock.
    constexpr std::int64_t fastest() const { return fastest_; }
    constexpr std::vector<found_plan> const& found() const { return found_; }

    /// Looks for plans for a deadline: on from the plan of the step before, and again from the beginning. @pre deadlines do not fall
    constexpr void step(std::int64_t before, std::int64_t deadline, clocked_plan const& proposal)
    {
        before_ = before;
        deadline_ = deadline;
        take_over(proposal);
        auto const kept = choice_;
        auto const cost_of_kept = cost();
        set_to_highest();
        begin_even();
        take_over(proposal);
        if (cost() > cost_of_kept) {
            choice_ = kept;
        }
    }

    constexpr clocked_plan plan(activity_network const& activities, found_plan const& chosen)
    {
        auto result = plan_with(activities, blocking_, [&](std::size_t k) { return (*tables_[k])[chosen.choice[k]]; });
        result.time = nanoseconds(static_cast<double>(chosen.time));  // with the changes of clocks
        return result;
    }

private:
    struct row_range {
        std::size_t begin;
        std::size_t end;
    };

    /// One clock for all ranks, then one for each, the cheapest that the deadline allows: no changes at all.
    constexpr void begin_even()
    {
        for (auto const& option : *tables_.front()) {
            (void)try_clock(0, choice_.size(), option.clock);
        }
        for (auto const [begin, end] : rows_) {
            for (auto const& option : *tables_[begin]) {
                (void)try_clock(begin, end, option.clock);
            }
        }
    }

    /// Takes over runs of the proposal, alone and joined with those that follow, while that saves.
    constexpr void take_over(clocked_plan const& proposal)
    {
        auto const most = std::clamp<std::size_t>(2400 / choice_.size(), 2, 12);
        for (bool improved = true; improved;) {
            improved = false;
            for (auto const [begin, end] : rows_) {
                auto const clocks = clocks_of(proposal, begin, end);
                for (std::size_t from = begin; from < end; from = run_end(proposal, from, end)) {
                    auto to = from;
                    for (std::size_t joined = 0; joined < most && to < end; ++joined) {
                        to = run_end(proposal, to, end);
                        for (auto const clock : clocks) {
                            improved = try_clock(from, to, clock) || improved;
                        }
                    }
                }
            }
        }
    }

    /// Notes the plan at hand if it is the least so far, by its cost or with waiting until its end.
    constexpr void note(std::int64_t time)
    {
        auto const sum = cost();
        auto const total = sum + in_whole_nanojoules(waiting_ * nanoseconds(static_cast<double>(time))).count;
        if (found_.empty() || sum < least_cost_ || total < least_total_) {
            least_cost_ = found_.empty() ? sum : std::min(least_cost_, sum);
            least_total_ = found_.empty() ? total : std::min(least_total_, total);
            found_.push_back({before_, time, sum, choice_});
        }
    }

    constexpr clock_option const& chosen(std::size_t k) const { return (*tables_[k])[choice_[k]]; }

    static constexpr std::size_t run_end(clocked_plan const& proposal, std::size_t from, std::size_t end)
    {
        auto to = from + 1;
        while (to < end && proposal.options[to].clock == proposal.options[from].clock) {
            ++to;
        }
        return to;
    }

    static constexpr std::vector<megahertz> clocks_of(clocked_plan const& proposal, std::size_t begin, std::size_t end)
    {
        std::vector<megahertz> clocks;
        for (std::size_t k = begin; k < end; ++k) {
            if (auto const clock = proposal.options[k].clock; std::find(clocks.begin(), clocks.end(), clock) == clocks.end()) {
                clocks.push_back(clock);
            }
        }
        return clocks;
    }

    /// The place of a clock among the options; their number when it is not there. Operations without clocks take any.
    constexpr std::size_t place_of(std::size_t k, megahertz clock) const
    {
        auto const& table = *tables_[k];
        std::size_t place = 0;
        while (place < table.size() && table[place].clock != clock && table[place].clock.count > 0.0) {
            ++place;
        }
        return place;
    }

    constexpr void set_to_highest()
    {
        for (auto const [begin, end] : rows_) {
            set_to_highest(begin, end);
        }
        fastest_ = length();
        if (found_.empty()) {
            before_ = fastest_;
            note(fastest_);
        }
    }

    constexpr void set_to_highest(std::size_t begin, std::size_t end)
    {
        megahertz highest{0.0};
        for (std::size_t k = begin; k < end; ++k) {
            for (auto const& option : *tables_[k]) {
                highest = std::max(highest, option.clock);
            }
        }
        for (std::size_t k = begin; k < end; ++k) {
            auto const place = place_of(k, highest);
            choice_[k] = place < tables_[k]->size() ? place : 0;
        }
    }

    constexpr bool try_clock(std::size_t from, std::size_t to, megahertz clock)
    {
        std::int64_t change = 0;
        for (std::size_t k = from; k < to; ++k) {
            auto const place = place_of(k, clock);
            if (place == tables_[k]->size()) {
                return false;
            }
            change += cost_of((*tables_[k])[place]) - cost_of(chosen(k));
        }
        if (change >= 0) {
            return false;
        }
        auto const before = choice_;
        for (std::size_t k = from; k < to; ++k) {
            choice_[k] = place_of(k, clock);
        }
        if (dwells()) {
            if (auto const end = length(); end <= deadline_) {
                note(end);
                return true;
            }
        }
        choice_ = before;
        return false;
    }

    constexpr std::int64_t cost_of(clock_option const& option) const { return in_whole_nanojoules(option.energy - blocking_ * option.time).count; }

    constexpr std::int64_t cost() const
    {
        std::int64_t sum = 0;
        for (std::size_t k = 0; k < choice_.size(); ++k) {
            sum += cost_of(chosen(k));
        }
        return sum;
    }

    /// True where the operation needs another clock than the one with a clock before it on its rank, round the end.
    constexpr bool changes(row_range row, std::size_t k) const
    {
        if (chosen(k).clock.count <= 0.0) {
            return false;
        }
        for (std::size_t back = 1; back < row.end - row.begin; ++back) {
            auto const before = k >= row.begin + back ? k - back : k + (row.end - row.begin) - back;
            if (chosen(before).clock.count > 0.0) {
                return chosen(before).clock != chosen(k).clock;
            }
        }
        return false;
    }

    constexpr bool dwells() const
    {
        for (auto const row : rows_) {
            std::size_t first = row.begin;
            while (first < row.end && !changes(row, first)) {
                ++first;
            }
            if (first == row.end) {
                continue;
            }
            seconds held{0.0};
            for (std::size_t step = 0; step <= row.end - row.begin; ++step) {
                auto const k = first + step < row.end ? first + step : first + step - (row.end - row.begin);
                if (step > 0 && changes(row, k)) {
                    if (held < rule_.dwell) {
                        return false;
                    }
                    held = seconds{0.0};
                }
                held += chosen(k).time;
            }
        }
        return true;
    }

    constexpr std::int64_t length()
    {
        lengths_.assign(network_->arcs.size(), 0);
        for (auto const row : rows_) {
            for (std::size_t k = row.begin; k < row.end; ++k) {
                lengths_[static_cast<std::size_t>(network_->operations[k].arc)] =
                    nanoseconds_above(chosen(k).time) + (changes(row, k) ? nanoseconds_above(rule_.latency) : 0);
            }
        }
        earliest_.assign(static_cast<std::size_t>(network_->events), 0);
        for (std::size_t a = 0; a < network_->arcs.size(); ++a) {
            auto const& arc = network_->arcs[a];
            auto& end = earliest_[static_cast<std::size_t>(arc.to)];
            end = std::max(end, earliest_[static_cast<std::size_t>(arc.from)] + (arc.operation < 0 ? arc.nanoseconds : lengths_[a]));
        }
        return earliest_.back();
    }

    event_network const* network_;
    switching_rule rule_;
    watts waiting_;
    watts blocking_;
    std::int64_t fastest_ = 0;
    std::int64_t before_ = 0;
    std::int64_t deadline_ = 0;
    std::vector<found_plan> found_;
    std::int64_t least_cost_ = 0;
    std::int64_t least_total_ = 0;
    std::vector<std::vector<clock_option> const*> tables_;
    std::vector<std::size_t> choice_;
    std::vector<row_range> rows_;
    std::vector<std::int64_t> lengths_;
    std::vector<std::int64_t> earliest_;
};

}  // namespace rheo::inline v0::detail
