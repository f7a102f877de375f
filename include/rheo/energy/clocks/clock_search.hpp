#pragma once
// SPDX-License-Identifier: Apache-2.0

// A search over choices of one option per operation within a deadline. Greedy steps give time that is left to the
// operation that saves most per nanosecond. Two exchanges continue from there: an operation is sped up, and the time that
// this frees goes to others; or one is slowed down, and the deadline is met again by speeding up others where that
// costs least. An exchange that is not cheaper is taken back. Whole numbers and a fixed order: the same choice on every machine.

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
class clock_search {
public:
    /// Begins with every operation at its fastest option.
    constexpr clock_search(activity_network const& p, std::vector<std::vector<whole_option>> const& tables)
        : network_{&p}, tables_{&tables}, times_{p.network}, choices_(p.curve_of.size(), 0), touched_in_(p.curve_of.size(), 0)
    {
        restart(choices_);
    }

    constexpr std::vector<int> const& choices() const { return choices_; }
    constexpr std::int64_t cost() const { return cost_; }
    constexpr std::int64_t time() const { return times_.end(); }
    constexpr std::int64_t work() const { return times_.work() + work_; }

    /// Operations that the step or the exchange has changed of which `seen` hears.
    struct former_choice {
        std::size_t operation;
        int option;
    };
    constexpr std::vector<former_choice> const& changes() const { return changed_; }

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

    /// Speeds up operations on the longest path, the cheapest first, until the deadline is met. False when no choice meets it.
    constexpr bool meet(std::int64_t deadline)
    {
        auto const count = choices_.size();
        while (time() > deadline) {
            auto const k = cheapest_critical(deadline, count, [](std::size_t i) { return i; }, count);
            if (k == count) {
                return false;
            }
            change(k, choices_[k] - 1);
        }
        begin_trial();
        return true;
    }

    /// Gives what time is left, step by step, to the operation that saves most per nanosecond; `seen(*this)` hears of each step.
    /// @pre time() <= the deadline
    template <class Seen>
    constexpr void fill(std::int64_t deadline, Seen seen)
    {
        begin_trial();
        queue_.clear();
        for (std::size_t k = 0; k < choices_.size(); ++k) {
            offer(k, deadline);
        }
        work_ += static_cast<std::int64_t>(choices_.size() / 4);
        spend(deadline, [&](auto const& search) {
            seen(search);
            begin_trial();
        });
    }

    /// Tries both exchanges on the operations in turn, from where it ended last time, until none is of use or so much work is
    /// done; `seen(*this)` hears of each that pays. @pre time() <= the deadline
    template <class Seen>
    constexpr void exchange(std::int64_t deadline, std::int64_t most_work, Seen seen)
    {
        auto const enough = work() + most_work;
        for (std::size_t idle = 0; idle < 2 * choices_.size() && work() < enough; ++idle) {
            auto const k = next_ / 2;
            if (next_ % 2 == 0 ? speed_up(k, deadline) : slow_down(k, deadline)) {
                idle = 0;
                seen(*this);
            }
            next_ = next_ + 1 < 2 * choices_.size() ? next_ + 1 : 0;
        }
    }

private:
    /// The best slower option of an operation.
    struct slower_step {
        double gain = 0.0;  ///< nanojoules per nanosecond
        int option = 0;
    };
    struct queued {
        double gain;
        std::size_t operation;

        friend constexpr bool operator<(queued a, queued b) { return a.gain != b.gain ? a.gain < b.gain : a.operation > b.operation; }
    };

    constexpr std::vector<whole_option> const& table(std::size_t k) const { return (*tables_)[static_cast<std::size_t>(network_->curve_of[k])]; }
    constexpr whole_option const& chosen(std::size_t k) const { return table(k)[static_cast<std::size_t>(choices_[k])]; }
    constexpr std::size_t arc_of(std::size_t k) const { return static_cast<std::size_t>(network_->network.operations[k].arc); }

    /// The longest way from the beginning to the end that leads through an operation.
    constexpr std::int64_t way_through(std::size_t k) const
    {
        auto const& arc = network_->network.arcs[arc_of(k)];
        return times_.earliest(arc.from) + chosen(k).nanoseconds + times_.to_end(arc.to);
    }

    constexpr slower_step best_step(std::size_t k, std::int64_t deadline) const
    {
        auto const& options = table(k);
        auto const& now = chosen(k);
        auto const room = deadline - way_through(k) + now.nanoseconds;
        slower_step best{};
        for (auto o = static_cast<std::size_t>(choices_[k]) + 1; o < options.size() && options[o].nanoseconds <= room; ++o) {
            auto const gain = static_cast<double>(now.cost - options[o].cost) / static_cast<double>(options[o].nanoseconds - now.nanoseconds);
            if (gain > best.gain) {
                best = {gain, static_cast<int>(o)};
            }
        }
        return best;
    }

    constexpr void offer(std::size_t k, std::int64_t deadline)
    {
        if (auto const step = best_step(k, deadline); step.option > 0) {
            queue_.push_back({step.gain, k});
            std::push_heap(queue_.begin(), queue_.end());
        }
    }

    /// Takes the best step of the queue until none is left. Steps only lessen the room of others, so one that was worth
    /// more when it was queued is queued again at what it is worth now.
    template <class Seen>
    constexpr void spend(std::int64_t deadline, Seen seen)
    {
        while (!queue_.empty()) {
            std::pop_heap(queue_.begin(), queue_.end());
            auto const [gain, k] = queue_.back();
            queue_.pop_back();
            ++work_;
            if (auto const step = best_step(k, deadline); step.option > 0 && step.gain == gain) {
                change(k, step.option);
                seen(*this);
            }
            offer(k, deadline);
        }
    }

    /// Among operation_at(0) to operation_at(count - 1), but for `spared`: the one on the longest path whose next faster option costs least
    /// for a nanosecond that is needed. The number of operations when there is none.
    template <class OperationAt>
    constexpr std::size_t cheapest_critical(std::int64_t deadline, std::size_t count, OperationAt operation_at, std::size_t spared)
    {
        auto which = choices_.size();
        double least = 0.0;
        for (std::size_t i = 0; i < count; ++i) {
            auto const k = operation_at(i);
            if (choices_[k] == 0 || k == spared || way_through(k) != time()) {
                continue;
            }
            auto const& faster = table(k)[static_cast<std::size_t>(choices_[k]) - 1];
            auto const price = static_cast<double>(faster.cost - chosen(k).cost) /
                               static_cast<double>(std::min(time() - deadline, chosen(k).nanoseconds - faster.nanoseconds));
            if (which == choices_.size() || price < least) {
                which = k;
                least = price;
            }
        }
        work_ += static_cast<std::int64_t>(count / 4);
        return which;
    }

    constexpr bool speed_up(std::size_t k, std::int64_t deadline)
    {
        if (choices_[k] == 0) {
            return false;
        }
        auto const before = cost_;
        begin_trial();
        change(k, choices_[k] - 1);
        return pays(before, deadline, k);
    }

    constexpr bool slow_down(std::size_t k, std::int64_t deadline)
    {
        if (static_cast<std::size_t>(choices_[k]) + 1 == table(k).size()) {
            return false;
        }
        auto const before = cost_;
        begin_trial();
        change(k, choices_[k] + 1);
        auto const most = before + (before - cost_) * 3 / 2;  // time that the repair leaves over can win back more than half
        while (time() > deadline) {
            auto const faster = cheapest_critical(deadline, touched_.size(), [&](std::size_t i) { return touched_[i]; }, k);
            if (faster == choices_.size() || cost_ > most) {
                take_back(before);
                return false;
            }
            change(faster, choices_[faster] - 1);
        }
        return pays(before, deadline, choices_.size());
    }

    constexpr void begin_trial()
    {
        times_.keep();
        changed_.clear();
        touched_.clear();
        ++trial_;
    }

    /// Gives the time that a trial has freed to others, and keeps its changes if all of it is cheaper than before.
    constexpr bool pays(std::int64_t before, std::int64_t deadline, std::size_t spared)
    {
        queue_.clear();
        for (auto const k : touched_) {
            if (k != spared) {
                offer(k, deadline);
            }
        }
        work_ += static_cast<std::int64_t>(touched_.size() / 4);
        spend(deadline, [](auto const&) {});
        if (cost_ >= before) {
            take_back(before);
            return false;
        }
        times_.keep();
        return true;
    }

    constexpr void take_back(std::int64_t cost)
    {
        times_.take_back();
        for (auto i = changed_.size(); i-- > 0;) {
            choices_[changed_[i].operation] = changed_[i].option;
        }
        cost_ = cost;
    }

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

    activity_network const* network_;
    std::vector<std::vector<whole_option>> const* tables_;
    event_times<> times_;
    std::vector<int> choices_;
    std::int64_t cost_ = 0;
    std::int64_t work_ = 0;
    std::size_t next_ = 0;  ///< exchange that is next: operation and which of the two
    int trial_ = 0;
    std::vector<int> touched_in_;
    std::vector<std::size_t> touched_;  ///< operations whose room this trial has changed
    std::vector<former_choice> changed_;
    std::vector<queued> queue_;
};

}  // namespace rheo::inline v0::detail
