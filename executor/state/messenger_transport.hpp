#pragma once
// SPDX-License-Identifier: Apache-2.0

// The executor's way for the messages of an exchange: by the messenger of a generation. Its waits end when a peer is lost, whichever it is, so a copy
// is interrupted as every other communication of the job is.

#include <cstddef>
#include <deque>
#include <optional>
#include <vector>

#include "executor/device/memory.hpp"
#include "executor/mpi/messenger.hpp"
#include "executor/reshard/message_transport.hpp"

namespace rheo::inline v0 {

/// Peers are named by their ranks at launch.
class messenger_transport final : public detail::message_transport {
public:
    /// @param buffers memory that messages are sent from and received into
    messenger_transport(mpi::messenger& messages, memory& buffers) : messages_{messages}, memory_{buffers} {}
    ~messenger_transport() override;

    std::byte* buffer(std::size_t slot, std::size_t bytes) override;
    void send(std::size_t slot, int peer, void const* data, std::size_t bytes) override;
    void receive(std::size_t slot, int peer, void* data, std::size_t bytes) override;
    std::vector<std::size_t> const& ended(bool wait) override;

private:
    using ticket = std::optional<mpi::messenger::ticket>;

    /// Does something that may find a loss.
    template <class Work>
    auto unless_lost(Work const& work);
    bool under_way() const;
    ticket& ticket_of(std::size_t slot);
    bool look();  ///< whether something has ended

    mpi::messenger& messages_;
    memory& memory_;
    std::vector<ticket> tickets_;  ///< by slot
    std::deque<array<std::byte>> buffers_;
    std::vector<std::size_t> ended_;
    std::vector<mpi::messenger::ticket> under_way_;  ///< while it looks
    std::vector<std::size_t> slots_;                 ///< of these
};

}  // namespace rheo::inline v0
