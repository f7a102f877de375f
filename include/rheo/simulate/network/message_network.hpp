#pragma once
// SPDX-License-Identifier: Apache-2.0

// Messages on a network over modelled time. Links carry one message at a time, first come first served; of two at
// one time, the one that was queued first. The caller sends, sets alarms, and takes what happens next.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "rheo/simulate/network/event_queue.hpp"
#include "rheo/simulate/network/network_level.hpp"
#include "rheo/simulate/network/network_model.hpp"
#include "rheo/simulate/network/rank_links.hpp"
#include "rheo/simulate/network/route.hpp"
#include "rheo/topology/tagged_index.hpp"
#include "rheo/units/array_view.hpp"
#include "rheo/units/expects.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

/// @tparam Model one of network_model.hpp
/// @tparam Note what the caller wants back with an arrival or an alarm
template <class Model, class Note>
class message_network {
public:
    using time = typename Model::time;
    using level = network_level<typename Model::link>;

    struct happening {
        time at;
        Note note;
    };

    /// @param own links of ranks that are not those of their levels; null: there are none  @pre network_fault(levels) is empty, `own` outlives the network
    explicit message_network(array_view<level const> levels, rank_links<typename Model::link> const* own = nullptr)
        : levels_(levels.begin(), levels.end()), routes_{levels}, own_{own}
    {
        for (std::size_t k = 0; k < levels_.size(); ++k) {
            first_link_.push_back({k == 0 ? 0 : routes_.end_of(k - 1), static_cast<std::int64_t>(links_.size())});
            auto const bundles = routes_.end_of(k) - first_link_.back().bundle;
            if (Model::shares_links) {
                links_.resize(links_.size() + static_cast<std::size_t>(bundles) * static_cast<std::size_t>(levels_[k].links_per_member));
            }
        }
    }

    /// The same, with links that are alike as one (network_routes::equal_bundles): of ranks that do the same at the same times only one
    /// sends. @pre a period for each level. That is exact as long as has_ties() is false and no link is shared by ranks that are alike.
    message_network(array_view<level const> levels, array_view<std::int32_t const> periods) : message_network{levels}
    {
        bool const turns = !std::equal(levels.begin(), levels.end(), periods.begin(), [](level const& l, std::int32_t period) { return l.members == period; });
        if (Model::shares_links && turns) {
            equal_ = routes_.equal_bundles(periods);
        }
    }

    int ranks() const { return routes_.ranks(); }

    /// Whether two messages reached a link at the same time: their numbers then decided which went first.
    bool has_ties() const { return has_ties_; }

    /// When what happened last did.
    time now() const { return now_; }

    /// A message that is at its first link at that time. @pre two ranks of the network; no earlier than what happened last
    void send(rank_id from, rank_id to, bytes size, time at, Note note)
    {
        expects(size.count >= 0 && !(at < now_), "a message of at least 0 bytes is sent now or later");
        auto const route = routes_.route(from, to);
        auto const& link = levels_[static_cast<std::size_t>(route.level)].link;
        if constexpr (Model::shares_links) {
            auto const place = put({route, Model::passage(link, size), note});
            if (own_ != nullptr) {
                travellers_.resize(messages_.size());
                travellers_[place] = {from, to, size, at};
            }
            queue_.push({at, number_++, place});
        } else {
            alarm(Model::sum(at, own_ == nullptr ? Model::way(link, route.hops, size) : Model::way(own_->of_way(route, from, to), 1, size)), note);
        }
    }

    /// The note comes back at that time. @pre no earlier than what happened last
    void alarm(time at, Note note)
    {
        expects(!(at < now_), "an alarm is never set in the past");
        queue_.push({at, number_++, put({{}, {}, note})});  // a message without hops has arrived
    }

    /// The next arrival or alarm; nothing when nothing is left.
    std::optional<happening> next()
    {
        return next([](time) { return true; });
    }

    /// The next one that is now; nothing when all others are later.
    std::optional<happening> next_now()
    {
        return next([this](time at) { return !(now_ < at); });
    }

    /// Links taken by messages so far; 0 where they are not shared.
    std::int64_t hops() const { return hops_; }

private:
    static constexpr std::uint32_t nothing = std::numeric_limits<std::uint32_t>::max();
    struct message {
        network_route route;
        link_passage<time> passage;
        Note note;
        std::int32_t hop = 0;
        std::uint32_t link = nothing;    ///< in whose line it is
        std::uint32_t behind = nothing;  ///< the message after it in that line
        time at{};                       ///< when it is at the next place
        std::uint64_t number = 0;
    };
    /// A message whose links may differ.
    struct traveller {
        rank_id from;
        rank_id to;
        bytes size;
        time tail;  ///< when all of it is at the next place
    };
    struct shared_link {
        time free;
        std::uint32_t last = nothing;  ///< of its line
        time asked{-1};                ///< when a message came last to it, or to one beside it; of the first one
    };
    struct level_begin {
        std::int32_t bundle;
        std::int64_t link;
    };

    template <class IsWanted>
    std::optional<happening> next(IsWanted const& is_wanted)
    {
        while (!queue_.empty() && is_wanted(queue_.next_time())) {
            auto const event = queue_.pop();
            now_ = event.at;
            auto& m = messages_[event.subject];
            if (m.behind != nothing) {
                auto const& next = messages_[m.behind];
                queue_.push({next.at, next.number, m.behind});
            } else if (m.link != nothing) {
                links_[m.link].last = nothing;
            }
            if (m.hop == m.route.hops) {
                free_.push_back(event.subject);
                return happening{event.at, m.note};
            }
            if constexpr (Model::shares_links) {  // else all that is queued has arrived
                pass(event.subject, event.at);
            }
        }
        return std::nullopt;
    }

    std::uint32_t put(message const& m)
    {
        if (free_.empty()) {
            messages_.push_back(m);
            return static_cast<std::uint32_t>(messages_.size() - 1);
        }
        auto const place = free_.back();
        free_.pop_back();
        messages_[place] = m;
        return place;
    }

    /// Takes the message over its next link. Those that a link has sent off stand in a line, and only the first is in the queue: they
    /// arrive one after the other, and a short queue is a fast one. One that would overtake goes into the queue by itself.
    void pass(std::uint32_t place, time ready)
    {
        auto& m = messages_[place];
        auto const first = first_link(m);
        auto const link = free_link(m, first);
        has_ties_ = has_ties_ || links_[first].asked == ready;
        links_[first].asked = ready;
        auto& taken = links_[link];
        auto const start = std::max(ready, taken.free);
        ++m.hop;
        ++hops_;
        if (own_ == nullptr) {
            taken.free = Model::sum(start, m.passage.holds);
            m.at = Model::sum(start, m.hop == m.route.hops ? m.passage.last_hop : m.passage.per_hop);
        } else {
            travel(place, start, taken);
        }
        m.number = number_++;
        m.behind = nothing;
        m.link = nothing;
        if (taken.last == nothing || !(m.at < messages_[taken.last].at)) {
            m.link = link;
            auto const before = std::exchange(taken.last, place);
            if (before != nothing) {
                messages_[before].behind = place;
                return;
            }
        }
        queue_.push({m.at, m.number, place});
    }

    /// The same where links differ. A link carries a message until all of it is through, which may come in slowly from the link before.
    void travel(std::uint32_t place, time start, shared_link& taken)
    {
        auto& m = messages_[place];
        auto& t = travellers_[place];
        auto const passage = Model::passage(own_->of_hop(m.route, t.from, t.to, m.hop - 1), t.size);
        taken.free = std::max(Model::sum(start, passage.holds), t.tail);
        t.tail = std::max(Model::sum(start, passage.last_hop), Model::sum(t.tail, passage.per_hop));
        m.at = m.hop == m.route.hops ? t.tail : Model::sum(start, passage.per_hop);
    }

    /// Of the links side by side that the message takes next.
    std::size_t first_link(message const& m) const
    {
        auto const k = static_cast<std::size_t>(m.route.level);
        auto const bundle = bundle_at(m.route, m.hop);
        auto const of_level = std::int64_t{equal_.empty() ? bundle : equal_[static_cast<std::size_t>(bundle)]} - first_link_[k].bundle;
        return static_cast<std::size_t>(first_link_[k].link + of_level * levels_[k].links_per_member);
    }

    /// The one of them that is free first.
    std::uint32_t free_link(message const& m, std::size_t first) const
    {
        auto const side_by_side = levels_[static_cast<std::size_t>(m.route.level)].links_per_member;
        auto const begin = links_.begin() + static_cast<std::ptrdiff_t>(first);
        auto const chosen = std::min_element(begin, begin + side_by_side, [](auto const& a, auto const& b) { return a.free < b.free; });
        return static_cast<std::uint32_t>(chosen - links_.begin());
    }

    std::vector<level> levels_;
    network_routes<typename Model::link, Model::has_own_links> routes_;
    std::vector<level_begin> first_link_;
    std::vector<shared_link> links_;
    std::vector<std::int32_t> equal_;  ///< bundle -> the one that stands for it; empty: each for itself
    event_queue<time, std::uint32_t> queue_;
    std::vector<message> messages_;
    rank_links<typename Model::link> const* own_;
    std::vector<traveller> travellers_;  ///< by place in messages_, where links differ
    std::vector<std::uint32_t> free_;    ///< places in messages_
    time now_{};
    std::uint64_t number_ = 0;  ///< of the next thing to happen
    std::int64_t hops_ = 0;
    bool has_ties_ = false;
};

}  // namespace rheo::inline v0
