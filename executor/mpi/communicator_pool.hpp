#pragma once
// SPDX-License-Identifier: Apache-2.0

// Communicators made before they are needed. Making one takes all members, and Open MPI 5.0 ends with a
// segmentation fault when one of them dies at the wrong moment of it (ompi_comm_revoke_local, on a communicator whose
// collectives are not yet chosen). So a job creates pairs of them while all ranks live, and a generation takes the
// next pair: that is also several times as quick as shrinking. Ranks that are lost stay members of a pair; nobody
// talks to them. Only when all pairs are used up the reserve shrinks, and makes new ones.

#include <vector>

#include "executor/mpi/communicator.hpp"
#include "rheo/topology/tagged_index.hpp"

namespace rheo::inline v0::mpi {

/// Two communicators of the same ranks.
struct communicator_pair {
    std::vector<rank_id> initial_ranks;  ///< address -> rank at launch, ascending; some may be lost since
    communicator recovery;
    communicator data;
};

class communicator_pool {
public:
    communicator_pool() = default;

    /// All ranks of the caller's communicator, which is never revoked, call it together; their ranks there are their names.
    /// Takes about 0.2 ms for each pair. @throws peer_lost, error
    communicator_pool(MPI_Comm caller, int pairs);

    /// The next pair. Every survivor takes the same one, because every survivor takes part in every generation. @throws error
    communicator_pair take();

    /// How many communicators are open here.
    std::size_t communicators() const { return 1 + 2 * ready_.size(); }

private:
    void refill();

    int pairs_ = 0;  ///< after a refill
    std::vector<rank_id> initial_ranks_;
    communicator base_;  ///< carries no messages, so it is never revoked
    std::vector<communicator_pair> ready_;
};

}  // namespace rheo::inline v0::mpi
