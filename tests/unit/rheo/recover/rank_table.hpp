#pragma once
// SPDX-License-Identifier: Apache-2.0

// Every state of a rank gets a number, and what an event makes of it is found once: the exploration meets
// the same rank among different others over and over.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "rank_key.hpp"
#include "rank_steps.hpp"
#include "world.hpp"

namespace small_job {

/// What the world must know of a rank's state.
struct rank_facts {
    protocol_phase phase;
    bool has_revoked;
    bool closing_lost;
    bool drained;
    std::uint32_t vote;
    message_stamp now;
    std::vector<std::vector<message_name>> alternatives;
};

/// What an event makes of a rank's state.
struct rank_effect {
    std::uint32_t local = 0;
    int answer_kind = 0;
    std::vector<std::uint64_t> sent;
    std::optional<violation> wrong;
};

template <protocol_rules Rules>
class rank_table {
public:
    explicit rank_table(job_settings const& job) : job_{job} {}

    rank_model const& rank(std::uint32_t number) const { return ranks_[number]; }
    rank_facts const& facts(std::uint32_t number) const { return facts_[number]; }

    /// A rank at the start of the job.
    rank_effect start(rank_id self)
    {
        rank_steps<Rules> steps{job_, told_, {}};
        steps.begin(self);
        return effect_of_steps(steps);
    }

    /// What an event makes of a state; `event` names it among all that this state can meet. @throws violation
    template <class Do>
    rank_effect const& after(std::uint32_t local, std::string event, Do&& perform)
    {
        event.append(reinterpret_cast<char const*>(&local), sizeof local);
        auto const [place, fresh] = effects_.try_emplace(std::move(event));
        if (fresh) {
            rank_effect result;
            rank_steps<Rules> steps{job_, told_, ranks_[local]};
            try {
                perform(steps);
                result = effect_of_steps(steps);
            } catch (violation const& v) {
                result.wrong = v;
            }
            place->second = std::move(result);
        }
        if (place->second.wrong) {
            throw *place->second.wrong;
        }
        return place->second;
    }

private:
    rank_effect effect_of_steps(rank_steps<Rules> const& steps)
    {
        rank_effect result{number_of(steps.rank), steps.answer_kind, {}, {}};
        for (auto const& m : steps.sent) {
            result.sent.push_back(pack(m));
        }
        return result;
    }

    std::uint32_t number_of(rank_model const& rank)
    {
        auto const [place, fresh] = numbers_.try_emplace(key_of(rank), static_cast<std::uint32_t>(ranks_.size()));
        if (fresh) {
            ranks_.push_back(rank);
            auto const& s = rank.protocol;
            facts_.push_back({s.phase, s.leaving && s.phase != protocol_phase::revoking && Rules.leaving_revokes, s.reason == leave_reason::state_lost,
                              s.reason == leave_reason::drained, rank.vote, s.now, rank_steps<Rules>{job_, told_, rank}.alternatives()});
        }
        return place->second;
    }

    job_settings job_;
    std::vector<rank_holdings> told_;
    std::vector<rank_model> ranks_;
    std::vector<rank_facts> facts_;
    std::unordered_map<std::string, std::uint32_t> numbers_;
    std::unordered_map<std::string, rank_effect> effects_;
};

}  // namespace small_job
