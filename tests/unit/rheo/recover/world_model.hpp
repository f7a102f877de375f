#pragma once
// SPDX-License-Identifier: Apache-2.0

// The explored world: ranks that are alive, dead or gone, messages under way, and as much of the MPI as
// the protocol stands on, each time in the weakest form that ULFM grants:
//
//  * a message may be delivered at any time after it was sent, in any order, also after its sender died or
//    left; one of a dead sender may as well be lost;
//  * a rank may notice the death of a member at any time, but must only when it waits for the dead one;
//  * a revocation reaches each member some time, provided that one who revoked lives; by one who died it may;
//  * the agreement: return code the same at all, not success when a member died before it voted, either
//    way when one died after it voted; the value means something only with success, and is then the "and" of
//    all votes; calls match by order: it ends when all living members are in it;
//  * shrink ends when all living members are in it; who died inside is in the new membership or is not, the
//    same for all.
//
// A rank that leaves alone ends at once: what it sent arrives or is lost, as with one that is killed.
//
// Between any two operations a rank may be killed, or leave when it may know of a loss. States that no rank can
// tell apart are one: messages that cannot be received any more are dropped, and so are parts of a plan that no rank reads.

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rank_table.hpp"
#include "world.hpp"

namespace small_job {

template <protocol_rules Rules>
class world_model {
public:
    explicit world_model(job_settings const& job) : job_{job}, table_{job} {}

    /// One step of the world. Mandatory: it happens some time if nothing else does.
    struct step {
        std::string_view what;
        int rank;
        bool mandatory;
        world after;
    };

    world first()
    {
        world w;
        w.kills = static_cast<std::uint8_t>(job_.kills);
        for (int r = 0; r < job_.ranks; ++r) {
            w.who[index(r)] = standing::alive;
            apply(w, r, table_.start(rank_id{r}));
        }
        tidy(w);
        return w;
    }

    /// All that can happen next. What is wrong with a step, or with there being none, goes to `wrong`.
    std::vector<step> steps(world const& w, std::vector<violation>& wrong)
    {
        std::vector<step> list;
        wrong_ = &wrong;
        bool dead_member = false;
        bool revoked = false;
        for (int r = 0; r < job_.ranks; ++r) {
            auto const who = w.who[index(r)];
            dead_member = dead_member || (who != standing::alive && who != standing::gone);
            revoked = revoked || (who == standing::alive && facts(w, r).has_revoked);
        }
        for (int r = 0; r < job_.ranks; ++r) {
            if (w.who[index(r)] == standing::alive) {
                local_steps(w, r, dead_member, revoked, list);
            }
        }
        agreements(w, list);
        shrinks(w, list);
        bool ends = !wrong.empty();
        bool open = false;
        for (auto const& s : list) {
            ends = ends || s.mandatory;
        }
        for (int r = 0; r < job_.ranks; ++r) {
            open = open || (w.who[index(r)] == standing::alive && facts(w, r).phase != protocol_phase::left);
        }
        if (open && !ends) {
            wrong.push_back({property::waits_end, "no rank has to continue"});
        }
        return list;
    }

    /// Adds a state to the statistics that show what was reached.
    template <class Statistics>
    void count(world const& w, Statistics& statistics) const
    {
        bool all_left = true;
        std::optional<std::uint32_t> living;
        for (int r = 0; r < job_.ranks; ++r) {
            if (w.who[index(r)] == standing::alive) {
                living = w.local[index(r)];
                all_left = all_left && facts(w, r).phase == protocol_phase::left;
            }
        }
        if (living) {
            auto const& protocol = table_.rank(*living).protocol;
            statistics.in_third_generation += protocol.now.generation.value >= 3 ? 1 : 0;
            if (all_left) {
                ++statistics.endings[static_cast<std::size_t>(*protocol.reason)];
            }
        }
    }

private:
    /// Adds a step, or what is wrong with it.
    template <class Make>
    void add(std::vector<step>& list, Make&& make)
    {
        try {
            list.push_back(make());
        } catch (violation const& v) {
            wrong_->push_back(v);
        }
    }

    static constexpr std::size_t index(int r) { return static_cast<std::size_t>(r); }
    rank_facts const& facts(world const& w, int r) const { return table_.facts(w.local[index(r)]); }

    /// A rank that leaves alone is for the others as one that died.
    void apply(world& w, int r, rank_effect const& effect) const
    {
        bool const leaves = table_.facts(effect.local).drained;
        w.local[index(r)] = leaves ? 0 : effect.local;
        w.who[index(r)] = leaves ? standing::died : w.who[index(r)];
        w.messages.insert(w.messages.end(), effect.sent.begin(), effect.sent.end());
    }

    /// Drops what cannot be received any more.
    void tidy(world& w) const
    {
        std::erase_if(w.messages, [&](std::uint64_t packed) {
            auto const m = unpack(packed);
            if (w.who[at(m.to)] != standing::alive) {
                return true;
            }
            auto const& to = facts(w, m.to.value);
            if (to.phase == protocol_phase::left) {
                return true;
            }
            if (!Rules.stamps_count) {
                return false;
            }
            auto const& now = to.now;
            auto const order = [](message_stamp t) { return std::array{std::int64_t{t.generation.value}, t.step.value, std::int64_t{t.attempt.value}}; };
            if (order(m.stamp) < order(now)) {
                return true;
            }
            bool const ended = to.phase == protocol_phase::shrinking || (to.phase == protocol_phase::deciding && (to.vote & 1U) == 0);
            return ended && m.stamp.generation == now.generation;
        });
        std::sort(w.messages.begin(), w.messages.end());
    }

    // -- what can happen --------------------------------------------------------------------------------------------

    void local_steps(world const& w, int r, bool dead_member, bool revoked, std::vector<step>& list)
    {
        auto const local = w.local[index(r)];
        auto const rank = table_.facts(local);
        if (w.kills > 0 && rank.phase != protocol_phase::left) {
            auto after = w;
            --after.kills;
            after.who[index(r)] = rank.phase == protocol_phase::shrinking  ? standing::died_shrinking
                                  : rank.phase != protocol_phase::deciding ? standing::died
                                  : (rank.vote & 1U) != 0                  ? standing::voted_yes
                                                                           : standing::voted_no;
            after.local[index(r)] = 0;
            tidy(after);
            list.push_back({"is killed", r, false, std::move(after)});
        }
        bool waits_for_dead = false;
        for (std::size_t a = 0; a < rank.alternatives.size(); ++a) {
            std::vector<std::uint64_t> taken;
            take(w, r, a, taken, list);
            for (auto const& name : rank.alternatives[a]) {
                waits_for_dead = waits_for_dead || w.who[at(name.peer)] != standing::alive;
            }
        }
        bool const may_lose = rank.phase == protocol_phase::section || rank.phase == protocol_phase::exchanging || rank.phase == protocol_phase::copying;
        if (may_lose && (dead_member || revoked)) {
            add(list, [&] {
                auto after = w;
                apply(after, r, table_.after(local, "l", [](auto& steps) { steps.answer(peer_lost{}); }));
                tidy(after);
                return step{"loses a peer", r, revoked || waits_for_dead, std::move(after)};
            });
        }
    }

    /// Continues with an alternative, with each choice of messages that bear the awaited names.
    void take(world const& w, int r, std::size_t alternative, std::vector<std::uint64_t>& taken, std::vector<step>& list)
    {
        auto const local = w.local[index(r)];
        auto const names = table_.facts(local).alternatives[alternative];
        if (taken.size() == names.size()) {
            std::vector<std::uint32_t> contents;
            std::string event = "r" + std::to_string(alternative);
            bool mandatory = true;
            for (auto const packed : taken) {
                auto const m = unpack(packed);
                contents.push_back(m.content);
                event += "," + std::to_string(m.content);
                mandatory = mandatory && w.who[at(m.from)] == standing::alive;
            }
            add(list, [&] {
                auto after = w;
                for (auto const packed : taken) {
                    after.messages.erase(std::find(after.messages.begin(), after.messages.end(), packed));
                }
                apply(after, r, table_.after(local, event, [&](auto& steps) { steps.go_on(names, contents); }));
                tidy(after);
                return step{"goes on", r, mandatory, std::move(after)};
            });
            return;
        }
        auto const& name = names[taken.size()];
        std::uint64_t before = 0;
        for (auto const packed : w.messages) {
            auto const m = unpack(packed);
            bool const named = m.to.value == r && m.from == name.peer && m.kind == name.kind && m.item == name.item;
            if (named && packed != before && accepts<Rules>(table_.rank(local).protocol, m.stamp)) {
                taken.push_back(packed);
                take(w, r, alternative, taken, list);
                taken.pop_back();
                before = packed;
            }
        }
    }

    void agreements(world const& w, std::vector<step>& list)
    {
        std::uint32_t living = ~0U;
        bool anyone = false;
        bool missing = false;
        bool late = false;
        std::uint32_t dead = ~0U;
        for (int r = 0; r < job_.ranks; ++r) {
            switch (w.who[index(r)]) {
            case standing::alive:
                if (facts(w, r).phase != protocol_phase::deciding) {
                    return;
                }
                anyone = true;
                living &= facts(w, r).vote;
                break;
            case standing::died:
            case standing::died_shrinking: missing = true; break;
            case standing::voted_no: late = true, dead = 0; break;
            case standing::voted_yes: late = true; break;
            case standing::gone: break;
            }
        }
        if (!anyone) {
            return;
        }
        if (!missing) {
            add(list, [&] { return agreed(w, "agree", true, [&](int) { return living & dead; }); });
        }
        if (missing || late) {
            add(list, [&] { return agreed(w, "find one missing in the agreement", false, [&](int) { return living; }); });
            if (!Rules.success_counts) {
                auto const own = [&](int r) { return facts(w, r).vote; };
                add(list, [&] { return agreed(w, "find one missing, and the value undefined", false, own); });
            }
        }
    }

    template <class Value>
    step agreed(world const& w, std::string_view what, bool success, Value&& value)
    {
        auto after = w;
        int kind = 0;
        bool lost = false;
        for (int r = 0; r < job_.ranks; ++r) {
            auto& who = after.who[index(r)];
            if (who != standing::alive) {
                who = who == standing::gone ? who : standing::died;
                continue;
            }
            auto const bits = value(r);
            auto const& effect =
                table_.after(w.local[index(r)], (success ? "d1," : "d0,") + std::to_string(bits), [&](auto& steps) { steps.answer(decided{success, bits}); });
            if (kind != 0 && effect.answer_kind != kind) {
                throw violation{property::commits_agree, "two ranks take the same agreement differently"};
            }
            kind = effect.answer_kind;
            lost = lost || (!facts(w, r).closing_lost && table_.facts(effect.local).closing_lost);
            apply(after, r, effect);
        }
        for (int r = 0; r < job_.ranks; ++r) {
            for (int o = 0; o < r; ++o) {
                bool const both = after.who[index(r)] == standing::alive && after.who[index(o)] == standing::alive;
                if (both && !(facts(after, r).now == facts(after, o).now)) {
                    throw violation{property::commits_agree, "two ranks are at different steps after the same agreement"};
                }
            }
        }
        if (lost) {
            check_lost(w);
            if (w.kills == job_.kills) {
                throw violation{property::leaving_loses_nothing, "state is given up although no rank was killed"};
            }
        }
        tidy(after);
        return {what, -1, true, std::move(after)};
    }

    /// State is given up: then of some tensor no living rank has a copy in a complete layer.
    void check_lost(world const& w) const
    {
        std::array<bool, 3> lives{};
        for (int r = 0; r < job_.ranks; ++r) {
            if (w.who[index(r)] != standing::alive) {
                continue;
            }
            auto const& version = table_.rank(w.local[index(r)]).version;
            for (int layer = 0; layer < layers; ++layer) {
                bool complete = true;
                for (std::size_t t = 0; t < 3; ++t) {
                    complete = complete && (version[t] >= 0 || !detail::contains(state().tensors[t].layers, layer_id{layer}));
                }
                for (std::size_t t = 0; t < 3; ++t) {
                    lives[t] = lives[t] || (complete && detail::contains(state().tensors[t].layers, layer_id{layer}));
                }
            }
        }
        if (lives[0] && lives[1] && lives[2]) {
            throw violation{property::lost_only_if_lost, "state is given up although each tensor has a copy"};
        }
    }

    void shrinks(world const& w, std::vector<step>& list)
    {
        std::vector<int> inside;
        bool anyone = false;
        for (int r = 0; r < job_.ranks; ++r) {
            if (w.who[index(r)] == standing::alive) {
                if (facts(w, r).phase != protocol_phase::shrinking) {
                    return;
                }
                anyone = true;
            } else if (w.who[index(r)] == standing::died_shrinking) {
                inside.push_back(r);
            }
        }
        for (std::uint32_t chosen = 0; anyone && chosen < (1U << inside.size()); ++chosen) {
            auto after = w;
            for (std::size_t i = 0; i < inside.size(); ++i) {
                after.who[index(inside[i])] = ((chosen >> i) & 1U) != 0 ? standing::died : standing::gone;
            }
            std::vector<rank_id> members;
            std::string event = "s";
            for (int r = 0; r < job_.ranks; ++r) {
                auto& who = after.who[index(r)];
                bool const taken = std::find(inside.begin(), inside.end(), r) != inside.end() && who == standing::died;
                if (who == standing::alive || taken) {
                    members.push_back(rank_id{r});
                    event += std::to_string(r);
                } else {
                    who = standing::gone;
                }
            }
            for (int r = 0; r < job_.ranks; ++r) {
                if (after.who[index(r)] == standing::alive) {
                    apply(after, r, table_.after(w.local[index(r)], event, [&](auto& steps) { steps.answer(shrunk{members}); }));
                }
            }
            tidy(after);
            list.push_back({"shrink", -1, true, std::move(after)});
        }
    }

    job_settings job_;
    std::vector<violation>* wrong_ = nullptr;
    rank_table<Rules> table_;
};

}  // namespace small_job
