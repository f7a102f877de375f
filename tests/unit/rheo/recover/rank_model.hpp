#pragma once
// SPDX-License-Identifier: Apache-2.0

// One rank of the explored world: the state of the real protocol, and a ghost of an executor's data, with
// counts instead of tensors: how often each microbatch is in each accumulator, and which version each
// tensor has.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "small_job.hpp"

namespace small_job {

enum class property : std::uint8_t {
    commits_agree,          ///< no two survivors commit differently
    counted_once,           ///< each contribution counts exactly once, in sums and in books
    copies_are_current,     ///< each tensor of a held layer has the committed version
    waits_end,              ///< every wait ends
    lost_only_if_lost,      ///< state is given up only when really no copy lives
    preconditions,          ///< the protocol is never asked against its preconditions
    leaving_loses_nothing,  ///< while no rank is killed, no state is given up, whichever ranks leave
};

struct violation {
    property what;
    std::string how;
};

struct job_settings {
    int ranks = 4;
    int microbatches = 2;
    int steps = 1;
    bool redo_first = false;  ///< the first attempt of step 0 overflows
    int kills = 2;
    manners planner = manners::keep;
    int wants_to_leave = -1;  ///< this rank, from the first step on
    int regroups = 0;         ///< after each of the first so many steps all ranks change places, and after the second they change back
    bool in_place = false;    ///< ranks have memory for one layer, so places change in rounds
    section_manners section{};
    recovery_plan (*planned)(std::vector<rank_holdings> const& holdings, job_settings const&) = nullptr;
};

inline recovery_plan plan_for(std::vector<rank_holdings> const& holdings, std::vector<rank_id> const& departing, job_settings const& job)
{
    auto const turn = job.regroups > 0 && holdings.front().version.value % 2 == 1;
    auto plan = job.planned != nullptr ? job.planned(holdings, job) : plan_simply(holdings, job.microbatches, job.planner, departing, turn, job.section.groups);
    if (job.in_place) {
        replanning const known{state(), layers, {}, {0, job.microbatches}};
        limit_to_round(plan, holdings, known, {.limit = bytes{5}, .all = {bytes{4}, bytes{4}, bytes{1}}, .committed = {bytes{4}, bytes{4}, bytes{1}}});
    }
    return plan;
}

/// Two bits per microbatch: how often it is in.
using counts = std::array<std::uint16_t, uses>;

struct message {
    rank_id from;
    rank_id to;
    message_kind kind;
    int item;
    message_stamp stamp;
    std::uint32_t content;  ///< sum: counts of two uses; copied tensor: version; activation, gradient: true step and attempt

    friend bool operator==(message const&, message const&) = default;
};

struct rank_model {
    protocol_state<recovery_plan> protocol;
    std::uint32_t vote = 0;
    std::uint32_t requests = 0;  ///< to leave, that this rank knows of in the section, a bit per rank
    std::uint32_t done = 0;      ///< operations of the section; in copies, a bit per transfer, and bit 31: begun
    counts own{};                ///< accumulators
    counts reduced{};            ///< what the update would take
    counts staged{};
    std::array<std::int8_t, 3> version{0, 0, 0};  ///< per tensor; -1: not here
};

inline int count_in(std::uint16_t set, int microbatch) { return (set >> (2 * microbatch)) & 3; }

inline std::uint16_t added(std::uint16_t a, std::uint16_t b)
{
    std::uint16_t sum = 0;
    for (int m = 0; m < 8; ++m) {
        auto const n = std::min(3, count_in(a, m) + count_in(b, m));
        sum = static_cast<std::uint16_t>(sum | (n << (2 * m)));
    }
    return sum;
}

/// True when the counts are one for the microbatches of the set and zero elsewhere.
inline bool is_once(std::uint16_t count, microbatch_set const& set)
{
    for (int m = 0; m < 8; ++m) {
        if (count_in(count, m) != (set.contains(microbatch_id{m}) ? 1 : 0)) {
            return false;
        }
    }
    return true;
}

/// A transfer of a recovery: a tensor, or an accumulator.
struct transfer {
    rank_id from;
    rank_id to;
    message_kind kind;
    int item;
};

inline std::vector<transfer> transfers(recovery_plan const& plan)
{
    std::vector<transfer> list;
    for (auto const& t : plan.copies.transfers) {
        list.push_back({t.from, t.to, message_kind::copied_tensor, t.tensor.value});
    }
    for (auto const& move : plan.salvage.moves) {
        list.push_back({move.from, move.to, message_kind::moved_accumulator, move.use.value});
    }
    return list;
}

/// At the beginning of a section: drops the parts of the plan that no rank reads any more, so that states which differ
/// only in it are one.
inline void forget_what_nobody_reads(protocol_state<recovery_plan>& s)
{
    s.found = outcome::commit;
    s.plan.copies = {};
    s.plan.salvage.moves.clear();
    s.plan.salvage.after.clear();
    if (s.work != section_work::remainder) {
        s.plan.salvage.missing.clear();
        s.plan.salvage.work.clear();
    }
}

/// @throws violation when a rank continues with another version than the committed one
inline void check_versions(rank_model const& rank)
{
    auto const& s = rank.protocol;
    if (s.reason == leave_reason::state_lost) {
        return;
    }
    for (auto const layer : s.holds.layers) {
        for (std::size_t t = 0; t < 3; ++t) {
            auto const& tensor = state().tensors[t];
            bool const of_layer = detail::contains(tensor.layers, layer);
            if (of_layer && rank.version[t] != static_cast<std::int8_t>(s.now.step.value)) {
                throw violation{property::copies_are_current, "a rank begins a section with " + tensor.name + " of another version"};
            }
        }
    }
}

/// What the rank can receive next of the copies: any tensor, else all accumulators that are left.
inline std::vector<std::vector<message_name>> copies_to_receive(rank_model const& rank)
{
    auto const& s = rank.protocol;
    std::vector<std::vector<message_name>> result;
    std::vector<message_name> accumulators;
    auto const list = transfers(*s.next);
    for (std::size_t i = 0; i < list.size(); ++i) {
        if (list[i].to == s.self && ((rank.done >> i) & 1U) == 0) {
            message_name const name{list[i].from, list[i].kind, list[i].item};
            if (name.kind == message_kind::copied_tensor) {
                result.push_back({name});
            } else {
                accumulators.push_back(name);
            }
        }
    }
    if (result.empty()) {
        result.push_back(accumulators);
    }
    return result;
}

}  // namespace small_job
