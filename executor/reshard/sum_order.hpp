#pragma once
// SPDX-License-Identifier: Apache-2.0

// Sums of addends in the order of ranks, whatever arrives first: the lowest rank's addend first, this rank's own at its place. A plan brings
// the addends of an element in rounds that ascend with the ranks; within a round, messages and own addends that meet are put in order here.

#include <cstddef>
#include <vector>

#include "executor/reshard/plan_streams.hpp"

namespace rheo::inline v0::detail {

/// The sums of one rank.
class sum_order {
public:
    /// Takes the rank's own addends apart by the rounds in which they are added: before the first addend of a higher rank, else in the last round.
    sum_order(reshard_plan const& plan, rank_arrays const& mine, int rounds);

    /// Whether the rank wants any.
    bool empty() const { return wanted_.empty(); }
    /// Makes the wanted elements what adding begins with.
    void begin(row_copier const& copy_rows) const;
    /// The rank's own addends of a round. The steps of the round, these and the messages of the streams, are numbered and linked.
    std::vector<local_copy> link(int round, std::vector<message_stream>& incoming, std::size_t& own_bytes) const;

private:
    struct addend {
        array_part part;  ///< one role
        int round;
    };

    void settle_own(array_part const& part, tensor_role role, int rounds);

    reshard_plan const& plan_;
    rank_arrays const& mine_;
    std::vector<array_part> wanted_{};  ///< one role each, distinct
    std::vector<addend> own_{};
};

}  // namespace rheo::inline v0::detail
