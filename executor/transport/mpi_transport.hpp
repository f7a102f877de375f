#pragma once
// SPDX-License-Identifier: Apache-2.0

// Messages by MPI. They lie in memory that the MPI reads and writes: where that is not the backend's own, who sends and receives copies.

#include <vector>

#include "executor/transport/transport.hpp"
#include "rheo/units/expects.hpp"

namespace rheo::inline v0 {

class mpi_transport final : public transport {
public:
    /// @param reaches_own_memory the MPI takes what lies in the backend's own memory
    /// @param rendezvous between stages a send is done when its receive has begun, and no item tells messages apart
    mpi_transport(mpi::messenger& messages, bool reaches_own_memory, bool rendezvous = false)
        : messages_{&messages}, is_direct_{reaches_own_memory}, rendezvous_{rendezvous}
    {
    }

    rank_id self() const override { return messages_->members().self; }
    bool is_direct() const override { return is_direct_; }
    bool permits_allocation() const override { return true; }

    ticket send(rank_id to, mpi::channel kind, int item, std::span<std::byte const> data) override
    {
        return meets(kind) ? messages_->send_synchronously(to, kind, 0, data) : messages_->send(to, kind, item, data);
    }
    ticket receive(rank_id from, mpi::channel kind, int item, std::span<std::byte> data) override
    {
        return messages_->receive(from, kind, meets(kind) ? 0 : item, data);
    }
    std::vector<ticket> exchange(mpi::channel kind, std::span<rank_id const>, std::span<outgoing const> out, std::span<incoming const> in) override
    {
        std::vector<ticket> tickets;
        for (auto const& one : in) {
            if (!one.data.empty()) {
                tickets.push_back(messages_->receive(one.from, kind, 0, one.data));
            }
        }
        for (auto const& one : out) {
            if (!one.data.empty()) {
                tickets.push_back(messages_->send(one.to, kind, 0, one.data));
            }
        }
        return tickets;
    }
    ticket sum(reduction_id, std::span<std::int32_t const>, std::int32_t*, bool) override { return no_sum(); }
    ticket sum(reduction_id, std::span<std::int64_t const>, std::int64_t*, bool) override { return no_sum(); }
    bool done(ticket which) override { return messages_->done(which); }
    void abandon() noexcept override {}  // the messenger has completed what was pending

private:
    bool meets(mpi::channel kind) const { return rendezvous_ && (kind == mpi::channel::activation || kind == mpi::channel::gradient); }
    static ticket no_sum() { throw precondition_error{"reductions send their integers as messages of MPI"}; }

    mpi::messenger* messages_;
    bool is_direct_;
    bool rendezvous_;
};

}  // namespace rheo::inline v0
