#pragma once
// SPDX-License-Identifier: Apache-2.0

// A communicator that frees itself, and the five operations of user-level failure mitigation (ULFM: Bland
// et al., "Post-failure recovery of MPI communication capability", IJHPCA 2013). With an MPI that has no
// ULFM they are the plain operations that make sense without failures: no rank is ever lost.

#include <cstddef>
#include <numeric>
#include <utility>
#include <vector>

#include "executor/mpi/error.hpp"

// MPICH declares some of the functions, too, but its launcher kills all ranks when one dies.
#if defined(OMPI_HAVE_MPI_EXT_FTMPI)
#define RHEO_HAS_ULFM 1
#else
#define RHEO_HAS_ULFM 0
#endif

namespace rheo::inline v0::mpi {

class communicator {
public:
    communicator() = default;
    explicit communicator(MPI_Comm owned) : handle_{owned} { MPI_Comm_set_errhandler(handle_, MPI_ERRORS_RETURN); }
    communicator(communicator&& other) noexcept : handle_{std::exchange(other.handle_, MPI_COMM_NULL)} {}
    communicator& operator=(communicator&& other) noexcept
    {
        std::swap(handle_, other.handle_);
        return *this;
    }
    ~communicator()
    {
        if (handle_ != MPI_COMM_NULL) {
            MPI_Comm_free(&handle_);
        }
    }

    MPI_Comm handle() const { return handle_; }

    int rank() const
    {
        int value = 0;
        MPI_Comm_rank(handle_, &value);
        return value;
    }

    int size() const
    {
        int value = 0;
        MPI_Comm_size(handle_, &value);
        return value;
    }

    /// Gives the handle away: the caller frees it.
    MPI_Comm release() { return std::exchange(handle_, MPI_COMM_NULL); }

private:
    MPI_Comm handle_ = MPI_COMM_NULL;
};

/// A copy of a communicator, with errors returned. @throws peer_lost, error
inline communicator duplicate(MPI_Comm original)
{
    MPI_Comm copy = MPI_COMM_NULL;
    check(MPI_Comm_dup(original, &copy), "MPI_Comm_dup");
    return communicator{copy};
}

/// Ends every pending and future operation of all members on this communicator.
inline void revoke([[maybe_unused]] communicator const& comm)
{
#if RHEO_HAS_ULFM
    MPIX_Comm_revoke(comm.handle());
#endif
}

/// The positions of the members that are known to have failed, in no particular order.
inline std::vector<int> get_failed([[maybe_unused]] communicator const& comm)
{
    std::vector<int> positions;
#if RHEO_HAS_ULFM
    MPI_Group failed = MPI_GROUP_NULL;
    check(MPIX_Comm_get_failed(comm.handle(), &failed), "MPIX_Comm_get_failed");
    if (failed != MPI_GROUP_EMPTY) {  // freeing the empty group breaks later calls
        MPI_Group all = MPI_GROUP_NULL;
        MPI_Comm_group(comm.handle(), &all);
        int count = 0;
        MPI_Group_size(failed, &count);
        std::vector<int> ranks(static_cast<std::size_t>(count));
        std::iota(ranks.begin(), ranks.end(), 0);
        positions.assign(ranks.size(), MPI_UNDEFINED);
        MPI_Group_translate_ranks(failed, count, ranks.data(), all, positions.data());
        MPI_Group_free(&all);
        MPI_Group_free(&failed);
    }
#endif
    return positions;
}

/// Acknowledges the members that get_failed() named: an agreement without further failures succeeds from now on.
inline void ack_failed([[maybe_unused]] communicator const& comm, [[maybe_unused]] std::vector<int> const& failed)
{
#if RHEO_HAS_ULFM
    int acknowledged = 0;
    check(MPIX_Comm_ack_failed(comm.handle(), static_cast<int>(failed.size()), &acknowledged), "MPIX_Comm_ack_failed");
#endif
}

/// True when a member has revoked the communicator, as far as this rank has heard. It makes no progress itself.
inline bool is_revoked([[maybe_unused]] communicator const& comm)
{
    int revoked = 0;
#if RHEO_HAS_ULFM
    MPIX_Comm_is_revoked(comm.handle(), &revoked);
#endif
    return revoked != 0;
}

/// True when more than `lost_before` members are known to have failed, or the communicator has been revoked. Cheap
/// enough for polling loops; it makes no progress itself.
inline bool has_failures([[maybe_unused]] communicator const& comm, [[maybe_unused]] std::size_t lost_before)
{
#if RHEO_HAS_ULFM
    int revoked = 0;
    MPIX_Comm_is_revoked(comm.handle(), &revoked);
    if (revoked != 0) {
        return true;
    }
    MPI_Group failed = MPI_GROUP_NULL;
    if (MPIX_Comm_get_failed(comm.handle(), &failed) != MPI_SUCCESS) {
        return true;
    }
    int size = 0;
    MPI_Group_size(failed, &size);
    if (failed != MPI_GROUP_EMPTY) {
        MPI_Group_free(&failed);
    }
    return static_cast<std::size_t>(size) > lost_before;
#else
    return false;
#endif
}

/// Lets the MPI do what it has to do, without a message of our own.
inline void make_progress(communicator const& comm)
{
    int flag = 0;
    MPI_Iprobe(comm.rank(), 0, comm.handle(), &flag, MPI_STATUS_IGNORE);
}

struct agreement {
    bool success;  ///< no member was lost: the same at all survivors
    int bits;      ///< the AND of all votes: the same at all survivors
};

/// Agrees on the AND of all members' votes; returns even when members are lost or the communicator is revoked.
inline agreement agree(communicator const& comm, int vote)
{
#if RHEO_HAS_ULFM
    int const code = MPIX_Comm_agree(comm.handle(), &vote);
    if (code != MPI_SUCCESS && !is_loss(code)) {
        check(code, "MPIX_Comm_agree");
    }
    return {code == MPI_SUCCESS, vote};
#else
    int bits = 0;
    check(MPI_Allreduce(&vote, &bits, 1, MPI_INT, MPI_BAND, comm.handle()), "MPI_Allreduce");
    return {true, bits};
#endif
}

/// A communicator of the members that live, in the same order. @throws peer_lost, error
inline communicator shrink(communicator const& comm)
{
#if RHEO_HAS_ULFM
    MPI_Comm survivors = MPI_COMM_NULL;
    check(MPIX_Comm_shrink(comm.handle(), &survivors), "MPIX_Comm_shrink");
    return communicator{survivors};
#else
    return duplicate(comm.handle());
#endif
}

/// True when failures of peers are really survived: the library has ULFM and the launcher switched it on.
inline bool survives_losses()
{
#if RHEO_HAS_ULFM
    void* value = nullptr;
    int found = 0;
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_FT, &value, &found);
    return found != 0 && value != nullptr && *static_cast<int*>(value) != 0;
#else
    return false;
#endif
}

}  // namespace rheo::inline v0::mpi
