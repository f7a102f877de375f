// SPDX-License-Identifier: Apache-2.0
#include "executor/train/measured_all_reduce.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <thread>
#include <utility>

#include "executor/mpi/communicator.hpp"
#include "executor/mpi/error.hpp"
#include "rheo/units/expects.hpp"

namespace rheo::inline v0 {

namespace {

/// Of the slowest rank, at all of them.
double slowest_time(mpi::communicator const& comm, std::vector<float> const& mine, std::vector<float>& sum)
{
    mpi::check(MPI_Barrier(comm.handle()), "MPI_Barrier");
    auto const begin = std::chrono::steady_clock::now();
    mpi::check(MPI_Allreduce(mine.data(), sum.data(), static_cast<int>(mine.size()), MPI_FLOAT, MPI_SUM, comm.handle()), "MPI_Allreduce");
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

std::vector<std::vector<seconds>> measured_all_reduce(MPI_Comm node, std::span<bytes const> sizes, int repeats)
{
    expects(repeats >= 1, "a measurement takes at least one sum");
    int rank = 0;
    int ranks = 0;
    MPI_Comm_rank(node, &rank);
    MPI_Comm_size(node, &ranks);
    std::vector<std::vector<seconds>> times(sizes.size());
    for (int d = 2; d <= ranks; ++d) {
        MPI_Comm first = MPI_COMM_NULL;
        mpi::check(MPI_Comm_split(node, rank < d ? 0 : MPI_UNDEFINED, rank, &first), "MPI_Comm_split");
        std::map<std::int64_t, seconds> known;  // most layers send the same
        if (first != MPI_COMM_NULL) {
            mpi::communicator const comm{first};
            for (auto const size : sizes) {
                auto const [place, fresh] = known.try_emplace(size.count);
                if (!fresh || size.count == 0) {
                    continue;
                }
                std::vector<float> const mine(static_cast<std::size_t>(size.count) / sizeof(float), 1.0F);
                std::vector<float> sum(mine.size());
                slowest_time(comm, mine, sum);
                place->second = {slowest_time(comm, mine, sum)};
                for (int r = 1; r < repeats; ++r) {
                    place->second = std::min(place->second, seconds{slowest_time(comm, mine, sum)});
                }
            }
        }
        wait_asleep(node);
        for (std::size_t i = 0; i < sizes.size(); ++i) {
            times[i].push_back(known[sizes[i].count]);
        }
    }
    return times;
}

}  // namespace rheo::inline v0
