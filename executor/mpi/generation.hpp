#pragma once
// SPDX-License-Identifier: Apache-2.0

// A generation: one membership of the job with its two communicators. On the recovery communicator the
// members only agree, and look whether it is broken; everything else goes over the data communicator.
// Members are named by their rank at launch, which never changes.

#include <algorithm>
#include <cstddef>
#include <vector>

#include "executor/mpi/communicator_pool.hpp"
#include "rheo/topology/tagged_index.hpp"

namespace rheo::inline v0::mpi {

struct generation {
    generation_id id;
    std::vector<rank_id> members;  ///< who lives, ascending
    rank_id self;
    communicator_pair comms;
    communicator_pool spare_comms;  ///< of the generations to come

    communicator const& recovery() const { return comms.recovery; }
    communicator const& data() const { return comms.data; }

    /// Its number in the two communicators.
    int address_of(rank_id rank) const
    {
        return static_cast<int>(std::lower_bound(comms.initial_ranks.begin(), comms.initial_ranks.end(), rank) - comms.initial_ranks.begin());
    }
    /// Its number among those who live.
    int position_of(rank_id rank) const { return static_cast<int>(std::lower_bound(members.begin(), members.end(), rank) - members.begin()); }
    bool has(rank_id rank) const { return std::binary_search(members.begin(), members.end(), rank); }
    /// How many communicators this rank has open.
    std::size_t communicators() const { return 2 + spare_comms.communicators(); }
    /// True from the start when a rank was lost since the agreement on the members.
    bool broken() const { return has_failures(recovery(), comms.initial_ranks.size() - members.size()); }

    /// Tells every member that this generation ends.
    void revoke() const
    {
        mpi::revoke(data());
        mpi::revoke(recovery());
    }
};

/// The first generation of a job: all ranks of the caller's communicator, which is never revoked.
/// @param pairs of communicators in reserve, for as many generations  @throws peer_lost, error
generation first_generation(MPI_Comm caller, generation_id id, int pairs = 8);

/// The generation after a loss, which takes the place of the last one: the members that live, as they agree on the next pair
/// of communicators. Every survivor calls it, whatever it knows. A rank may be lost in the middle of it: then
/// the generation is broken from the start, and another one follows.
/// @param departed the same on all: members that end by themselves and do not call it; their end is waited for
/// @throws excluded_from_job when the others hold this rank for lost; error
generation next_generation(generation last, std::vector<rank_id> const& departed = {});

/// Bits of a vote that each rank without an error of its own sets. One that is missing from an agreement says to all that ranks ended in an error.
inline constexpr int no_error_of_data = 1 << 29;
inline constexpr int no_other_error = 1 << 30;
inline constexpr int no_error = no_error_of_data | no_other_error;

struct end_of_members {
    bool all_end = false;  ///< the same at all ranks that took part
    bool lowest = false;   ///< this rank, of those that are not known to be lost
};

/// For a rank that cannot continue: it makes the calls that next_generation makes on the others, with a vote that it does not live; they wait for its end.
/// @param voted this rank has made the last agreement of the generation  @param vote else its vote in that: which error it has  @throws error
end_of_members end_of_generation(generation last, bool voted, int vote);

/// The communicator of those who live, for anyone who continues without generations. @throws peer_lost, error
communicator survivors_of(generation last);

}  // namespace rheo::inline v0::mpi
