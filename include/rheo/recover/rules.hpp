#pragma once
// SPDX-License-Identifier: Apache-2.0

// The rules that the protocol stands on, each of which can be taken away. No job runs a protocol without
// them: the exploration in tests/unit/rheo/recover takes them away one at a time and must find the harm, which
// shows both that the rule is needed and that the exploration sees.

namespace rheo::inline v0 {

struct protocol_rules {
    bool success_counts = true;        ///< settled means return code success and bit 0, not the vote alone
    bool senders_clear = true;         ///< accumulators are moved, not copied
    bool stamps_count = true;          ///< a message of another generation, step or attempt is not taken
    bool one_decide = true;            ///< a rank that leaves makes the same call with vote 0, no other one
    bool leaving_revokes = true;       ///< anyone who leaves a generation early revokes it first
    bool decide_then_merge = true;     ///< what was moved counts only after all have it
    bool copies_are_kept = true;       ///< a layer that was received counts as held although the recovery failed
    bool leavers_give = true;          ///< a rank that wants to leave first takes part in a round in which others take over what it holds
    bool leavers_vote = true;          ///< it leaves when that round is settled, not when it has sent
    bool requests_are_reduced = true;  ///< all ranks act on the reduced requests, not on their own

    friend constexpr bool operator==(protocol_rules, protocol_rules) = default;
};

}  // namespace rheo::inline v0
