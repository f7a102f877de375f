// SPDX-License-Identifier: Apache-2.0
#include "executor/reshard/node_transport.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>

namespace rheo::inline v0::detail {

namespace {

constexpr int taken_tag = 1;  ///< and those behind it, one for each place of a sender
constexpr std::size_t page = 4096;

}  // namespace

node_transport::node_transport(mpi::communicator const& comm, std::size_t bytes, std::size_t messages, std::size_t shortest)
    : mpi_transport{comm},
      memory_{comm, (bytes + page - 1) / page * page * messages},
      place_bytes_{(bytes + page - 1) / page * page},
      shortest_{std::clamp(shortest, sizeof(note) + 1, page)}
{
}

node_transport::~node_transport()
{
    for (auto& place : places_) {
        if (place->request != MPI_REQUEST_NULL) {  // left by an error
            (void)place.release();
        }
    }
}

node_transport::slot_state& node_transport::state_of(std::size_t slot)
{
    slots_.resize(std::max(slots_.size(), slot + 1));
    return slots_[slot];
}

std::byte* node_transport::buffer_to(int peer, std::size_t slot, std::size_t bytes)
{
    auto& mine = state_of(slot);
    bool const room = mine.place >= 0 || (places_.size() + 1) * place_bytes_ <= memory_.bytes();
    if (bytes < shortest_ || bytes > place_bytes_ || !memory_.reaches(peer) || !room) {
        return buffer(slot, bytes);
    }
    if (mine.place < 0) {
        mine.place = static_cast<std::int64_t>(places_.size());
        places_.push_back(std::make_unique<lent_place>());
    }
    return memory_.mine() + static_cast<std::size_t>(mine.place) * place_bytes_;
}

void node_transport::send(std::size_t slot, int peer, void const* data, std::size_t bytes)
{
    auto& mine = state_of(slot);
    mine.lends = mine.place >= 0 && data == memory_.mine() + static_cast<std::size_t>(mine.place) * place_bytes_;
    if (!mine.lends) {
        mpi_transport::send(slot, peer, data, bytes);
        return;
    }
    auto& at = *places_[static_cast<std::size_t>(mine.place)];
    at.said = {.offset = mine.place * static_cast<std::int64_t>(place_bytes_), .place = mine.place};
    std::atomic_thread_fence(std::memory_order_seq_cst);
    mpi::check(MPI_Irecv(nullptr, 0, MPI_BYTE, peer, taken_tag + static_cast<int>(mine.place), comm().handle(), &request(slot)), "MPI_Irecv");
    mpi::check(MPI_Isend(&at.said, static_cast<int>(sizeof at.said), MPI_BYTE, peer, stream_tag, comm().handle(), &at.request), "MPI_Isend");
}

void node_transport::receive(std::size_t slot, int peer, void* data, std::size_t bytes)
{
    auto& mine = state_of(slot);
    mine.peer = bytes < shortest_ || memory_.of(peer) == nullptr ? -1 : peer;
    mine.landing = static_cast<std::byte const*>(data);
    mine.elsewhere = nullptr;
    mpi_transport::receive(slot, peer, data, bytes);
}

std::vector<std::size_t> const& node_transport::ended(bool wait)
{
    auto const& slots = mpi_transport::ended(wait);
    for (std::size_t i = 0; i < slots.size(); ++i) {
        auto& one = state_of(slots[i]);
        if (one.lends) {
            mpi::check(MPI_Wait(&places_[static_cast<std::size_t>(one.place)]->request, MPI_STATUS_IGNORE), "MPI_Wait");
            one.lends = false;
        } else if (one.peer >= 0 && length_of_ended(i) == sizeof(note)) {
            note said;
            std::memcpy(&said, one.landing, sizeof said);
            one.elsewhere = memory_.of(one.peer) + said.offset;
            one.theirs = said.place;
            std::atomic_thread_fence(std::memory_order_seq_cst);
        }
    }
    return slots;
}

std::byte const* node_transport::arrived(std::size_t slot, std::byte const* data) const
{
    auto const* const elsewhere = slots_[slot].elsewhere;
    return elsewhere != nullptr ? elsewhere : data;
}

void node_transport::taken(std::size_t slot)
{
    auto& mine = slots_[slot];
    if (mine.elsewhere == nullptr) {
        return;
    }
    mine.elsewhere = nullptr;
    std::atomic_thread_fence(std::memory_order_seq_cst);
    mpi::check(MPI_Send(nullptr, 0, MPI_BYTE, mine.peer, taken_tag + static_cast<int>(mine.theirs), comm().handle()), "MPI_Send");
}

}  // namespace rheo::inline v0::detail
