#pragma once
// SPDX-License-Identifier: Apache-2.0

// A reduction under way as rounds of messages: a holder sends those of a round when it has posted and is through with the round before. Where blocks of
// holders do the same, the first block is played, and holder n stands for all that are whole blocks behind it.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "rheo/simulate/played_step/detail/exchange_messages.hpp"
#include "rheo/simulate/played_step/detail/unit_wire.hpp"
#include "rheo/topology/tagged_index.hpp"

namespace rheo::inline v0 {

namespace detail {

template <class Model>
class exchange_in_rounds {
public:
    /// @param played holders of the first block  @param rounds of all holders  @pre there is a round
    exchange_in_rounds(unit_wire<Model> wire, std::size_t played, std::vector<exchange_round> rounds)
        : wire_{std::move(wire)}, rounds_{std::move(rounds)}, next_(played), progress_(rounds_.size())
    {
        for (std::size_t r = 0; r < rounds_.size(); ++r) {
            keep_played(rounds_[r]);
            auto& p = progress_[r];
            p.missing.resize(played);
            for (auto const& m : rounds_[r].messages) {
                ++p.missing[at(played_for(m.to))];
            }
            p.group.resize(rounds_[r].groups.empty() ? 0 : played);
            for (std::size_t g = 0; g < rounds_[r].groups.size(); ++g) {
                for (auto const holder : rounds_[r].groups[g]) {
                    p.group[at(holder)] = static_cast<std::uint32_t>(g);
                }
                p.to_begin.push_back(rounds_[r].groups[g].size());
            }
        }
    }

    /// The holder begins its next round, the first one when it has posted, and those behind it that it need not wait in.
    /// @param through is called for each holder that is through with all rounds
    template <class Through>
    void begin(rank_id holder, Through const& through)
    {
        auto const round = static_cast<std::size_t>(next_[at(holder)]++);
        if (round == rounds_.size()) {
            through(holder);
            return;
        }
        auto const& messages = rounds_[round].messages;
        auto const first = std::lower_bound(messages.begin(), messages.end(), holder, [](exchange_message const& m, rank_id r) { return m.from < r; });
        for (auto m = first; m != messages.end() && m->from == holder; ++m) {
            wire_.send(holder, m->to, m->size, {played_for(m->to), 0, 0, collective_event::arrived, static_cast<std::int64_t>(round)});
        }
        auto& p = progress_[round];
        if (!p.group.empty() && --p.to_begin[p.group[at(holder)]] == 0) {
            for (auto const other : rounds_[round].groups[p.group[at(holder)]]) {
                go_on(other, round, through);
            }
        }
        go_on(holder, round, through);
    }

    template <class Through>
    void happen(collective_note const& note, Through const& through)
    {
        auto const round = static_cast<std::size_t>(note.key);
        --progress_[round].missing[at(note.rank)];
        go_on(note.rank, round, through);
    }

private:
    struct round_progress {
        std::vector<std::int32_t> missing;  ///< holder -> messages that have not come
        std::vector<std::uint32_t> group;   ///< of a holder; empty: there are none
        std::vector<std::size_t> to_begin;  ///< group -> holders that have not begun the round
    };

    rank_id played_for(rank_id holder) const { return rank_id{holder.value % static_cast<std::int32_t>(next_.size())}; }

    /// Drops what other blocks do.
    void keep_played(exchange_round& round) const
    {
        auto const is_other = [&](rank_id holder) { return at(holder) >= next_.size(); };
        std::erase_if(round.messages, [&](exchange_message const& m) { return is_other(m.from); });
        for (auto& group : round.groups) {
            std::erase_if(group, is_other);
        }
    }

    template <class Through>
    void go_on(rank_id holder, std::size_t round, Through const& through)
    {
        auto const& p = progress_[round];
        bool const is_in_it = static_cast<std::size_t>(next_[at(holder)]) == round + 1;
        if (is_in_it && p.missing[at(holder)] == 0 && (p.group.empty() || p.to_begin[p.group[at(holder)]] == 0)) {
            begin(holder, through);
        }
    }

    unit_wire<Model> wire_;
    std::vector<exchange_round> rounds_;
    std::vector<std::int32_t> next_;  ///< holder -> the round that it begins next
    std::vector<round_progress> progress_;
};

}  // namespace detail
}  // namespace rheo::inline v0
