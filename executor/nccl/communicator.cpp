// SPDX-License-Identifier: Apache-2.0
#include "executor/nccl/communicator.hpp"

#include "executor/nccl/error.hpp"

namespace rheo::inline v0::nccl {

communicator::communicator(std::shared_ptr<library const> calls, unique_id const& id, int ranks, int rank, int most_blocks)
    : calls_{std::move(calls)}, ranks_{ranks}
{
    config how;
    how.blocking = 0;
    if (most_blocks > 0) {
        how.min_ctas = 1;
        how.max_ctas = most_blocks;
    }
    auto const code = calls_->call().ncclCommInitRankConfig(&comm_, ranks, id, rank, &how);
    try {
        calls_->check(code, "ncclCommInitRankConfig", comm_);
    } catch (...) {
        abort();
        throw;
    }
}

bool communicator::settled() const
{
    result state = success;
    calls_->check(calls_->call().ncclCommGetAsyncError(comm_, &state), "ncclCommGetAsyncError", comm_);
    calls_->check(state, "an operation of NCCL", comm_);
    return state == success;
}

void communicator::send(std::span<std::byte const> data, int to, cuda::stream where) const
{
    calls_->check(calls_->call().ncclSend(data.data(), data.size(), data_type::int8, to, comm_, where.handle), "ncclSend", comm_);
}

void communicator::receive(std::span<std::byte> data, int from, cuda::stream where) const
{
    calls_->check(calls_->call().ncclRecv(data.data(), data.size(), data_type::int8, from, comm_, where.handle), "ncclRecv", comm_);
}

void communicator::exchange(std::span<outgoing const> out, std::span<incoming const> in, cuda::stream where) const
{
    calls_->check(calls_->call().ncclGroupStart(), "ncclGroupStart", comm_);
    try {
        for (auto const& one : out) {
            send(one.data, one.to, where);
        }
        for (auto const& one : in) {
            receive(one.data, one.from, where);
        }
    } catch (...) {
        calls_->call().ncclGroupEnd();  // calls of other communicators do not belong to it
        throw;
    }
    calls_->check(calls_->call().ncclGroupEnd(), "ncclGroupEnd", comm_);
}

void communicator::sum(std::span<std::int32_t const> mine, std::int32_t* total, cuda::stream where) const
{
    calls_->check(calls_->call().ncclAllReduce(mine.data(), total, mine.size(), data_type::int32, reduction_operation::sum, comm_, where.handle),
                  "ncclAllReduce", comm_);
}

void communicator::sum(std::span<std::int64_t const> mine, std::int64_t* total, cuda::stream where) const
{
    calls_->check(calls_->call().ncclAllReduce(mine.data(), total, mine.size(), data_type::int64, reduction_operation::sum, comm_, where.handle),
                  "ncclAllReduce", comm_);
}

void communicator::abort() noexcept
{
    if (comm_ != nullptr) {
        calls_->call().ncclCommAbort(std::exchange(comm_, nullptr));
    }
}

}  // namespace rheo::inline v0::nccl
