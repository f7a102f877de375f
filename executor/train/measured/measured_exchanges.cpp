// SPDX-License-Identifier: Apache-2.0
#include "executor/train/measured/measured_exchanges.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <thread>
#include <utility>

#include "executor/mpi/communicator.hpp"
#include "executor/mpi/error.hpp"
#include "rheo/pipeline/shares.hpp"
#include "rheo/tensor/shard_grid.hpp"
#include "rheo/units/expects.hpp"

namespace rheo::inline v0 {

namespace {

/// Does the exchange of one layer's output again and again, in memory that is there before.
class exchange_of_output {
public:
    exchange_of_output(mpi::communicator const& comm, layer_output const& output) : comm_{&comm}
    {
        int ranks = 0;
        int self = 0;
        MPI_Comm_size(comm.handle(), &ranks);
        MPI_Comm_rank(comm.handle(), &self);
        auto const elements = output.rows * output.width;
        if (output.grid < ranks) {
            in_one_sum_ = static_cast<std::size_t>(elements);
            out_.resize(in_one_sum_ * sizeof(float));
            in_.resize(out_.size());
            return;
        }
        auto const bytes_of = [&](shard_range rows, std::int64_t copies, dtype type) {
            auto const size = rows.count() * output.width * copies * size_of(type);
            expects(size <= std::numeric_limits<int>::max(), "a message of one exchange has less than 2 GiB");
            return static_cast<int>(size);
        };
        auto const run_of = [&](int member) { return even_group(output.grid, ranks, member).run(output.grid); };
        auto const rows_at = [&](int member) { return rows_of(run_of(member), output.rows, output.grid); };
        auto const nodes_of = [&](int member) { return static_cast<std::int64_t>(nodes_within(output.grid, run_of(member)).size()); };
        for (int other = 0; other < ranks; ++other) {
            if (other != self) {
                gather_.push_back({other, bytes_of(rows_at(self), 1, output.policy.storage), bytes_of(rows_at(other), 1, output.policy.storage)});
                sum_.push_back(
                    {other, bytes_of(rows_at(other), nodes_of(self), output.policy.compute), bytes_of(rows_at(self), nodes_of(other), output.policy.compute)});
            }
        }
        std::size_t most = 0;
        for (auto const* peers : {&gather_, &sum_}) {
            std::size_t all = 0;
            for (auto const& one : *peers) {
                all += static_cast<std::size_t>(one.receives);
                most = std::max(most, static_cast<std::size_t>(one.sends));
            }
            in_.resize(std::max(in_.size(), all));
        }
        out_.resize(most);
    }

    void run()
    {
        if (in_one_sum_ > 0) {
            mpi::check(MPI_Allreduce(out_.data(), in_.data(), static_cast<int>(in_one_sum_), MPI_FLOAT, MPI_SUM, comm_->handle()), "MPI_Allreduce");
            return;
        }
        run(gather_);
        run(sum_);
    }

private:
    struct peer {
        int other;
        int sends;
        int receives;
    };

    void run(std::vector<peer> const& peers)
    {
        std::vector<MPI_Request> requests;
        std::size_t next = 0;
        for (auto const& m : peers) {
            mpi::check(MPI_Irecv(in_.data() + next, m.receives, MPI_BYTE, m.other, 0, comm_->handle(), &requests.emplace_back()), "MPI_Irecv");
            next += static_cast<std::size_t>(m.receives);
        }
        for (auto const& m : peers) {
            mpi::check(MPI_Isend(out_.data(), m.sends, MPI_BYTE, m.other, 0, comm_->handle(), &requests.emplace_back()), "MPI_Isend");
        }
        mpi::check(MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE), "MPI_Waitall");
    }

    mpi::communicator const* comm_;
    std::size_t in_one_sum_ = 0;  ///< elements, where it is one
    std::vector<peer> gather_;
    std::vector<peer> sum_;
    std::vector<std::byte> out_;
    std::vector<std::byte> in_;
};

/// Of the slowest rank, at all of them.
double slowest_time(mpi::communicator const& comm, exchange_of_output& exchange)
{
    mpi::check(MPI_Barrier(comm.handle()), "MPI_Barrier");
    auto const begin = std::chrono::steady_clock::now();
    exchange.run();
    double const took = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    double slowest = 0;
    mpi::check(MPI_Allreduce(&took, &slowest, 1, MPI_DOUBLE, MPI_MAX, comm.handle()), "MPI_Allreduce");
    return slowest;
}

}  // namespace

MPI_Comm ranks_of_this_node(MPI_Comm comm)
{
    MPI_Comm node = MPI_COMM_NULL;
    mpi::check(MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node), "MPI_Comm_split_type");
    return node;
}

void wait_asleep(MPI_Comm comm)
{
    MPI_Request request = MPI_REQUEST_NULL;
    mpi::check(MPI_Ibarrier(comm, &request), "MPI_Ibarrier");
    for (int done = 0; done == 0;) {
        mpi::check(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
        std::this_thread::sleep_for(std::chrono::milliseconds{done != 0 ? 0 : 2});
    }
}

std::vector<std::vector<seconds>> measured_exchanges(MPI_Comm node, std::span<layer_output const> outputs, int repeats)
{
    expects(repeats >= 1, "a measurement takes at least one exchange");
    int rank = 0;
    int ranks = 0;
    MPI_Comm_rank(node, &rank);
    MPI_Comm_size(node, &ranks);
    std::vector<std::vector<seconds>> times(outputs.size());
    for (int d = 2; d <= ranks; ++d) {
        MPI_Comm first = MPI_COMM_NULL;
        mpi::check(MPI_Comm_split(node, rank < d ? 0 : MPI_UNDEFINED, rank, &first), "MPI_Comm_split");
        std::map<std::int64_t, seconds> known;  // by width: most layers send the same
        if (first != MPI_COMM_NULL) {
            mpi::communicator const comm{first};
            for (auto const& output : outputs) {
                auto const [place, fresh] = known.try_emplace(output.width);
                if (!fresh || output.width == 0) {
                    continue;
                }
                exchange_of_output exchange{comm, output};
                slowest_time(comm, exchange);
                place->second = {slowest_time(comm, exchange)};
                for (int r = 1; r < repeats; ++r) {
                    place->second = std::min(place->second, seconds{slowest_time(comm, exchange)});
                }
            }
        }
        wait_asleep(node);
        for (std::size_t i = 0; i < outputs.size(); ++i) {
            times[i].push_back(known[outputs[i].width]);
        }
    }
    return times;
}

}  // namespace rheo::inline v0
