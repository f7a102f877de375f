#pragma once
// SPDX-License-Identifier: Apache-2.0

// The player of execution traces: begins what is ready, takes the next event from the network, and ends what is over.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "rheo/simulate/chakra/detail/mailboxes.hpp"
#include "rheo/simulate/chakra/detail/meetings.hpp"
#include "rheo/simulate/chakra/detail/rank_clock.hpp"
#include "rheo/simulate/chakra/detail/rank_symmetry.hpp"
#include "rheo/simulate/chakra/play_rules.hpp"
#include "rheo/simulate/chakra/played_traces.hpp"
#include "rheo/simulate/network/message_network.hpp"
#include "rheo/trace/chakra/hang.hpp"
#include "rheo/trace/chakra/rank_program.hpp"
#include "rheo/trace/chakra/trace_set.hpp"
#include "rheo/units/result.hpp"

namespace rheo::inline v0 {

namespace detail {

template <class Model>
class network_player {
public:
    using time = typename Model::time;
    using level = network_level<typename Model::link>;
    using network = message_network<Model, play_note>;

    network_player(chakra_trace_set const& traces, array_view<level const> levels, chakra_play_rules<Model> const& rules, rank_symmetry symmetry)
        : traces_{&traces},
          rules_{&rules},
          symmetry_{std::move(symmetry)},
          network_{symmetry_.is_trivial() ? network{levels, rules.links} : network{levels, array_view<std::int32_t const>{symmetry_.periods}}},
          meetings_{traces, levels, rules, symmetry_},
          clocks_(traces.ranks.size())
    {
        static chakra_rank_trace const nothing{};
        for (std::uint32_t rank = 0; rank < traces.ranks.size(); ++rank) {
            auto const& trace = is_played(rank) ? traces.ranks[rank] : nothing;
            programs_.emplace_back(trace, rules.of_consumers);
            played_.played_ranks += is_played(rank) ? 1 : 0;
            if (rules.keeps_spans) {
                begins_.emplace_back(trace.steps.size());
            }
        }
    }

    network_player(network_player const&) = delete;  // parts of it point to others
    network_player& operator=(network_player const&) = delete;

    /// Whether equal ranks may have different times after all: messages of different ones reached a link at the same time.
    bool has_ties() const { return network_.has_ties(); }

    result<played_traces<time>> play()
    {
        for (std::uint32_t rank = 0; rank < programs_.size(); ++rank) {
            begin_ready(rank);
        }
        end_what_is_over();
        for (auto event = network_.next(); event && error_.empty(); event = network_.next()) {
            if (!Model::fits(event->at)) {
                return failure{"the traces take more than the largest time of this network model (2^63 - 1 ns where time is whole)"};
            }
            for (; event; event = network_.next_now()) {  // what ends together has ended before anything begins
                happen(event->note);
            }
            end_what_is_over();
        }
        for (std::size_t rank = 0; rank < programs_.size() && error_.empty(); ++rank) {
            if (!programs_[rank].is_over()) {
                error_ = why_it_hangs(rank);
            }
        }
        return error_.empty() ? result<played_traces<time>>{finished()} : failure{error_};
    }

private:
    chakra_step const& step_of(std::uint32_t rank, std::uint32_t step) const { return traces_->ranks[rank].steps[step]; }
    time now() const { return network_.now(); }
    bool is_played(std::uint32_t rank) const { return symmetry_.representative(static_cast<std::int32_t>(rank)) == static_cast<std::int32_t>(rank); }

    /// What was played, for all ranks.
    played_traces<time> finished()
    {
        std::vector<std::vector<played_span<time>>> spans(clocks_.size());
        for (auto const& span : std::exchange(played_.spans, {})) {
            spans[span.rank].push_back(span);
        }
        for (std::uint32_t rank = 0; rank < clocks_.size(); ++rank) {
            auto const representative = static_cast<std::size_t>(symmetry_.representative(static_cast<std::int32_t>(rank)));
            played_.ranks.push_back(clocks_[representative].times());
            played_.end = std::max(played_.end, played_.ranks.back().end);
            for (auto const& span : spans[representative]) {
                played_.spans.push_back({rank, span.step, span.begin, span.end});
            }
        }
        return std::move(played_);
    }

    void begin_ready(std::uint32_t rank)
    {
        programs_[rank].begin_ready([&](std::uint32_t step) { begin(rank, step); });
    }

    void begin(std::uint32_t rank, std::uint32_t step)
    {
        auto const& s = step_of(rank, step);
        if (rules_->keeps_spans) {
            begins_[rank][step] = now();
        }
        switch (s.type) {
        case chakra_node_type::metadata: over_.emplace_back(rank, step); break;
        case chakra_node_type::comm_send:
        case chakra_node_type::comm_recv: begin_message(rank, step); break;
        case chakra_node_type::comm_coll:
            if (!rules_->of_consumers || s.collective != chakra_collective::broadcast) {
                begin_collective(rank, step);
                break;
            }
            [[fallthrough]];
        default:
            if (s.type == chakra_node_type::comp && !s.on_host) {
                clocks_[rank].compute(now(), 1);
            } else if (s.type == chakra_node_type::comm_coll) {
                clocks_[rank].communicate(now(), 1);
            }
            network_.alarm(Model::sum(now(), computation_time(s, rank, *rules_)), {play_event::step_ends, rank, step, {}});
        }
    }

    void begin_message(std::uint32_t rank, std::uint32_t step)
    {
        auto const& s = step_of(rank, step);
        bool const sends = s.type == chakra_node_type::comm_send;
        auto const here = static_cast<std::int32_t>(rank);
        auto const sender = symmetry_.representative(sends ? here : s.peer);
        auto const ends = symmetry_.turned(sends ? std::pair{here, s.peer} : std::pair{s.peer, here});
        auto const number = mail_.begin(ends, static_cast<std::uint32_t>(sender), step, s);
        auto const& m = mail_[number];
        bool const has_both = m.send != traced_message::nothing && m.receive != traced_message::nothing;
        if (!m.has_entered && (rules_->of_consumers ? m.send != traced_message::nothing : has_both)) {
            enter(number);
        } else if (m.has_arrived) {
            over_.emplace_back(rank, step);
        } else if (m.has_entered) {
            clocks_[rank].communicate(now(), 1);
        }
    }

    /// The message goes into the network.
    void enter(std::uint32_t number)
    {
        auto& m = mail_[number];
        m.has_entered = true;
        clocks_[m.sender].communicate(now(), 1);
        if (m.receive != traced_message::nothing) {
            clocks_[static_cast<std::size_t>(m.to)].communicate(now(), 1);
        }
        play_note const note{play_event::arrives, number, 0, {}};
        if (m.from == m.to) {
            network_.alarm(now(), note);
        } else {
            network_.send(rank_id{m.from}, rank_id{m.to}, {m.bytes}, now(), note);
        }
    }

    void arrive(traced_message& m)
    {
        m.has_arrived = true;
        clocks_[m.sender].communicate(now(), -1);
        over_.emplace_back(m.sender, m.send);
        if (m.receive != traced_message::nothing) {
            clocks_[static_cast<std::size_t>(m.to)].communicate(now(), -1);
            over_.emplace_back(static_cast<std::uint32_t>(m.to), m.receive);
        }
    }

    void begin_collective(std::uint32_t rank, std::uint32_t step)
    {
        auto const [number, member] = meetings_.join(network_, rank, step);
        auto& m = meetings_[number];
        auto const& s = step_of(rank, step);
        if (m.what != s.collective || m.bytes != s.bytes) {
            auto const first =
                std::find_if(m.members.begin(), m.members.end(), [&](auto const& other) { return other.step != UINT32_MAX && other.step != step; });
            auto const other = meetings_.rank_of(m, rank_id{static_cast<std::int32_t>(first - m.members.begin())});
            error_ = label_of(step_of(static_cast<std::uint32_t>(other), first->step), static_cast<std::size_t>(other)) + " meets " + label_of(s, rank) +
                     ", another collective: their group does not begin its in one order";
            return;
        }
        if (m.missing == 0) {
            change_all(m, 1);
        }
        if (m.play == nullptr) {
            pass(m, member);
        } else {
            m.play->begin(member);
        }
    }

    /// Members that are not through begin to communicate, once all have come.
    void change_all(typename meetings<Model>::meeting const& m, int more)
    {
        for (std::size_t other = 0; other < m.members.size(); ++other) {
            if (!m.members[other].is_through) {
                clocks_[static_cast<std::size_t>(meetings_.rank_of(m, rank_id{static_cast<std::int32_t>(other)}))].communicate(now(), more);
            }
        }
    }

    /// A member is through with a collective.
    void pass(typename meetings<Model>::meeting& m, rank_id member)
    {
        auto const rank = static_cast<std::uint32_t>(meetings_.rank_of(m, member));
        auto& of = m.members[static_cast<std::size_t>(member.value)];
        of.is_through = true;
        if (m.missing == 0) {
            clocks_[rank].communicate(now(), -1);
        }
        over_.emplace_back(rank, of.step);
        if (--m.under_way == 0) {
            m.play.reset();
        }
    }

    void happen(play_note const& note)
    {
        switch (note.kind) {
        case play_event::arrives: arrive(mail_[note.subject]); break;
        case play_event::collective: {
            auto& m = meetings_[note.subject];
            if (m.play->happen(note.inner)) {
                pass(m, note.inner.rank);
            }
            break;
        }
        case play_event::step_ends: {
            auto const& s = step_of(note.subject, note.step);
            if (s.type == chakra_node_type::comp && !s.on_host) {
                clocks_[note.subject].compute(now(), -1);
            } else if (s.type == chakra_node_type::comm_coll) {
                clocks_[note.subject].communicate(now(), -1);
            }
            over_.emplace_back(note.subject, note.step);
            break;
        }
        }
    }

    /// Steps that have ended make others ready; some of these end at once.
    void end_what_is_over()
    {
        for (std::size_t next = 0; next < over_.size(); ++next) {
            auto const [rank, step] = over_[next];
            clocks_[rank].end_step(now());
            if (rules_->keeps_spans) {
                played_.spans.push_back({rank, step, begins_[rank][step], now()});
            }
            programs_[rank].end(step);
            begin_ready(rank);
        }
        over_.clear();
    }

    std::string why_it_hangs(std::size_t rank)
    {
        if (auto const number = meetings_.stuck()) {
            auto const& m = meetings_[*number];
            return "the traces hang: " + std::string{name_of(m.what)} + " of " + std::to_string(m.bytes) +
                   " bytes has all its members, but they began it apart, and so " +
                   "its chunks wait for each other between the levels of the network; expected one chunk";
        }
        return explain_hang(*traces_, rank, [this](std::size_t r) { return wait_of(static_cast<std::uint32_t>(r)); });
    }

    /// What a rank that hangs waits for: its collective, else its first message.
    chakra_wait wait_of(std::uint32_t rank) const
    {
        chakra_wait message{UINT32_MAX, rank};
        for (std::uint32_t step = 0; step < programs_[rank].steps(); ++step) {
            auto const& s = step_of(rank, step);
            if (!programs_[rank].is_under_way(step)) {
                continue;
            }
            if (s.type == chakra_node_type::comm_coll) {
                return {step, meetings_.absent(rank, step)};
            }
            if (message.step == UINT32_MAX) {
                message = {step, static_cast<std::size_t>(s.peer)};
            }
        }
        return message;
    }

    chakra_trace_set const* traces_;
    chakra_play_rules<Model> const* rules_;
    rank_symmetry symmetry_;
    network network_;
    meetings<Model> meetings_;
    mailboxes<> mail_;
    std::vector<rank_program<>> programs_;
    std::vector<rank_clock<time>> clocks_;
    std::vector<std::vector<time>> begins_;                      ///< rank -> step -> its begin, where spans are kept
    std::vector<std::pair<std::uint32_t, std::uint32_t>> over_;  ///< rank and step that have ended now
    played_traces<time> played_;
    std::string error_;
};

}  // namespace detail
}  // namespace rheo::inline v0
