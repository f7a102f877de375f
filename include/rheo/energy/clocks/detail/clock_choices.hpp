#pragma once
// SPDX-License-Identifier: Apache-2.0

// A choice of one option for each operation, with its cost and when everything happens. Changes since a trial began can be taken back.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "rheo/energy/clocks/whole_options.hpp"
#include "rheo/energy/frontier/activity_network.hpp"
#include "rheo/energy/frontier/event_times.hpp"

namespace rheo::inline v0::detail {

/// How a relaxed plan is rounded down to options.
enum class rounding {
    windows,   ///< each operation by itself, to what fits between its two events
    forward,   ///< in the order of time, by its later event: what one leaves unused, the next one has
    backward,  ///< the mirror image, from the end
};

template <class OnlyWhenCalled = void>
class clock_choices {
public:
    /// Begins with every operation at its fastest option.
    constexpr clock_choices(activity_network const& p, std::vector<std::vector<whole_option>> const& tables)
        : network_{&p}, tables_{&tables}, times_{p.network}, choices_(p.curve_of.size(), 0), touched_in_(p.curve_of.size(), 0)
    {
        restart(choices_);
    }

    constexpr std::size_t size() const { return choices_.size(); }
    constexpr int operator[](std::size_t k) const { return choices_[k]; }
    constexpr std::vector<int> const& all() const { return choices_; }
    constexpr std::int64_t cost() const { return cost_; }
    constexpr std::int64_t time() const { return times_.end(); }
    constexpr std::int64_t work() const { return times_.work(); }
    constexpr std::vector<whole_option> const& table(std::size_t k) const { return (*tables_)[static_cast<std::size_t>(network_->curve_of[k])]; }
    constexpr whole_option const& chosen(std::size_t k) const { return table(k)[static_cast<std::size_t>(choices_[k])]; }
    /// The longest way from the beginning to the end that leads through an operation.
    constexpr std::int64_t way_through(std::size_t k) const
    {
        auto const& arc = network_->network.arcs[arc_of(k)];
        return times_.earliest(arc.from) + chosen(k).nanoseconds + times_.to_end(arc.to);
    }

    /// Before the trial.
    struct former_choice {
        std::size_t operation;
        int option;
    };
    constexpr std::vector<former_choice> const& changes() const { return changed_; }
    /// Operations whose room the trial has changed.
    constexpr std::vector<std::size_t> const& touched() const { return touched_; }

    /// Begins from other choices. Cost: two passes over the network.
    constexpr void restart(std::vector<int> const& choices)
    {
        choices_ = choices;
        cost_ = 0;
        for (std::size_t k = 0; k < choices_.size(); ++k) {
            cost_ += chosen(k).cost;
            times_.set_length(arc_of(k), chosen(k).nanoseconds);
        }
        times_.run();
    }

    /// Begins with a relaxed plan, given by when its events happen in nanoseconds.
    constexpr void round_down(std::vector<std::int64_t> const& events, rounding how)
    {
        auto const& arcs = network_->network.arcs;
        bool const back = how == rounding::backward;
        auto when = events;
        if (how != rounding::windows) {
            when.assign(events.size(), back ? events.back() : 0);
        }
        for (std::size_t i = 0; i < arcs.size(); ++i) {
            auto const& arc = arcs[back ? arcs.size() - 1 - i : i];
            auto const from = static_cast<std::size_t>(arc.from);
            auto const to = static_cast<std::size_t>(arc.to);
            auto length = arc.nanoseconds;
            if (arc.operation >= 0) {
                auto const k = static_cast<std::size_t>(arc.operation);
                choices_[k] = slowest_within(table(k), back ? when[to] - events[from] : events[to] - when[from]);
                length = chosen(k).nanoseconds;
            }
            if (back) {
                when[from] = std::min(when[from], when[to] - length);
            } else {
                when[to] = std::max(when[to], when[from] + length);
            }
        }
        restart(std::vector<int>{choices_});
    }

    /// What was changed before stays.
    constexpr void begin_trial()
    {
        times_.keep();
        changed_.clear();
        touched_.clear();
        ++trial_;
    }

    /// As begin_trial, but the changes of this trial are still known.
    constexpr void keep() { times_.keep(); }

    constexpr void change(std::size_t k, int option)
    {
        changed_.push_back({k, choices_[k]});
        cost_ -= chosen(k).cost;
        choices_[k] = option;
        cost_ += chosen(k).cost;
        times_.change(arc_of(k), chosen(k).nanoseconds, [&](std::size_t other) {
            if (touched_in_[other] != trial_) {
                touched_in_[other] = trial_;
                touched_.push_back(other);
            }
        });
    }

    /// All changes of the trial. @param cost before it
    constexpr void take_back(std::int64_t cost)
    {
        times_.take_back();
        for (auto i = changed_.size(); i-- > 0;) {
            choices_[changed_[i].operation] = changed_[i].option;
        }
        cost_ = cost;
    }

private:
    constexpr std::size_t arc_of(std::size_t k) const { return static_cast<std::size_t>(network_->network.operations[k].arc); }

    activity_network const* network_;
    std::vector<std::vector<whole_option>> const* tables_;
    event_times<> times_;
    std::vector<int> choices_;
    std::int64_t cost_ = 0;
    int trial_ = 0;
    std::vector<int> touched_in_;
    std::vector<std::size_t> touched_;
    std::vector<former_choice> changed_;
};

}  // namespace rheo::inline v0::detail
