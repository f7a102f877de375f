#pragma once
// SPDX-License-Identifier: Apache-2.0

// The times of a network whose lengths change one by one: when each event happens at the earliest, and how long the
// longest way from it to the end is. A change is carried only as far as it moves something, and can be taken back.

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "rheo/energy/frontier/event_network.hpp"

namespace rheo::inline v0::detail {

/// Events that are still to be looked at, taken in ascending or in descending order.
class event_set {
public:
    template <class OnlyWhenCalled = void>
    constexpr explicit event_set(std::size_t events) : words_((events + 63) / 64, 0)
    {
    }

    constexpr bool empty() const { return count_ == 0; }

    constexpr void insert(int event)
    {
        auto& word = words_[static_cast<std::size_t>(event) / 64];
        auto const bit = std::uint64_t{1} << (static_cast<unsigned>(event) % 64U);
        count_ += (word & bit) == 0 ? 1U : 0U;
        word |= bit;
    }

    /// Takes out the least one. @pre not empty, none is before `from`
    constexpr int take_first(int from)
    {
        auto w = static_cast<std::size_t>(from) / 64;
        while (words_[w] == 0) {
            ++w;
        }
        return take(w, std::countr_zero(words_[w]));
    }

    /// Takes out the greatest one. @pre not empty, none is after `from`
    constexpr int take_last(int from)
    {
        auto w = static_cast<std::size_t>(from) / 64;
        while (words_[w] == 0) {
            --w;
        }
        return take(w, 63 - std::countl_zero(words_[w]));
    }

private:
    constexpr int take(std::size_t word, int bit)
    {
        words_[word] &= ~(std::uint64_t{1} << static_cast<unsigned>(bit));
        --count_;
        return static_cast<int>(word) * 64 + bit;
    }

    std::vector<std::uint64_t> words_;
    std::size_t count_ = 0;
};

template <class OnlyWhenCalled = void>
class event_times {
public:
    /// Operations take no time at first.
    constexpr explicit event_times(event_network const& network) : network_{&network}, pending_{static_cast<std::size_t>(network.events)}
    {
        auto const events = static_cast<std::size_t>(network.events);
        first_in_.assign(events + 1, 0);
        first_out_.assign(events + 1, 0);
        for (auto const& arc : network.arcs) {
            ++first_in_[static_cast<std::size_t>(arc.to) + 1];
            ++first_out_[static_cast<std::size_t>(arc.from) + 1];
            lengths_.push_back(arc.nanoseconds);
        }
        for (std::size_t v = 0; v < events; ++v) {
            first_in_[v + 1] += first_in_[v];
            first_out_[v + 1] += first_out_[v];
        }
        in_.resize(network.arcs.size());
        out_.resize(network.arcs.size());
        auto next_in = first_in_;
        auto next_out = first_out_;
        for (std::size_t a = 0; a < network.arcs.size(); ++a) {
            in_[next_in[static_cast<std::size_t>(network.arcs[a].to)]++] = a;
            out_[next_out[static_cast<std::size_t>(network.arcs[a].from)]++] = a;
        }
        run();
    }

    constexpr event_network const& network() const { return *network_; }
    constexpr std::int64_t end() const { return earliest_.back(); }
    constexpr std::int64_t earliest(int event) const { return earliest_[static_cast<std::size_t>(event)]; }
    constexpr std::int64_t to_end(int event) const { return to_end_[static_cast<std::size_t>(event)]; }

    /// Events that were looked at so far: what the search has cost.
    constexpr std::int64_t work() const { return work_; }

    /// Sets a length without carrying it on: run() has to follow.
    constexpr void set_length(std::size_t arc, std::int64_t nanoseconds) { lengths_[arc] = nanoseconds; }

    /// All times, by two passes over the network. Nothing before it can be taken back.
    constexpr void run()
    {
        auto const& arcs = network_->arcs;
        earliest_.assign(static_cast<std::size_t>(network_->events), 0);
        for (std::size_t a = 0; a < arcs.size(); ++a) {
            auto& end = earliest_[static_cast<std::size_t>(arcs[a].to)];
            end = std::max(end, earliest_[static_cast<std::size_t>(arcs[a].from)] + lengths_[a]);
        }
        to_end_.assign(earliest_.size(), 0);
        for (auto a = arcs.size(); a-- > 0;) {
            auto& begin = to_end_[static_cast<std::size_t>(arcs[a].from)];
            begin = std::max(begin, to_end_[static_cast<std::size_t>(arcs[a].to)] + lengths_[a]);
        }
        work_ += static_cast<std::int64_t>(earliest_.size());
        keep();
    }

    /// Changes a length; `touch(operation)` hears of each other operation whose room has changed. Cost: the events that move.
    template <class Touch>
    constexpr void change(std::size_t arc, std::int64_t nanoseconds, Touch touch)
    {
        auto const& arcs = network_->arcs;
        undo_.push_back({changed::length, arc, lengths_[arc]});
        lengths_[arc] = nanoseconds;
        pending_.insert(arcs[arc].to);
        for (auto v = arcs[arc].to; !pending_.empty();) {
            v = pending_.take_first(v);
            auto const at = static_cast<std::size_t>(v);
            std::int64_t when = 0;
            for (auto i = first_in_[at]; i < first_in_[at + 1]; ++i) {
                when = std::max(when, earliest(arcs[in_[i]].from) + lengths_[in_[i]]);
            }
            ++work_;
            if (when != earliest_[at]) {
                undo_.push_back({changed::earliest, at, earliest_[at]});
                earliest_[at] = when;
                for (auto i = first_out_[at]; i < first_out_[at + 1]; ++i) {
                    reach(arcs[out_[i]].to, arcs[out_[i]].operation, touch);
                }
            }
        }
        pending_.insert(arcs[arc].from);
        for (auto v = arcs[arc].from; !pending_.empty();) {
            v = pending_.take_last(v);
            auto const at = static_cast<std::size_t>(v);
            std::int64_t rest = 0;
            for (auto i = first_out_[at]; i < first_out_[at + 1]; ++i) {
                rest = std::max(rest, to_end(arcs[out_[i]].to) + lengths_[out_[i]]);
            }
            ++work_;
            if (rest != to_end_[at]) {
                undo_.push_back({changed::to_end, at, to_end_[at]});
                to_end_[at] = rest;
                for (auto i = first_in_[at]; i < first_in_[at + 1]; ++i) {
                    reach(arcs[in_[i]].from, arcs[in_[i]].operation, touch);
                }
            }
        }
    }

    /// The changes so far cannot be taken back any more.
    constexpr void keep() { undo_.clear(); }

    /// Takes back all changes since keep().
    constexpr void take_back()
    {
        for (auto i = undo_.size(); i-- > 0;) {
            auto const& u = undo_[i];
            (u.list == changed::length ? lengths_ : u.list == changed::earliest ? earliest_ : to_end_)[u.index] = u.before;
        }
        undo_.clear();
    }

private:
    enum class changed { length, earliest, to_end };
    struct undo_step {
        changed list;
        std::size_t index;
        std::int64_t before;
    };

    template <class Touch>
    constexpr void reach(int event, int operation, Touch& touch)
    {
        pending_.insert(event);
        if (operation >= 0) {
            touch(static_cast<std::size_t>(operation));
        }
    }

    event_network const* network_;
    std::vector<std::size_t> first_in_;  ///< event -> its first arc in `in_`
    std::vector<std::size_t> first_out_;
    std::vector<std::size_t> in_;   ///< arcs by their later event
    std::vector<std::size_t> out_;  ///< arcs by their earlier event
    std::vector<std::int64_t> lengths_;
    std::vector<std::int64_t> earliest_;
    std::vector<std::int64_t> to_end_;
    event_set pending_;
    std::vector<undo_step> undo_;
    std::int64_t work_ = 0;
};

}  // namespace rheo::inline v0::detail
