#pragma once
// SPDX-License-Identifier: Apache-2.0

// Messages over any MPI, of which those that are packed for a rank of the same node lie in memory that it reads: instead of the bytes a note says where
// they are, and they go from one array to the other in two copies, not three. What is written last is in the caches when it is read. Other messages go
// as mpi_transport sends them, and the receiver knows a note by its length.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "executor/reshard/message_transport.hpp"
#include "executor/reshard/node_memory.hpp"

namespace rheo::inline v0::detail {

class node_transport final : public mpi_transport {
public:
    /// Collective over the communicator. @param bytes the longest message  @param messages that this rank packs for others at a time
    /// @param shortest that is lent; but no longer than 4 KiB, from where a note and its answer take less than the bytes. The same on all ranks
    node_transport(mpi::communicator const& comm, std::size_t bytes, std::size_t messages, std::size_t shortest);
    ~node_transport() override;

    std::byte* buffer_to(int peer, std::size_t slot, std::size_t bytes) override;
    void send(std::size_t slot, int peer, void const* data, std::size_t bytes) override;
    void receive(std::size_t slot, int peer, void* data, std::size_t bytes) override;
    std::vector<std::size_t> const& ended(bool wait) override;
    std::byte const* arrived(std::size_t slot, std::byte const* data) const override;
    void taken(std::size_t slot) override;

private:
    struct note {
        std::int64_t offset = 0;
        std::int64_t place = 0;
    };
    struct lent_place {
        note said{};
        MPI_Request request = MPI_REQUEST_NULL;
    };
    struct slot_state {
        std::int64_t place = -1;               ///< of its packed messages; none yet
        bool lends = false;                    ///< the message under way is a note
        int peer = -1;                         ///< that sends
        std::byte const* landing = nullptr;    ///< where it is to come
        std::byte const* elsewhere = nullptr;  ///< where it is instead
        std::int64_t theirs = 0;               ///< its place at the sender
    };

    slot_state& state_of(std::size_t slot);

    node_memory memory_;
    std::size_t place_bytes_;
    std::size_t shortest_;
    std::vector<slot_state> slots_;
    std::vector<std::unique_ptr<lent_place>> places_;
};

}  // namespace rheo::inline v0::detail
