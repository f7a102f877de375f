// SPDX-License-Identifier: Apache-2.0
#include "executor/reshard/message_transport.hpp"

#include <algorithm>

namespace rheo::inline v0::detail {

namespace {

/// Of the requests that have ended, the first one's error says what went wrong.
void check_some(int code, std::vector<MPI_Status> const& statuses, int count, char const* call)
{
    if (code != MPI_SUCCESS && count != MPI_UNDEFINED) {
        for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
            mpi::check(statuses[i].MPI_ERROR, call);
        }
    }
    mpi::check(code, call);
}

}  // namespace

mpi_transport::~mpi_transport()
{
    bool const pending = std::any_of(requests_.begin(), requests_.end(), [](MPI_Request r) { return r != MPI_REQUEST_NULL; });
    if (!pending) {
        return;
    }
    // Left by an error. With ULFM the requests end with an error once the communicator is revoked; else they may never end, and their buffers stay.
    mpi::revoke(comm_);
#if RHEO_HAS_ULFM
    MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE);
#else
    for (auto& each : buffers_) {
        (void)each.memory.release();
    }
#endif
}

std::byte* mpi_transport::buffer(std::size_t slot, std::size_t bytes)
{
    buffers_.resize(std::max(buffers_.size(), slot + 1));
    auto& mine = buffers_[slot];
    if (mine.bytes < bytes) {
        mine.memory = std::make_unique_for_overwrite<std::byte[]>(bytes);
        mine.bytes = bytes;
    }
    return mine.memory.get();
}

MPI_Request& mpi_transport::request(std::size_t slot)
{
    if (slot >= requests_.size()) {
        requests_.resize(slot + 1, MPI_REQUEST_NULL);
        indices_.resize(slot + 1);
        statuses_.resize(slot + 1);
    }
    return requests_[slot];
}

void mpi_transport::send(std::size_t slot, int peer, void const* data, std::size_t bytes)
{
    mpi::check(MPI_Isend(data, static_cast<int>(bytes), MPI_BYTE, peer, stream_tag, comm_.handle(), &request(slot)), "MPI_Isend");
}

void mpi_transport::receive(std::size_t slot, int peer, void* data, std::size_t bytes)
{
    mpi::check(MPI_Irecv(data, static_cast<int>(bytes), MPI_BYTE, peer, stream_tag, comm_.handle(), &request(slot)), "MPI_Irecv");
}

std::vector<std::size_t> const& mpi_transport::ended(bool wait)
{
    auto const* const call = wait ? "MPI_Waitsome" : "MPI_Testsome";
    int count = MPI_UNDEFINED;
    auto const code = (wait ? MPI_Waitsome : MPI_Testsome)(static_cast<int>(requests_.size()), requests_.data(), &count, indices_.data(), statuses_.data());
    check_some(code, statuses_, count, call);
    ended_.clear();
    for (int i = 0; count != MPI_UNDEFINED && i < count; ++i) {
        ended_.push_back(static_cast<std::size_t>(indices_[static_cast<std::size_t>(i)]));
    }
    return ended_;
}

std::size_t mpi_transport::length_of_ended(std::size_t i) const
{
    int bytes = 0;
    mpi::check(MPI_Get_count(&statuses_[i], MPI_BYTE, &bytes), "MPI_Get_count");
    return static_cast<std::size_t>(bytes);
}

}  // namespace rheo::inline v0::detail
