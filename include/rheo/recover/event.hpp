#pragma once
// SPDX-License-Identifier: Apache-2.0

// What an executor answers to an action (action.hpp), one event each, and the two notes that it makes
// while an action continues.

#include <cstdint>
#include <variant>
#include <vector>

#include "rheo/recover/outcome.hpp"
#include "rheo/topology/holdings.hpp"
#include "rheo/topology/tagged_index.hpp"

namespace rheo::inline v0 {

/// A note during run_section: an operation is complete that added this microbatch to this use.
struct contributed {
    use_id use;
    microbatch_id microbatch;
};

/// A note during copy_state, or during run_section for a safety copy: this layer is here, complete, with the digest its holder named.
struct received {
    layer_id layer;
};

/// My section is complete: what the reduced flags say, and consents to put into the vote (bit 1 and up). Wishes are reduced as
/// flags are, so every rank whose section ran to its end names the same ones; they count when the step is committed.
struct section_finished {
    outcome found = outcome::commit;
    std::uint32_t consents = 0;
    std::vector<rank_id> departing{};  ///< members that want to leave after the step, ascending
    bool regroup = false;              ///< places are reassigned after the step: a rank that waits would help
};

/// Any wait of run_section, exchange_holdings or copy_state was ended by a failure or a revocation, or the look at R
/// before an operation showed one. Never the answer of another action.
struct peer_lost {};

struct revoked {};

/// The agreement's return code was success; its value. Without success the value means nothing.
struct decided {
    bool success;
    std::uint32_t bits;
};

struct shrunk {
    std::vector<rank_id> members;  ///< by numbers at launch, ascending
};

struct linked {};
struct fenced {};

struct holdings_exchanged {
    std::vector<rank_holdings> all;  ///< of all members, mine too, ascending by rank
};

struct copied {};
struct merged {};
struct updated {};

using protocol_event = std::variant<section_finished, peer_lost, revoked, decided, shrunk, linked, fenced, holdings_exchanged, copied, merged, updated>;

}  // namespace rheo::inline v0
