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

#include "rheo/energy/clocks/detail/clock_choices.hpp"
#include "rheo/energy/clocks/whole_options.hpp"
#include "rheo/energy/frontier/activity_network.hpp"

namespace rheo::inline v0::detail {

template <class OnlyWhenCalled = void>
class clock_search {
public:
    /// Begins with every operation at its fastest option.
    constexpr clock_search(activity_network const& p, std::vector<std::vector<whole_option>> const& tables) : choices_{p, tables} {}

    constexpr std::vector<int> const& choices() const { return choices_.all(); }
    constexpr std::int64_t cost() const { return choices_.cost(); }
    constexpr std::int64_t time() const { return choices_.time(); }
    constexpr std::int64_t work() const { return choices_.work() + work_; }

    /// Operations that the step or the exchange has changed of which `seen` hears.
    constexpr auto const& changes() const { return choices_.changes(); }

    /// Begins from other choices. Cost: two passes over the network.
    constexpr void restart(std::vector<int> const& choices) { choices_.restart(choices); }

    /// Begins with a relaxed plan, given by when its events happen in nanoseconds.
    constexpr void round_down(std::vector<std::int64_t> const& events, rounding how) { choices_.round_down(events, how); }

    /// Speeds up operations on the longest path, the cheapest first, until the deadline is met. False when no choice meets it.
    constexpr bool meet(std::int64_t deadline)
    {
        auto const count = choices_.size();
        while (time() > deadline) {
            auto const k = cheapest_critical(deadline, count, [](std::size_t i) { return i; }, count);
            if (k == count) {
                return false;
            }
            choices_.change(k, choices_[k] - 1);
        }
        choices_.begin_trial();
        return true;
    }

    /// Gives what time is left, step by step, to the operation that saves most per nanosecond; `seen(*this)` hears of each step.
    /// @pre time() <= the deadline
    template <class Seen>
    constexpr void fill(std::int64_t deadline, Seen seen)
    {
        choices_.begin_trial();
        queue_.clear();
        for (std::size_t k = 0; k < choices_.size(); ++k) {
            offer(k, deadline);
        }
        work_ += static_cast<std::int64_t>(choices_.size() / 4);
        spend(deadline, [&](auto const& search) {
            seen(search);
            choices_.begin_trial();
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

    constexpr slower_step best_step(std::size_t k, std::int64_t deadline) const
    {
        auto const& options = choices_.table(k);
        auto const& now = choices_.chosen(k);
        auto const room = deadline - choices_.way_through(k) + now.nanoseconds;
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
                choices_.change(k, step.option);
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
            if (choices_[k] == 0 || k == spared || choices_.way_through(k) != time()) {
                continue;
            }
            auto const& faster = choices_.table(k)[static_cast<std::size_t>(choices_[k]) - 1];
            auto const price = static_cast<double>(faster.cost - choices_.chosen(k).cost) /
                               static_cast<double>(std::min(time() - deadline, choices_.chosen(k).nanoseconds - faster.nanoseconds));
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
        auto const before = choices_.cost();
        choices_.begin_trial();
        choices_.change(k, choices_[k] - 1);
        return pays(before, deadline, k);
    }

    constexpr bool slow_down(std::size_t k, std::int64_t deadline)
    {
        if (static_cast<std::size_t>(choices_[k]) + 1 == choices_.table(k).size()) {
            return false;
        }
        auto const before = choices_.cost();
        choices_.begin_trial();
        choices_.change(k, choices_[k] + 1);
        auto const most = before + (before - choices_.cost()) * 3 / 2;  // time that the repair leaves over can win back more than half
        while (time() > deadline) {
            auto const faster = cheapest_critical(deadline, choices_.touched().size(), [&](std::size_t i) { return choices_.touched()[i]; }, k);
            if (faster == choices_.size() || choices_.cost() > most) {
                choices_.take_back(before);
                return false;
            }
            choices_.change(faster, choices_[faster] - 1);
        }
        return pays(before, deadline, choices_.size());
    }

    /// Gives the time that a trial has freed to others, and keeps its changes if all of it is cheaper than before.
    constexpr bool pays(std::int64_t before, std::int64_t deadline, std::size_t spared)
    {
        queue_.clear();
        for (auto const k : choices_.touched()) {
            if (k != spared) {
                offer(k, deadline);
            }
        }
        work_ += static_cast<std::int64_t>(choices_.touched().size() / 4);
        spend(deadline, [](auto const&) {});
        if (choices_.cost() >= before) {
            choices_.take_back(before);
            return false;
        }
        choices_.keep();
        return true;
    }

    clock_choices<> choices_;
    std::int64_t work_ = 0;
    std::size_t next_ = 0;  ///< exchange that is next: operation and which of the two
    std::vector<queued> queue_;
};

}  // namespace rheo::inline v0::detail
