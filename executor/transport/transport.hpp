#pragma once
// SPDX-License-Identifier: Apache-2.0

// How the matrices of a section get from rank to rank, what the ranks of a group exchange, and how the integers of gradients are summed. Results are the same bits whatever moves them. Messages of one
// kind between two ranks arrive in the order in which they were sent, and are received in that order.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "executor/mpi/messenger.hpp"
#include "executor/transport/exchange_parts.hpp"
#include "rheo/schedule/core/instruction.hpp"

namespace rheo::inline v0 {

class transport {
public:
    using ticket = std::size_t;

    transport() = default;
    transport(transport const&) = delete;
    transport& operator=(transport const&) = delete;
    virtual ~transport() = default;

    virtual rank_id self() const = 0;

    /// Messages lie where kernels compute. Else they lie in memory for messages (compute_backend::messages).
    virtual bool is_direct() const = 0;
    /// Memory of the backend may be taken and given back while messages are under way.
    virtual bool permits_allocation() const = 0;

    /// @param data lives, and is not written to, until the ticket is done; what the backend's queue writes there is done
    virtual ticket send(rank_id to, mpi::channel kind, int item, std::span<std::byte const> data) = 0;
    virtual ticket receive(rank_id from, mpi::channel kind, int item, std::span<std::byte> data) = 0;

    using outgoing = outgoing_part<rank_id>;
    using incoming = incoming_part<rank_id>;
    /// All members of a group exchange at once, one exchange after the other. Between two members messages arrive in the order in which they are listed; what
    /// is empty is no message. @param kind shards or parameters @param group in the order that all members have @return all must be done
    virtual std::vector<ticket> exchange(mpi::channel kind, std::span<rank_id const> group, std::span<outgoing const> out, std::span<incoming const> in) = 0;

    /// Whether it sums for a group. Else a reduction sends its integers as messages.
    virtual bool sums() const { return false; }
    /// The sums over the holders of a reduction, which all cut it into the same parts. `total` is `mine`, or does not overlap it.
    /// @param is_last the last part in this section @pre sums()
    virtual ticket sum(reduction_id which, std::span<std::int32_t const> mine, std::int32_t* total, bool is_last) = 0;
    virtual ticket sum(reduction_id which, std::span<std::int64_t const> mine, std::int64_t* total, bool is_last) = 0;

    /// True when the data has arrived whole (receive, sum) or may be written to (send). Makes progress. @throws mpi::peer_lost
    virtual bool done(ticket which) = 0;

    /// A section breaks off: on return nothing that was begun touches memory any more.
    virtual void abandon() noexcept = 0;
};

}  // namespace rheo::inline v0
