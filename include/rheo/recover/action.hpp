#pragma once
// SPDX-License-Identifier: Apache-2.0

// What the protocol asks a rank to do. An action is coarse: the executor performs it to its end, or
// until a peer is lost, and answers with one event (event.hpp), which yields the next action.
//
// "The generation's communicators" are a recovery communicator R, on which nothing but `decide`,
// `shrink` and the look for failures happens, and a data communicator D made from it.

#include <cstdint>
#include <variant>
#include <vector>

#include "rheo/recover/outcome.hpp"
#include "rheo/recover/stamp.hpp"
#include "rheo/topology/holdings.hpp"
#include "rheo/topology/tagged_index.hpp"

namespace rheo::inline v0 {

/// A start of the job; two starts of the same command are two launches.
struct launch_id {
    std::uint64_t value;

    friend constexpr bool operator==(launch_id, launch_id) = default;
};

enum class section_work : std::uint8_t {
    whole,      ///< all microbatches of the step, by the plan in force
    remainder,  ///< what a recovery left to do: `plan.salvage.work`; contributions count only where `misses(plan.salvage, use, microbatch)`
    closing,    ///< no step: put records on disk, and a checkpoint where the reason (`state.reason`) and the copies allow.
                ///< After state_lost and no_plan the plan in force has no pipelines, and holdings are as they were
};

/// The interpretation of my program for one attempt: computations, transfers, the posting and awaiting of
/// reductions, the reduction of the scalars (loss, norms, maxima, flags). It ends with everything at hand
/// that the update needs. Accumulators stay as they are: what is reduced goes into separate buffers.
/// Every message carries the stamp. Answer: section_finished, or peer_lost between two operations; on the
/// way `note(state, contributed)` when an operation that added to accumulators is complete.
struct run_section {
    message_stamp stamp;
    section_work work;
    friend constexpr bool operator==(run_section const&, run_section const&) = default;
};

/// Revoke R and D (what is pending on them is completed, with its errors, and forgotten). Answer: revoked.
struct revoke_generation {
    generation_id generation;
    friend constexpr bool operator==(revoke_generation const&, revoke_generation const&) = default;
};

/// The one agreement: a bitwise "and" of the votes of all members of R. Bit 0: "I have finished and can
/// continue"; further bits are consents. It must work on a revoked R, and no failure may ever be
/// acknowledged on R, otherwise the return code would hide a lost vote. Answer: decided.
struct decide {
    std::uint32_t vote;
    friend constexpr bool operator==(decide const&, decide const&) = default;
};

/// Shrink R to the living members. What is still pending on the ended generation (sends to who died) is completed first,
/// with its errors. Losses inside are the MPI's to handle: this action has no other end than success (a rank
/// whose MPI cannot shrink dies, which is a loss to the others). What an MPI needs before the new communicators may
/// be revoked belongs inside, if it ends at every survivor no matter who dies: D by a second shrink, a barrier by an
/// agreement on the old R that all survivors make behind the shrink and whose value is not read. Answer: shrunk.
struct shrink {
    generation_id ended;
    std::vector<rank_id> departed{};  ///< members that have given everything away and end by themselves: not in the new membership, alive or not
    friend constexpr bool operator==(shrink const&, shrink const&) = default;
};

/// Link the file `after-<ended>` with launch and members into the run folder, atomically. When it is there
/// already it is read: same launch and same members, answer linked; otherwise, answer fenced. Uses no
/// peer and is never skipped: a generation without a link would be a gap for a cut-off half to take.
struct link_generation {
    launch_id launch;
    generation_id ended;
    std::vector<rank_id> members;  ///< ascending
    friend constexpr bool operator==(link_generation const&, link_generation const&) = default;
};

/// Make D from R if shrink has not, then exchange holdings with all members: at the beginning of a generation, and between two
/// steps when places are reassigned. Answer: holdings_exchanged, or peer_lost.
struct exchange_holdings {
    message_stamp stamp;
    rank_holdings holds;
    friend constexpr bool operator==(exchange_holdings const&, exchange_holdings const&) = default;
};

/// Make sure that all members have the same plan `state.next`, by its digest (that they have not is an error and no loss); then perform its copies: layers (parameters, moments, scales of this attempt; digest checked)
/// and the accumulators of `salvage.moves`, each into staging beside what is there, changing nothing.
/// Answer: copied, or peer_lost between two transfers; on the way `note(state, received)` for each layer
/// that is complete and checked. A layer so noted is kept until a merge drops it, even if this recovery fails.
struct copy_state {
    message_stamp stamp;
    friend constexpr bool operator==(copy_state const&, copy_state const&) = default;
};

/// Take `state.next` into force, locally: staged accumulators are added to mine, those I sent are cleared,
/// layers that I no longer hold are dropped. Answer: merged (the protocol then has the plan as `state.plan`). If the plan needs more (salvage.more), members
/// exchange holdings again and no section begins before.
struct merge_staging {
    friend constexpr bool operator==(merge_staging const&, merge_staging const&) = default;
};

/// End the attempt, locally. commit, stop: optimizer and next scales; skip: neither; redo: scales from this
/// attempt's maxima. All accumulators are cleared. `consents` are the bits that all members set
/// in their section_finished. Answer: updated.
struct update_state {
    outcome found;
    std::uint32_t consents;
    friend constexpr bool operator==(update_state const&, update_state const&) = default;
};

/// The end. Everything is on disk and all members know that all leave, unless the reason is `fenced`.
struct leave {
    leave_reason reason;
    std::uint32_t consents;
    friend constexpr bool operator==(leave const&, leave const&) = default;
};

using protocol_action =
    std::variant<run_section, revoke_generation, decide, shrink, link_generation, exchange_holdings, copy_state, merge_staging, update_state, leave>;

}  // namespace rheo::inline v0
