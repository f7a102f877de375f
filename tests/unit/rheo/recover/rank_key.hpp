#pragma once
// SPDX-License-Identifier: Apache-2.0

// A rank's state as a string of bytes: equal exactly when the states are, as far as they differ in a run.

#include <string>

#include "rank_model.hpp"

namespace small_job {

/// The key of a state, for tables.
inline std::string key_of(rank_model const& rank)
{
    std::string key;
    auto const put = [&](auto value) { key.push_back(static_cast<char>(value)); };
    auto const put_set = [&](microbatch_set const& set) { put(set.words.empty() ? 0 : static_cast<int>(set.words[0])); };
    auto const put_plan = [&](recovery_plan const& plan) {
        put(plan.pipelines.size());
        for (std::size_t p = 0; p < plan.pipelines.size(); ++p) {
            put(plan.shares[p]);
            put(plan.pipelines[p].stages.size());
            for (auto const& s : plan.pipelines[p].stages) {
                put(s.front().value);
            }
        }
        for (auto const& t : transfers(plan)) {
            put(t.from.value + 8 * t.to.value), put(t.kind), put(t.item);
        }
        put(plan.salvage.more), put(plan.salvage.more ? plan.salvage.after.size() : 0);
        for (std::size_t r = 0; plan.salvage.more && r < plan.salvage.after.size(); ++r) {
            put(plan.salvage.after[r].layers.size());
            for (auto const layer : plan.salvage.after[r].layers) {
                put(layer.value);
            }
        }
        put(255);
        for (auto const& l : plan.salvage.lost) {
            put(l.value);
        }
        put(255);
        for (auto const& m : plan.salvage.missing) {
            put_set(m.done);
        }
        put(255);
        for (auto const& row : plan.salvage.work) {
            put(row.size());
            for (auto const& work : row) {
                put(work.microbatch.value), put(work.deepest.value);
            }
        }
        put(255);
        for (auto const& a : plan.salvage.after) {
            put(a.rank.value), put(a.layers.size());
            for (auto const& u : a.uses) {
                put(u.use.value), put_set(u.done);
            }
        }
    };
    auto const& s = rank.protocol;
    put(s.phase), put(s.self.value), put(s.now.generation.value), put(s.now.step.value), put(s.now.attempt.value);
    put(s.members.size());
    for (auto const m : s.members) {
        put(m.value);
    }
    put(s.holds.layers.size());
    for (auto const l : s.holds.layers) {
        put(l.value);
    }
    put(s.holds.uses.size());
    for (auto const& u : s.holds.uses) {
        put(u.use.value), put_set(u.done);
    }
    put(s.regroup), put(s.departing.size());
    for (auto const d : s.departing) {
        put(d.value);
    }
    put(rank.requests);
    put(s.work), put(s.found), put(s.leaving), put(s.reason ? static_cast<int>(*s.reason) : 99);
    put_plan(s.plan);
    put(s.next.has_value());
    if (s.next) {
        put_plan(*s.next);
    }
    put(rank.vote);
    for (int b = 0; b < 4; ++b) {
        put(rank.done >> (8 * b));
    }
    for (auto const* c : {&rank.own, &rank.reduced, &rank.staged}) {
        for (auto const value : *c) {
            put(value), put(value >> 8);
        }
    }
    for (auto const v : rank.version) {
        put(v);
    }
    return key;
}

}  // namespace small_job
