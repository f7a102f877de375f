#pragma once
// SPDX-License-Identifier: Apache-2.0

// A direct reduction of many holders: for each level of the network, what a rank sends to all holders from which it differs there is one message to one of
// them. So links carry the bytes of all messages, and a few messages stand for the square of the holders.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "rheo/simulate/network/network_level.hpp"
#include "rheo/simulate/played_step/detail/unit_wire.hpp"
#include "rheo/topology/tagged_index.hpp"
#include "rheo/units/array_view.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0 {

namespace detail {

/// What stands for the messages to some holders.
struct joined_message {
    rank_id from;  ///< numbers of holders
    rank_id to;
    int others;  ///< holders that it stands for
};

/// The messages of each holder in each half, by holder. @param ranks of the holders, distinct
template <class Level>
std::vector<joined_message> joined_messages(array_view<Level const> levels, std::vector<rank_id> const& ranks)
{
    std::vector<std::int32_t> order(ranks.size());
    for (std::size_t m = 0; m < order.size(); ++m) {
        order[m] = static_cast<std::int32_t>(m);
    }
    std::sort(order.begin(), order.end(), [&](auto a, auto b) { return ranks[static_cast<std::size_t>(a)] < ranks[static_cast<std::size_t>(b)]; });
    auto const rank_at = [&](std::size_t place) { return ranks[static_cast<std::size_t>(order[place])].value; };
    std::vector<joined_message> messages;
    std::int32_t stride = 1;
    for (auto const& level : levels) {
        auto const outer = stride * level.members;
        for (std::size_t first = 0; first < order.size();) {  // of a group at the level
            auto last = first;
            while (last < order.size() && rank_at(last) / outer == rank_at(first) / outer) {
                ++last;
            }
            for (auto begin = first; begin < last;) {  // of a member of the group
                auto end = begin;
                while (end < last && rank_at(end) / stride == rank_at(begin) / stride) {
                    ++end;
                }
                auto const others = static_cast<int>(last - first - (end - begin));
                for (auto place = begin; place < end && others > 0; ++place) {
                    auto const there = end + (place - begin) % static_cast<std::size_t>(others);  // spread over what is behind the member, then around
                    auto const to = first + (there - first) % (last - first);
                    messages.push_back({rank_id{order[place]}, rank_id{order[to]}, others});
                }
                begin = end;
            }
            first = last;
        }
        stride = outer;
    }
    std::stable_sort(messages.begin(), messages.end(), [](auto const& a, auto const& b) { return a.from < b.from; });
    return messages;
}

/// The second half begins at a holder when all have posted and its own messages of the first have come; a holder is through when all have begun the second
/// and its own messages have come.
template <class Model>
class exchange_in_halves {
public:
    exchange_in_halves(unit_wire<Model> wire, array_view<network_level<typename Model::link> const> levels, std::vector<rank_id> const& ranks, bytes sums,
                       bytes values)
        : wire_{std::move(wire)}, messages_{joined_messages(levels, ranks)}, holders_(ranks.size()), sizes_{sums, values}
    {
        for (auto const& m : messages_) {
            ++holders_[at(m.to)].missing[0];
            ++holders_[at(m.to)].missing[1];
        }
    }

    /// @param through is called for each holder that is through
    template <class Through>
    void begin(rank_id holder, Through const& through)
    {
        ++posted_;
        send(holder, 0);
        if (posted_ == holders_.size()) {
            for (rank_id m{0}; at(m) < holders_.size(); ++m) {
                begin_second(m, through);
            }
        }
    }

    template <class Through>
    void happen(collective_note const& note, Through const& through)
    {
        auto& missing = holders_[at(note.rank)].missing[note.key];
        --missing;
        if (note.key == 0) {
            begin_second(note.rank, through);
        } else if (missing == 0 && begun_ == holders_.size()) {
            through(note.rank);
        }
    }

private:
    struct holder_state {
        int missing[2]{};  ///< messages of each half
        bool has_begun = false;
    };

    void send(rank_id from, std::int64_t half)
    {
        auto const whole = sizes_[static_cast<std::size_t>(half)].count / static_cast<std::int64_t>(holders_.size());
        auto const first = std::lower_bound(messages_.begin(), messages_.end(), from, [](joined_message const& m, rank_id r) { return m.from < r; });
        for (auto m = first; m != messages_.end() && m->from == from; ++m) {
            wire_.send(from, m->to, {whole * m->others}, {m->to, 0, 0, collective_event::arrived, half});
        }
    }

    template <class Through>
    void begin_second(rank_id holder, Through const& through)
    {
        auto& h = holders_[at(holder)];
        if (posted_ < holders_.size() || h.missing[0] > 0 || std::exchange(h.has_begun, true)) {
            return;
        }
        ++begun_;
        send(holder, 1);
        for (rank_id m{0}; begun_ == holders_.size() && at(m) < holders_.size(); ++m) {  // those whose messages were there before
            if (holders_[at(m)].missing[1] == 0) {
                through(m);
            }
        }
    }

    unit_wire<Model> wire_;
    std::vector<joined_message> messages_;  ///< by sender
    std::vector<holder_state> holders_;
    bytes sizes_[2];
    std::size_t posted_ = 0;
    std::size_t begun_ = 0;  ///< the second half
};

}  // namespace detail
}  // namespace rheo::inline v0
