#pragma once
// SPDX-License-Identifier: Apache-2.0

// Walks through every state of the world that can be reached, once, depth first, and reports for each
// property that does not hold somewhere the way that leads there. States are remembered by 127-bit fingerprints.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "world_model.hpp"

namespace small_job {

/// A set of fingerprints, each with a mark.
class fingerprint_set {
public:
    struct entry {
        std::uint64_t low = 0;
        std::uint64_t high = 0;  ///< bit 0: on the present way
    };

    /// The entry of a fingerprint, and whether it is a fresh one; valid until the next call.
    std::pair<entry*, bool> insert(std::uint64_t low, std::uint64_t high)
    {
        if (2 * (count_ + 1) > table_.size()) {
            grow();
        }
        auto* place = find(low, high);
        bool const fresh = place->low == 0 && place->high == 0;
        if (fresh) {
            *place = {low, high & ~std::uint64_t{1}};
            ++count_;
        }
        return {place, fresh};
    }

    entry* find(std::uint64_t low, std::uint64_t high)
    {
        high &= ~std::uint64_t{1};
        auto i = static_cast<std::size_t>(low) & (table_.size() - 1);
        while ((table_[i].low != 0 || table_[i].high != 0) && !(table_[i].low == low && (table_[i].high & ~std::uint64_t{1}) == high)) {
            i = (i + 1) & (table_.size() - 1);
        }
        return &table_[i];
    }

    std::size_t size() const { return count_; }

private:
    void grow()
    {
        std::vector<entry> old(table_.size() * 2);
        old.swap(table_);
        for (auto const& e : old) {
            if (e.low != 0 || e.high != 0) {
                *find(e.low, e.high) = e;
            }
        }
    }

    std::vector<entry> table_ = std::vector<entry>(1U << 16);
    std::size_t count_ = 0;
};

inline std::pair<std::uint64_t, std::uint64_t> fingerprint(world const& w)
{
    std::uint64_t a = 0x9e3779b97f4a7c15U;
    std::uint64_t b = 0xc2b2ae3d27d4eb4fU;
    auto const mix = [&](std::uint64_t v) {
        a = (a ^ v) * 0xff51afd7ed558ccdU;
        a ^= a >> 32;
        b = (b + v) * 0x9fb21c651e98df25U;
        b ^= b >> 29;
    };
    std::uint64_t who = w.kills;
    for (auto const s : w.who) {
        who = who * 8 + static_cast<std::uint64_t>(s);
    }
    mix(who);
    for (auto const l : w.local) {
        mix(l);
    }
    for (auto const m : w.messages) {
        mix(m);
    }
    return {a | 2U, b};
}

/// What does not hold, and the first way found that leads there.
struct counterexample {
    violation wrong;
    std::string way;
};

struct findings {
    std::size_t states = 0;
    std::size_t longest = 0;               ///< way without a repetition
    std::size_t in_third_generation = 0;   ///< states after at least two recoveries
    std::array<std::size_t, 8> endings{};  ///< by leave_reason: states in which all survivors have left
    bool complete = true;                  ///< false: stopped before the end
    std::vector<counterexample> wrong;     ///< at most one per property

    counterexample const* broken(property what) const
    {
        for (auto const& w : wrong) {
            if (w.wrong.what == what) {
                return &w;
            }
        }
        return nullptr;
    }
};

template <protocol_rules Rules>
class exploration {
public:
    exploration(job_settings const& job, std::size_t limit, std::optional<property> expected) : model_{job}, limit_{limit}, expected_{expected} {}

    findings run()
    {
        visit(model_.first());
        result_.states = seen_.size();
        return result_;
    }

private:
    void visit(world const& w)
    {
        auto const [low, high] = fingerprint(w);
        auto const [entry, fresh] = seen_.insert(low, high);
        if (!fresh) {
            if ((entry->high & 1U) != 0) {
                report({property::waits_end, "the ranks go in a circle"});
            }
            return;
        }
        if (seen_.size() > limit_ || (expected_ && result_.broken(*expected_) != nullptr)) {
            result_.complete = false;
            return;
        }
        entry->high |= 1U;
        model_.count(w, result_);
        result_.longest = std::max(result_.longest, way_.size());
        std::vector<violation> wrong;
        auto const steps = model_.steps(w, wrong);
        for (auto const& v : wrong) {
            report(v);
        }
        for (auto const& s : steps) {
            way_.emplace_back(s.what, s.rank);
            visit(s.after);
            way_.pop_back();
        }
        seen_.find(low, high)->high &= ~std::uint64_t{1};
    }

    void report(violation const& v)
    {
        if (result_.broken(v.what) != nullptr) {
            return;
        }
        std::string way;
        for (auto const& [what, rank] : way_) {
            way += rank < 0 ? std::string{"all "} : "rank " + std::to_string(rank) + " ";
            way += std::string{what} + "; ";
        }
        result_.wrong.push_back({v, way});
    }

    world_model<Rules> model_;
    std::size_t limit_;
    std::optional<property> expected_;
    fingerprint_set seen_;
    std::vector<std::pair<std::string_view, int>> way_;
    findings result_;
};

/// Explores a job: all of it, or until a property that is expected not to hold is seen not to.
template <protocol_rules Rules = protocol_rules{}>
findings explore(job_settings const& job, std::optional<property> expected = {}, std::size_t limit = 100'000'000)
{
    return exploration<Rules>{job, limit, expected}.run();
}

}  // namespace small_job
