#pragma once
// SPDX-License-Identifier: Apache-2.0

// The ranks of a simulated job, event by event: members, ranks that have returned and wait, and absent ranks.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "rheo/job/job_event_source.hpp"
#include "rheo/job/rank_slowness.hpp"
#include "rheo/topology/tagged_index.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

namespace detail {

struct lost_rank {
    rank_id rank;
    whole_nanoseconds at;
};

template <class OnlyWhenCalled = void>
class job_members {
public:
    /// @param all whether the job starts with all ranks, or with none
    job_members(int ranks, bool all, job_event_source events)
        : states_(static_cast<std::size_t>(ranks), all ? state::member : state::absent),
          leaves_(states_.size(), false),
          slow_{slow_factors(states_.size(), 1.0), {}},
          events_{std::move(events)}
    {
    }

    /// Applies events up to a time, except losses of members. @returns whether such a loss is next
    bool take_until(whole_nanoseconds now)
    {
        look_ahead(now);
        while (!ahead_.empty() && ahead_.front().at <= now) {
            if (loses_member(ahead_.front())) {
                return true;
            }
            apply(ahead_.front());
            ahead_.pop_front();
        }
        return false;
    }

    /// When the next member is lost, up to a time.
    std::optional<whole_nanoseconds> next_loss(whole_nanoseconds until)
    {
        look_ahead(until);
        for (auto const& event : ahead_) {
            if (event.at > until) {
                break;
            }
            if (loses_member(event)) {
                return event.at;
            }
        }
        return std::nullopt;
    }

    /// Applies all events up to a time. lost() then has the members that were lost, until the next call.
    void take_losses(whole_nanoseconds until)
    {
        lost_.clear();
        take(until);
    }

    /// Applies all events up to a time. All present ranks are members then.
    void take_all(whole_nanoseconds now)
    {
        take_losses(now);
        (void)take_waiting();
    }

    /// When the next event is.
    std::optional<whole_nanoseconds> next_event() const
    {
        auto const event = ahead_.empty() ? events_.next() : std::optional{ahead_.front()};
        return event ? std::optional{event->at} : std::nullopt;
    }

    std::vector<lost_rank> const& lost() const { return lost_; }

    std::vector<rank_id> lost_ranks() const
    {
        std::vector<rank_id> ranks;
        for (auto const& l : lost_) {
            ranks.push_back(l.rank);
        }
        std::sort(ranks.begin(), ranks.end());
        return ranks;
    }

    /// Members and those that wait.
    std::vector<rank_id> present() const
    {
        return ranks_where([this](std::size_t r) { return states_[r] != state::absent; });
    }

    /// The number of present ranks.
    std::size_t size() const { return states_.size() - static_cast<std::size_t>(std::count(states_.begin(), states_.end(), state::absent)); }

    bool has_waiting() const { return waiting_ > 0; }

    /// Those that wait become members.
    std::vector<rank_id> take_waiting()
    {
        auto const ranks = ranks_where([this](std::size_t r) { return states_[r] == state::waiting; });
        std::replace(states_.begin(), states_.end(), state::waiting, state::member);
        waiting_ = 0;
        return ranks;
    }

    /// Members that are drained.
    std::vector<rank_id> leaving() const
    {
        return leaving_ == 0 ? std::vector<rank_id>{} : ranks_where([this](std::size_t r) { return leaves_[r]; });
    }

    /// They have left.
    void leave()
    {
        for (auto const rank : leaving()) {
            set(rank, state::absent);
        }
    }

    int nodes(int node_size) const
    {
        int count = 0;
        std::int32_t last = -1;
        for (auto const rank : present()) {
            count += rank.value / node_size != last ? 1 : 0;
            last = rank.value / node_size;
        }
        return count;
    }

    rank_slowness const& slowness() const { return slow_; }

private:
    enum class state : std::uint8_t { absent, waiting, member };

    template <class IsWanted>
    std::vector<rank_id> ranks_where(IsWanted const& is_wanted) const
    {
        std::vector<rank_id> ranks;
        for (std::size_t r = 0; r < states_.size(); ++r) {
            if (is_wanted(r)) {
                ranks.push_back(rank_id{static_cast<std::int32_t>(r)});
            }
        }
        return ranks;
    }

    void look_ahead(whole_nanoseconds until)
    {
        for (auto event = events_.next(); event && event->at <= until; event = events_.next()) {
            ahead_.push_back(*event);
            events_.pop();
        }
    }

    void take(whole_nanoseconds until)
    {
        look_ahead(until);
        for (; !ahead_.empty() && ahead_.front().at <= until; ahead_.pop_front()) {
            apply(ahead_.front());
        }
    }

    template <class Visit>
    void for_each_rank(job_event const& event, Visit const& visit) const
    {
        for (auto rank = event.first; rank <= event.last && at(rank) < states_.size(); ++rank) {
            visit(rank);
        }
    }

    bool loses_member(job_event const& event) const
    {
        bool loses = false;
        if (event.kind == job_event_kind::lose) {
            for_each_rank(event, [&](rank_id rank) { loses = loses || states_[at(rank)] == state::member; });
        }
        return loses;
    }

    void set(rank_id rank, state next)
    {
        auto& of = states_[at(rank)];
        waiting_ += (next == state::waiting ? 1 : 0) - (of == state::waiting ? 1 : 0);
        of = next;
        if (leaves_[at(rank)]) {
            leaves_[at(rank)] = false;
            --leaving_;
        }
    }

    void recover(rank_id rank)
    {
        slow_.computing[at(rank)] = 1.0;
        slow_links(rank, 1.0);
    }

    /// Without slow links there are no factors of links.
    void slow_links(rank_id rank, double factor)
    {
        if (factor == 1.0 && slow_.links.empty()) {
            return;
        }
        slow_.links.resize(states_.size(), 1.0);
        slow_.links[at(rank)] = factor;
        if (std::all_of(slow_.links.begin(), slow_.links.end(), [](double f) { return f == 1.0; })) {
            slow_.links.clear();
        }
    }

    void apply(job_event const& event)
    {
        for_each_rank(event, [&](rank_id rank) {
            auto const now = states_[at(rank)];
            switch (event.kind) {
            case job_event_kind::lose:
                if (now == state::member) {
                    lost_.push_back({rank, event.at});
                }
                set(rank, state::absent);
                break;
            case job_event_kind::rejoin:
                if (now == state::absent) {
                    set(rank, state::waiting);
                    recover(rank);
                }
                break;
            case job_event_kind::drain:
                if (now == state::waiting) {
                    set(rank, state::absent);
                } else if (now == state::member && !leaves_[at(rank)]) {
                    leaves_[at(rank)] = true;
                    ++leaving_;
                }
                break;
            case job_event_kind::slow: slow_.computing[at(rank)] = event.value; break;
            case job_event_kind::link: slow_links(rank, event.value); break;
            case job_event_kind::well: recover(rank); break;
            }
        });
    }

    std::vector<state> states_;
    std::vector<bool> leaves_;
    rank_slowness slow_;
    job_event_source events_;
    std::deque<job_event> ahead_;  ///< taken out of the source, not yet happened
    std::vector<lost_rank> lost_;
    int waiting_ = 0;
    int leaving_ = 0;
};

}  // namespace detail
}  // namespace rheo::inline v0
