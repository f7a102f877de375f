// SPDX-License-Identifier: Apache-2.0
// The exact sum of the gradients of a model that all ranks hold, beside plain messages of the same bytes and beside what a user would call, in one run:
// mpirun -n 2 bench_reduction. Measured in turn, the best of each counts. Arguments: blocks of GPT-2 124M (4), repeats (7).
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <functional>
#include <limits>
#include <vector>

#include <mpi.h>

#include "../slowest_rank.hpp"
#include "executor/host/backend.hpp"
#include "executor/mpi/generation.hpp"
#include "executor/mpi/messenger.hpp"
#include "executor/state/reduction.hpp"
#include "executor/transport/mpi_transport.hpp"
#include "rheo/model/gpt.hpp"
#include "rheo/model/state.hpp"

using namespace rheo;

namespace {

int self = 0;
int ranks = 0;

/// The messages of a reduce-scatter of integers and an all-gather of floats, all under way at once, nothing summed.
void plain_messages(std::vector<std::int64_t> const& sums, std::vector<std::int64_t>& incoming, std::vector<float>& values)
{
    auto const count = static_cast<std::int64_t>(sums.size());
    auto const begin = [&](int rank) { return count * rank / ranks; };
    auto const size = [&](int rank) { return static_cast<int>(begin(rank + 1) - begin(rank)); };
    std::vector<MPI_Request> requests;
    for (int peer = 0; peer < ranks; ++peer) {
        if (peer != self) {
            MPI_Irecv(incoming.data() + std::int64_t{size(self)} * peer, size(self), MPI_INT64_T, peer, 0, MPI_COMM_WORLD, &requests.emplace_back());
            MPI_Isend(sums.data() + begin(peer), size(peer), MPI_INT64_T, peer, 0, MPI_COMM_WORLD, &requests.emplace_back());
        }
    }
    MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
    requests.clear();
    for (int peer = 0; peer < ranks; ++peer) {
        if (peer != self) {
            MPI_Irecv(values.data() + begin(peer), size(peer), MPI_FLOAT, peer, 1, MPI_COMM_WORLD, &requests.emplace_back());
            MPI_Isend(values.data() + begin(self), size(self), MPI_FLOAT, peer, 1, MPI_COMM_WORLD, &requests.emplace_back());
        }
    }
    MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
}

void measure(int blocks, int repeats)
{
    auto const model = gpt_model({.vocabulary = 256, .context = 16, .width = 768, .heads = 12, .blocks = blocks});
    auto const info = state_of(model);
    auto const units = reduction_units(info, static_cast<int>(model.layers.size()));
    host_backend backend{1};
    resident_state state{info, backend};
    state.begin_scales(8);
    std::int64_t parameters = 0;
    for (use_id use{0}; at(use) < info.uses.size(); ++use) {
        auto& sums = state.accumulator(use).sums;
        std::fill(sums.begin(), sums.end(), 3);
        parameters += info.tensors[at(info.uses[at(use)].tensor)].is_parameter ? std::ssize(sums) : 0;
    }
    std::vector<rank_id> everyone;
    for (int r = 0; r < ranks; ++r) {
        everyone.push_back(rank_id{r});
    }
    auto const members = mpi::first_generation(MPI_COMM_WORLD, generation_id{1}, 1);
    mpi::messenger messages{members};
    std::deque<reduction> reductions;
    bytes buffers;
    for (std::size_t u = 0; u < units.size(); ++u) {
        if (!units[u].tensors.empty()) {
            buffers += reductions.emplace_back(reduction_id{static_cast<std::int32_t>(u)}, units[u], everyone, state).buffer_bytes();
        }
    }
    auto const count = static_cast<std::size_t>(parameters);
    std::vector<std::int64_t> sums(count, 3), incoming(count + static_cast<std::size_t>(ranks));
    std::vector<float> values(count, 1.0F);
    struct way {
        char const* name;
        std::function<void()> work;
        double best = std::numeric_limits<double>::infinity();
    };
    std::array<way, 4> ways{
        {{"exact sums, as rheo train reduces",
          [&] {
              mpi_transport by{messages, true};
              messages.begin_section();
              for (auto& r : reductions) {
                  r.reset();
                  r.post(by);
              }
              messages.wait_until([&] {
                  bool whole = true;
                  for (auto& r : reductions) {
                      whole = r.advance(by) && whole;
                  }
                  return whole;
              });
          }},
         {"plain messages of the same bytes, nothing summed", [&] { plain_messages(sums, incoming, values); }},
         {"MPI_Allreduce of int64", [&] { MPI_Allreduce(MPI_IN_PLACE, sums.data(), static_cast<int>(count), MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD); }},
         {"MPI_Allreduce of float, whose bits depend on the order",
          [&] { MPI_Allreduce(MPI_IN_PLACE, values.data(), static_cast<int>(count), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD); }}}};
    for (int i = -1; i < repeats; ++i) {
        for (auto& one : ways) {
            if (auto const took = bench::seconds_of_slowest(one.work); i >= 0) {
                one.best = std::min(one.best, took);
            }
        }
    }
    if (self == 0) {
        auto const each = static_cast<double>(buffers.count) / static_cast<double>(parameters);
        std::printf("%d ranks, %.1f M parameters; buffers of %.2f bytes a parameter, the gradient's 4 among them\n", ranks,
                    static_cast<double>(parameters) * 1e-6, each);
        for (auto const& one : ways) {
            std::printf("%-56s %9.2f ms  %5.2f of the first\n", one.name, one.best * 1e3, one.best / ways.front().best);
        }
    }
}

}  // namespace

int main(int argc, char** argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &self);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    measure(argc > 1 ? std::atoi(argv[1]) : 4, argc > 2 ? std::atoi(argv[2]) : 7);
    MPI_Finalize();
}
