#pragma once
// SPDX-License-Identifier: Apache-2.0

// A generation: one membership of the job with its two communicators. On the recovery communicator the
// members only agree, and look whether it is broken; everything else goes over the data communicator.
// Members are named by their rank at launch, which never changes.

#include <algorithm>
#include <cstddef>
#include <vector>

#include "mpi/communicator.hpp"
#include "rheo/topology/index.hpp"

namespace rheo::inline v0::mpi {

struct generation {
    generation_id id;
    std::vector<rank_id> members;  ///< position in the communicators -> rank at launch, ascending
    rank_id me;
    communicator recovery;
    communicator data;
    bool complete = true;  ///< both communicators have the same members; otherwise somebody is lost already

    int position_of(rank_id rank) const
    {
        return static_cast<int>(std::lower_bound(members.begin(), members.end(), rank) - members.begin());
    }
    bool has(rank_id rank) const { return std::binary_search(members.begin(), members.end(), rank); }
    bool broken() const { return !complete || is_broken(recovery); }

    /// Tells every member that this generation ends.
    void revoke() const
    {
        mpi::revoke(data);
        mpi::revoke(recovery);
    }
};

/// The first generation of a job: all ranks of the caller's communicator, which is never revoked.
inline generation first_generation(MPI_Comm caller, generation_id id)
{
    generation result;
    result.id = id;
    result.recovery = duplicate(caller);
    result.data = duplicate(result.recovery.handle());
    result.me = rank_id{result.recovery.rank()};
    for (int r = 0; r < result.recovery.size(); ++r) {
        result.members.push_back(rank_id{r});
    }
    return result;
}

/// The generation after a loss: the members that live, with new communicators. The data communicator comes
/// from a second shrink, which unlike a duplication ends when members fail in the middle of it; every
/// survivor makes both calls, in this order, and waits for the others behind them, whatever it knows, so the
/// calls always match.
generation next_generation(generation const& last);

}  // namespace rheo::inline v0::mpi
