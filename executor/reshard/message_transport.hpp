#pragma once
// SPDX-License-Identifier: Apache-2.0

// How the messages of an exchange travel, and how their ends are waited for: over any MPI, for programs that know nothing of failures, with memory
// that ranks of a node lend each other (node_transport.hpp) or without; and by the executor's messenger, whose waits end when a peer is lost.

#include <cstddef>
#include <memory>
#include <vector>

#include "executor/mpi/communicator.hpp"

namespace rheo::inline v0::detail {

/// Messages under way are named by their slots, which the exchange numbers. When a transport is destroyed while messages are under way (an
/// exchange that an error ended), none of them touches a buffer that has been freed.
class message_transport {
public:
    message_transport() = default;
    message_transport(message_transport const&) = delete;
    message_transport& operator=(message_transport const&) = delete;
    virtual ~message_transport() = default;

    /// Memory of the host for the message of a slot; the same memory until a longer message needs more.
    virtual std::byte* buffer(std::size_t slot, std::size_t bytes) = 0;
    /// The same, for a message that is packed there and sent to that peer.
    virtual std::byte* buffer_to([[maybe_unused]] int peer, std::size_t slot, std::size_t bytes) { return buffer(slot, bytes); }
    /// @pre nothing is under way in the slot. Messages between two ranks arrive in their order. @throws mpi::peer_lost, mpi::error
    virtual void send(std::size_t slot, int peer, void const* data, std::size_t bytes) = 0;
    virtual void receive(std::size_t slot, int peer, void* data, std::size_t bytes) = 0;
    /// The slots whose messages have ended since the last call. @param wait until there is one; else this looks once
    /// @return empty after a wait: nothing is under way. @throws mpi::peer_lost, mpi::error
    virtual std::vector<std::size_t> const& ended(bool wait) = 0;
    /// Where a message is that has come: where it was to be received, or in memory that its sender waits for.
    virtual std::byte const* arrived([[maybe_unused]] std::size_t slot, std::byte const* received) const { return received; }
    /// It is not needed there any more. Before this, nothing else is received in the slot. @throws mpi::peer_lost, mpi::error
    virtual void taken([[maybe_unused]] std::size_t slot) {}
};

/// Messages on a communicator of their own over any MPI.
class mpi_transport : public message_transport {
public:
    explicit mpi_transport(mpi::communicator const& comm) : comm_{comm} {}
    ~mpi_transport() override;

    std::byte* buffer(std::size_t slot, std::size_t bytes) override;
    void send(std::size_t slot, int peer, void const* data, std::size_t bytes) override;
    void receive(std::size_t slot, int peer, void* data, std::size_t bytes) override;
    std::vector<std::size_t> const& ended(bool wait) override;

protected:
    static constexpr int stream_tag = 0;

    mpi::communicator const& comm() const { return comm_; }
    MPI_Request& request(std::size_t slot);
    /// Of the messages that ended() has named, the number of bytes of that one.
    std::size_t length_of_ended(std::size_t i) const;

private:
    struct message_buffer {
        std::unique_ptr<std::byte[]> memory{};
        std::size_t bytes = 0;
    };

    mpi::communicator const& comm_;
    std::vector<MPI_Request> requests_;
    std::vector<message_buffer> buffers_;
    std::vector<int> indices_;
    std::vector<MPI_Status> statuses_;
    std::vector<std::size_t> ended_;
};

}  // namespace rheo::inline v0::detail
