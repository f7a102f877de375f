#pragma once
// SPDX-License-Identifier: Apache-2.0

// A communicator of NCCL that never blocks: it comes up in the background, and every call may be in progress when it returns. What it puts into a stream runs
// there as a kernel that waits for its peers, for ever if one of them is gone. abort() ends such kernels; what they were to write is then garbage.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "executor/nccl/library.hpp"
#include "executor/transport/exchange_parts.hpp"
#include "kernels/cuda/stream.hpp"

namespace rheo::inline v0::nccl {

class communicator {
public:
    /// Begins to come up; the others do the same. @param most_blocks of its kernels on the device; 0: NCCL's own choice @throws error
    communicator(std::shared_ptr<library const> calls, unique_id const& id, int ranks, int rank, int most_blocks = 0);
    communicator(communicator&& other) noexcept : calls_{std::move(other.calls_)}, comm_{std::exchange(other.comm_, nullptr)}, ranks_{other.ranks_} {}
    communicator& operator=(communicator&& other) noexcept
    {
        std::swap(calls_, other.calls_);
        std::swap(comm_, other.comm_);
        std::swap(ranks_, other.ranks_);
        return *this;
    }
    ~communicator() { abort(); }

    using outgoing = outgoing_part<int>;
    using incoming = incoming_part<int>;

    int ranks() const { return ranks_; }

    /// Whether the last call is through: the communicator is up, or the work is in its stream. Asked until then, before the next call. @throws error
    bool settled() const;

    // Work for a stream. @pre settled() @throws error
    void send(std::span<std::byte const> data, int to, cuda::stream where) const;
    void receive(std::span<std::byte> data, int from, cuda::stream where) const;
    /// Messages that are under way at once. Between two members they arrive in the order in which they are listed.
    void exchange(std::span<outgoing const> out, std::span<incoming const> in, cuda::stream where) const;
    /// Exact in any order. `total` may be `mine`; else they do not overlap.
    void sum(std::span<std::int32_t const> mine, std::int32_t* total, cuda::stream where) const;
    void sum(std::span<std::int64_t const> mine, std::int64_t* total, cuda::stream where) const;

    /// Ends all its work, done or not, and itself.
    void abort() noexcept;

private:
    std::shared_ptr<library const> calls_;
    comm comm_ = nullptr;
    int ranks_ = 0;
};

}  // namespace rheo::inline v0::nccl
