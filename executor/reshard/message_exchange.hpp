#pragma once
// SPDX-License-Identifier: Apache-2.0

// All messages of one round between this rank and its peers. What goes to a peer is one stream of bytes, cut into messages. Of those in buffers
// four are under way at a time: some are packed or unpacked while others travel, and no rank needs memory for more. A message whose bytes are
// one run of the user's memory is sent or received there. Many of these are under way, so that a rank that gets a core has work for long. Each end
// decides that for itself. MPI keeps the messages of a pair in order, so one tag is enough. Rows are packed here, not by an
// MPI datatype: with Open MPI 5.0 these were no faster for rows of some KiB, and with MPICH 4.0 they took four to five times as long (bench_reshard).
//
// Where addends are added, a message that came too early waits in its buffer, and its stream with it, until those of lower ranks have been
// added. The stream of the lowest rank never waits, so all of them end; no memory is needed beyond the buffers of the streams.

#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

#include "executor/reshard/message_transport.hpp"
#include "executor/reshard/strided_copy.hpp"
#include "rheo/reshard/reshard_plan.hpp"
#include "rheo/tensor/collection.hpp"

namespace rheo::inline v0::detail {

/// A message or a local copy whose place in the order of sums matters. The numbers are those of one round at one rank.
struct sum_step {
    static constexpr std::size_t none = static_cast<std::size_t>(-1);

    std::size_t number = none;
    std::size_t waits_for = 0;        ///< so many steps before it
    std::vector<std::size_t> then{};  ///< the steps that wait for it
};

/// A box between the user's memory and a message.
struct packed_box {
    strided_box box;               ///< `to` is the message when sending, the user's memory when receiving
    std::byte* user;               ///< its first element
    std::size_t offset;            ///< of it in the message
    transfer const* of = nullptr;  ///< the transfer that it is a part of; none: something else that travels with them
    tensor_role role{};
    nd_box elements{};  ///< of the tensor
};

struct packed_message {
    std::vector<packed_box> boxes;
    std::size_t bytes = 0;
    sum_step sum{};
};

struct message_stream {
    int peer;
    std::vector<packed_message> messages{};
};

/// One box from the user's memory to the user's memory.
struct local_copy {
    strided_box box;
    std::byte* to;
    std::byte const* from;
    sum_step sum{};
};

/// Looks at the bytes of a box as they travel, one behind the other: while they are sent, and when they have come.
using box_observer = std::function<void(packed_box const& box, std::byte const* bytes)>;

class message_exchange {
public:
    static constexpr std::size_t buffered = 4;  ///< messages of a peer, each way, that are in buffers at a time

    /// @param copy_rows empty: host memory, in which messages may also be sent and received directly
    /// @param observe if any, it sees each box, in the order of the stream where it is sent
    message_exchange(message_transport& transport, row_copier const& copy_rows, box_observer observe = {}, row_stores stores = row_stores::cached)
        : transport_{transport}, copy_rows_{copy_rows}, observe_{std::move(observe)}, stores_{stores}
    {
    }
    message_exchange(message_exchange const&) = delete;
    message_exchange& operator=(message_exchange const&) = delete;

    /// A message that is one run of the user's memory needs no buffer.
    static bool is_in_place(packed_message const& message, bool on_host);

    /// Sends and receives everything, and makes the local copies while messages travel. @param posted called when the first messages are under way
    /// @throws mpi::peer_lost, mpi::error
    void run(std::vector<message_stream> const& outgoing, std::vector<message_stream> const& incoming, std::vector<local_copy> const& local,
             std::function<void()> const& posted = {});

private:
    static constexpr std::size_t depth = 32;  ///< messages of a peer, each way, that are under way at a time, with those that need no buffer

    struct slot {
        std::byte* buffer = nullptr;
        packed_message const* message = nullptr;  ///< null: it is free
        bool in_place = false;                    ///< the message is the user's memory
    };

    /// What is known of a step while it waits.
    struct open_step {
        sum_step const* step = nullptr;
        std::size_t waits_for = 0;
        std::size_t slot = sum_step::none;  ///< its message has come
        local_copy const* local = nullptr;
    };

    bool start_next(std::size_t s);  ///< the next message of a stream, if there is one and a slot for it
    void start_all(std::size_t s);   ///< as many as there are slots for
    void start_sends();
    void start_in_place(std::size_t k);
    void start(std::size_t k);
    void finish(std::size_t k);  ///< the message has been sent, or has come
    void take(std::size_t k);    ///< what has come goes where it is wanted, and its stream continues
    void unpack(std::size_t k);
    void open_steps(std::vector<local_copy> const& local);
    void end_step(sum_step const& step);
    message_stream const& stream_of(std::size_t k) const;
    bool sends(std::size_t k) const { return k < outgoing_->size() * depth; }

    message_transport& transport_;
    row_copier const& copy_rows_;
    box_observer observe_;
    row_stores stores_;
    std::vector<message_stream> const* outgoing_ = nullptr;
    std::vector<message_stream> const* incoming_ = nullptr;
    std::vector<std::size_t> next_;  ///< message of each stream, those that send first
    std::vector<slot> slots_;
    std::vector<open_step> steps_;          ///< by number
    std::vector<local_copy const*> ready_;  ///< local copies that wait for nothing
};

}  // namespace rheo::inline v0::detail
