#pragma once
// SPDX-License-Identifier: Apache-2.0

// Messages and sums between GPUs by NCCL: each connection of the plan is a communicator with a stream of its own, and what is sent and received lies in the
// devices' memory. The rule that keeps recovery exact: after an abort a receive ends, and its stream runs on over garbage. So the processor looks whether a
// receive has ended while its communicator was healthy, before it puts into the backend's queue what reads the data. Losses of ranks are found by the MPI, whose
// generation every wait looks at; an error of NCCL's own ends the generation, too.

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "executor/device/backend.hpp"
#include "executor/nccl/communicator.hpp"
#include "executor/nccl/connections.hpp"
#include "executor/nccl/kept_communicators.hpp"
#include "executor/transport/transport.hpp"
#include "rheo/units/units.hpp"

namespace rheo::inline v0::nccl {

/// How many a rank can have: more streams than the device has queues would wait for each other (CUDA_DEVICE_MAX_CONNECTIONS, CUDA's default is 8), and two are
/// for computations and copies.
int most_connections();

class nccl_transport final : public transport {
public:
    /// Waits for messages. @param all those of this rank, in the order of all ranks  @param kept of other plans, of which some may go on
    /// @param multiprocessors of the device, this rank's share @pre the backend makes streams @throws mpi::peer_lost, error
    nccl_transport(std::shared_ptr<library const> calls, compute_backend& backend, mpi::messenger& messages, std::vector<connection> all,
                   std::vector<quiet_communicator> kept, int multiprocessors);
    ~nccl_transport() override { abandon(); }

    /// Goes on with coming up, one communicator after the other in the order of all ranks, so that none waits for another. Never waits. True when all are up.
    /// @param patience for one of them; 0: for ever @throws error
    bool come_up(seconds patience);

    /// Each connection carries words, and the library takes what memory it needs. @pre all ranks have come up, and do this now
    /// @throws mpi::peer_lost also where a connection fails: then failure() says it
    void prove();

    rank_id self() const override { return messages_->members().self; }
    bool is_direct() const override { return true; }
    bool permits_allocation() const override { return false; }  // the runtime may wait for kernels that wait for other ranks
    ticket send(rank_id to, mpi::channel kind, int item, std::span<std::byte const> data) override;
    ticket receive(rank_id from, mpi::channel kind, int item, std::span<std::byte> data) override;
    std::vector<ticket> exchange(mpi::channel kind, std::span<rank_id const> group, std::span<outgoing const> out, std::span<incoming const> in) override;
    bool sums() const override { return true; }
    ticket sum(reduction_id which, std::span<std::int32_t const> mine, std::int32_t* total, bool is_last) override;
    ticket sum(reduction_id which, std::span<std::int64_t const> mine, std::int64_t* total, bool is_last) override;
    bool done(ticket which) override;
    void abandon() noexcept override;

    /// Ends. What is up and has nothing under way here remains.
    std::vector<quiet_communicator> take_quiet();

    /// What NCCL reported; empty: nothing.
    std::string const& failure() const { return failure_; }

private:
    enum class operation_kind : std::uint8_t { send, receive, exchange, sum_of_32, sum_of_64 };
    struct operation {
        operation_kind kind{};
        std::vector<communicator::outgoing> out{};  ///< of an exchange
        std::vector<communicator::incoming> in{};
        void const* from = nullptr;
        void* to = nullptr;
        std::size_t count = 0;                ///< bytes, or sums
        reduction_id sums{-1};                ///< of a sum
        bool is_last = false;                 ///< of its reduction
        std::size_t at = 0;                   ///< connection
        std::optional<std::uint64_t> mark{};  ///< once it is in the stream
    };
    struct channel {
        connection about;
        unique_id id{};
        std::optional<communicator> members{};
        std::uint64_t operations = 0;  ///< put into the stream since it came up
        int most_blocks = 0;           ///< of its kernels
        std::unique_ptr<device_stream> stream;
        std::uint64_t last = 0;            ///< mark of the last of them
        std::deque<ticket> waiting{};      ///< operations that are not in the stream yet
        std::optional<ticket> settling{};  ///< and the one that is on its way there
        std::size_t turn = 0;              ///< of the reductions of a group, the one whose parts go into the stream now
    };

    std::size_t place_of(connection const& link) const;
    std::size_t group_of(reduction_id which) const;
    std::size_t group_of(mpi::channel kind, std::span<rank_id const> members) const;
    ticket begin(std::size_t at, operation what);
    ticket begin_exchange(std::size_t at, std::span<outgoing const> out, std::span<incoming const> in);
    static std::optional<ticket> next_of(channel& at, std::vector<operation> const& all);
    void put(channel& at, operation const& what);
    void advance(channel& at);
    static bool is_quiet(channel& at);

    std::shared_ptr<library const> calls_;
    compute_backend* backend_;
    mpi::messenger* messages_;
    std::vector<channel> channels_;
    std::vector<operation> operations_;
    std::vector<ticket> free_;
    std::size_t up_ = 0;                                            ///< connections
    std::optional<std::chrono::steady_clock::time_point> since_{};  ///< the next of them comes up
    array<std::int32_t> words_;                                     ///< for prove()
    std::string failure_;
};

}  // namespace rheo::inline v0::nccl
