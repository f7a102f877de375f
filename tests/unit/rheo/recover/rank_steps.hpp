#pragma once
// SPDX-License-Identifier: Apache-2.0

// A ghost of an executor: it performs the protocol's actions on a rank model, one operation or action at a
// time, and checks on the way what must hold at one rank.

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "rank_model.hpp"

namespace small_job {

template <protocol_rules Rules>
struct rank_steps {
    job_settings const& job;
    std::vector<rank_holdings>& holding_values;  ///< all holdings ever sent; a message names its place here
    rank_model rank;
    std::vector<message> sent{};
    int answer_kind = 0;  ///< of the agreement just settled: which action followed, to compare with other ranks

    /// Each alternative is a list of messages that it can continue with; an empty list: it can continue.
    std::vector<std::vector<message_name>> alternatives() const
    {
        auto const& s = rank.protocol;
        switch (s.phase) {
        case protocol_phase::section: return {operations(s, job.section)[rank.done].inputs};
        case protocol_phase::exchanging: {
            std::vector<message_name> all;
            for (auto const member : s.members) {
                if (member != s.self) {
                    all.push_back({member, message_kind::holdings, 0});
                }
            }
            return {all};
        }
        case protocol_phase::copying: return copies_to_receive(rank);
        case protocol_phase::deciding:
        case protocol_phase::shrinking:
        case protocol_phase::left: return {};
        default: return {{}};
        }
    }

    void begin(rank_id self)
    {
        std::vector<rank_id> members;
        for (int r = 0; r < job.ranks; ++r) {
            members.push_back(rank_id{r});
        }
        rank_holdings const holds{self, {0}, {layer_id{0}, layer_id{1}}, {{use_id{0}, {}}, {use_id{1}, {}}, {use_id{2}, {}}, {use_id{3}, {}}}};
        perform(start_protocol<recovery_plan>({{1}, {0}, {job.steps}, members, holds}));
    }

    void answer(protocol_event const& event)
    {
        auto const planner = [&](std::vector<rank_holdings> const& holdings, recovery_plan const&, std::vector<rank_id> const& departing) {
            return plan_for(holdings, departing, job);
        };
        try {
            perform(advance<Rules>(rank.protocol, event, planner));
        } catch (precondition_error const& error) {
            throw violation{property::preconditions, error.what()};
        }
    }

    /// Continues with an alternative whose messages have arrived, with their contents.
    void go_on(std::vector<message_name> const& names, std::vector<std::uint32_t> const& contents)
    {
        auto& s = rank.protocol;
        switch (s.phase) {
        case protocol_phase::section: operate(operations(s, job.section)[rank.done], contents); return go_on_with_section();
        case protocol_phase::exchanging: return hear(names, contents);
        case protocol_phase::copying: return copy_in(names, contents);
        default: return act();
        }
    }

private:
    /// Performs an action that uses no peer.
    void act()
    {
        switch (rank.protocol.phase) {
        case protocol_phase::revoking: return answer(revoked{});
        case protocol_phase::linking: return answer(linked{});
        case protocol_phase::merging: merge(*rank.protocol.next); return answer(merged{});
        default: update(rank.protocol.found); return answer(updated{});
        }
    }

    void send(rank_id to, message_kind kind, int item, std::uint32_t content)
    {
        sent.push_back({rank.protocol.self, to, kind, item, rank.protocol.now, content});
    }

    void perform(transition<recovery_plan> t)
    {
        rank.protocol = std::move(t.state);
        auto& s = rank.protocol;
        rank.done = 0;
        if (s.phase != protocol_phase::updating && s.phase != protocol_phase::deciding) {
            rank.vote = 0;
        }
        if (answer_kind == 0) {
            bool const unsettled = std::holds_alternative<shrink>(t.action) || std::holds_alternative<revoke_generation>(t.action);
            answer_kind = unsettled ? 1 : 2 + static_cast<int>(t.action.index());
            if (auto const* update = std::get_if<update_state>(&t.action)) {
                answer_kind += 100 * (1 + static_cast<int>(update->found));
            }
        }
        switch (s.phase) {
        case protocol_phase::section:
            rank.reduced = {};
            rank.staged = {};
            rank.requests = s.self.value == job.wants_to_leave && s.work != section_work::closing ? 1U << s.self.value : 0;
            forget_what_nobody_reads(s);
            check_versions(rank);
            return go_on_with_section();
        case protocol_phase::deciding:
            rank.vote = std::get<decide>(t.action).vote;
            if (s.next && !Rules.decide_then_merge && (rank.vote & 1U) != 0 && s.next->salvage.lost.empty()) {
                merge(*s.next);
            }
            return;
        case protocol_phase::shrinking:
            rank.reduced = {};
            rank.staged = {};
            s.found = outcome::commit;
            return;
        case protocol_phase::exchanging: return tell_all();
        case protocol_phase::copying: return begin_copies();
        case protocol_phase::left: return check_left();
        default: return;
        }
    }

    void check_left() const
    {
        auto const& s = rank.protocol;
        if (s.reason == leave_reason::finished && s.now.step.value != job.steps) {
            throw violation{property::commits_agree, "a rank leaves as finished before the last step"};
        }
    }

    void go_on_with_section()
    {
        auto const list = operations(rank.protocol, job.section);
        if (rank.done < list.size()) {
            return;
        }
        auto const& now = rank.protocol.now;
        bool const overflow = job.redo_first && now.step.value == 0 && now.attempt.value == 0 && rank.protocol.work != section_work::closing;
        section_finished event{overflow ? outcome::redo : outcome::commit, 0};
        for (int r = 0; r < job.ranks; ++r) {
            if ((rank.requests >> r & 1U) != 0) {
                event.departing.push_back(rank_id{r});
            }
        }
        event.regroup = now.step.value < job.regroups && rank.protocol.work != section_work::closing;
        answer(event);
    }

    std::uint32_t provenance() const
    {
        auto const& now = rank.protocol.now;
        return static_cast<std::uint32_t>(now.step.value * 16 + now.attempt.value);
    }

    void operate(operation const& op, std::vector<std::uint32_t> const& contents)
    {
        for (std::size_t i = 0; i < contents.size(); ++i) {
            auto const& name = op.inputs[i];
            if (name.kind == message_kind::sum) {
                for (auto const use : state().tensors[static_cast<std::size_t>(name.item)].uses) {
                    bool const second = use != state().tensors[static_cast<std::size_t>(name.item)].uses.front();
                    auto const part = static_cast<std::uint16_t>(contents[i] >> (second ? 16 : 0));
                    rank.reduced[at(use)] = added(rank.reduced[at(use)], part);
                }
            } else if (name.kind == message_kind::kept_tensor) {
                rank.version[static_cast<std::size_t>(name.item % 4)] = static_cast<std::int8_t>(contents[i]);
            } else if (name.kind == message_kind::flags && Rules.requests_are_reduced) {
                rank.requests |= contents[i] >> 8;
            }
            if (name.kind != message_kind::sum && name.kind != message_kind::kept_tensor && (contents[i] & 255U) != provenance()) {
                throw violation{property::counted_once, "a section continues from a message of another attempt"};
            }
        }
        if (op.effect == operation::effects::contributes || op.effect == operation::effects::adds) {
            if (count_in(rank.own[at(op.use)], op.microbatch.value) != 0) {
                throw violation{property::counted_once, "a microbatch is added to an accumulator that has it"};
            }
            rank.own[at(op.use)] = added(rank.own[at(op.use)], static_cast<std::uint16_t>(1U << (2 * op.microbatch.value)));
        }
        if (op.effect == operation::effects::contributes || op.effect == operation::effects::books) {
            note(rank.protocol, contributed{op.use, op.microbatch});
        }
        if (op.effect == operation::effects::reduces) {
            for (std::size_t u = 0; u < uses; ++u) {
                rank.reduced[u] = added(rank.reduced[u], rank.own[u]);
            }
        }
        for (layer_id layer{0}; op.effect == operation::effects::keeps && layer.value < layers; ++layer) {
            if (keeper_of(rank.protocol, layer) == rank.protocol.self) {
                note<Rules>(rank.protocol, received{layer});
            }
        }
        for (auto const& out : op.outputs) {
            send(out.peer, out.kind, out.item,
                 out.kind == message_kind::sum           ? sum_of(out.item)
                 : out.kind == message_kind::kept_tensor ? static_cast<std::uint32_t>(rank.version[static_cast<std::size_t>(out.item % 4)])
                 : out.kind == message_kind::flags       ? provenance() | rank.requests << 8
                                                         : provenance());
        }
        ++rank.done;
    }

    std::uint32_t sum_of(int tensor) const
    {
        auto const& of = state().tensors[static_cast<std::size_t>(tensor)].uses;
        std::uint32_t content = rank.own[at(of[0])];
        if (of.size() > 1) {
            content |= static_cast<std::uint32_t>(rank.own[at(of[1])]) << 16;
        }
        return content;
    }

    void tell_all()
    {
        auto const& s = rank.protocol;
        for (auto const& use : s.holds.uses) {
            if (!is_once(rank.own[at(use.use)], use.done)) {
                throw violation{property::counted_once, "a rank's books differ from its accumulators"};
            }
        }
        std::uint32_t place = 0;
        while (place < holding_values.size() && !(holding_values[place] == s.holds)) {
            ++place;
        }
        if (place == holding_values.size()) {
            holding_values.push_back(s.holds);
        }
        for (auto const member : s.members) {
            if (member != s.self) {
                send(member, message_kind::holdings, 0, place);
            }
        }
        if (s.members.size() == 1) {
            hear({}, {});
        }
    }

    void hear(std::vector<message_name> const& names, std::vector<std::uint32_t> const& contents)
    {
        auto const& s = rank.protocol;
        holdings_exchanged event;
        for (auto const member : s.members) {
            if (member == s.self) {
                event.all.push_back(s.holds);
            }
            for (std::size_t i = 0; i < names.size(); ++i) {
                if (names[i].peer == member) {
                    event.all.push_back(holding_values[contents[i]]);
                }
            }
        }
        for (auto const& a : event.all) {
            for (auto const& b : event.all) {
                for (auto const& mine : a.uses) {
                    for (auto const& others : b.uses) {
                        if (a.rank < b.rank && mine.use == others.use && !disjoint(mine.done, others.done)) {
                            throw violation{property::counted_once, "two ranks hold the same contribution"};
                        }
                    }
                }
            }
        }
        answer(event);
    }

    void begin_copies()
    {
        auto const& s = rank.protocol;
        for (auto const& t : transfers(*s.next)) {
            if (t.from == s.self) {
                auto const item = static_cast<std::size_t>(t.item);
                bool const tensor = t.kind == message_kind::copied_tensor;
                send(t.to, t.kind, t.item, tensor ? static_cast<std::uint32_t>(rank.version[item]) : rank.own[item]);
            }
        }
        copy_in({}, {});
    }

    void copy_in(std::vector<message_name> const& names, std::vector<std::uint32_t> const& contents)
    {
        auto& s = rank.protocol;
        auto const list = transfers(*s.next);
        for (std::size_t i = 0; i < names.size(); ++i) {
            auto const item = static_cast<std::size_t>(names[i].item);
            if (names[i].kind == message_kind::copied_tensor) {
                rank.version[item] = static_cast<std::int8_t>(contents[i]);
            } else {
                rank.staged[item] = added(rank.staged[item], static_cast<std::uint16_t>(contents[i]));
            }
            for (std::size_t k = 0; k < list.size(); ++k) {
                message_name const name{list[k].from, list[k].kind, list[k].item};
                if (list[k].to == s.self && name == names[i]) {
                    rank.done |= 1U << k;
                }
            }
        }
        for (auto const layer : detail::holdings_of(s.next->salvage.after, s.self).layers) {
            bool complete = true;
            for (std::size_t t = 0; t < 3; ++t) {
                complete = complete && (rank.version[t] >= 0 || !detail::contains(state().tensors[t].layers, layer));
            }
            if (complete && !detail::contains(s.holds.layers, layer)) {
                note<Rules>(s, received{layer});
            }
        }
        for (std::size_t k = 0; k < list.size(); ++k) {
            if (list[k].to == s.self && ((rank.done >> k) & 1U) == 0) {
                return;
            }
        }
        answer(copied{});
    }

    /// The merge of what is staged, the clearing of what was sent, the dropping of what is not held any more.
    void merge(recovery_plan const& plan)
    {
        auto const& after = detail::holdings_of(plan.salvage.after, rank.protocol.self);
        for (std::size_t u = 0; u < uses; ++u) {
            bool const held = detail::contains(after.layers, state().uses[u].layer);
            if (!held && Rules.senders_clear) {
                rank.own[u] = 0;
            }
            rank.own[u] = added(rank.own[u], rank.staged[u]);
        }
        rank.staged = {};
        for (std::size_t t = 0; t < 3; ++t) {
            bool held = false;
            for (auto const layer : state().tensors[t].layers) {
                held = held || detail::contains(after.layers, layer);
            }
            if (!held) {
                rank.version[t] = -1;
            }
        }
    }

    void update(outcome found)
    {
        auto const& s = rank.protocol;
        for (std::size_t u = 0; u < uses; ++u) {
            auto const& tensor = state().tensors[at(state().uses[u].tensor)];
            bool mine = false;
            for (auto const layer : tensor.layers) {
                mine = mine || detail::contains(s.holds.layers, layer);
            }
            if (mine && !is_once(rank.reduced[u], complement({}, job.microbatches))) {
                throw violation{property::counted_once, "a sum for the update of " + tensor.name + " lacks or repeats a contribution"};
            }
        }
        rank.own = {};
        rank.reduced = {};
        if (found == outcome::commit) {
            for (auto& v : rank.version) {
                v = static_cast<std::int8_t>(v < 0 ? v : v + 1);
            }
        }
    }
};

}  // namespace small_job
