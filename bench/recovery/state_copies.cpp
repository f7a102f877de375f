// SPDX-License-Identifier: Apache-2.0
// The rate of a recovery's copies beside plain messages of the same sizes, in one run on the ranks that it is started on: mpirun -n 4
// bench_state_copies. Each rank holds two parts of a model of as many parts as ranks, and gets a third, which two others hold. Plain messages go
// between buffers without digests or plan: into new memory as copies take it (in large pages), into new memory as the system gives it, and into
// memory that was written to before. What is given back afterwards is not counted. Measured in turn, the best of each counts. Arguments: blocks of a
// part (2, of 9.4 MB each), repeats (7).
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <new>
#include <optional>
#include <set>
#include <vector>

#include <mpi.h>
#include <sys/mman.h>

#include "../slowest_rank.hpp"
#include "executor/host/backend.hpp"
#include "executor/mpi/generation.hpp"
#include "executor/mpi/messenger.hpp"
#include "executor/state/resident_state.hpp"
#include "executor/state/tensor_copies.hpp"
#include "rheo/model/model.hpp"
#include "rheo/model/state.hpp"
#include "rheo/reshard/plan_reshard.hpp"
#include "rheo/reshard/state_layout.hpp"

using namespace rheo;

namespace {

constexpr std::size_t longest = std::size_t{4} << 20U;

int self = 0;
int ranks = 0;

/// Bytes between this rank and the others.
struct traffic {
    std::map<int, std::size_t> to{};
    std::map<int, std::size_t> from{};
};

traffic traffic_of(reshard_plan const& plan)
{
    traffic mine;
    for (auto const& t : plan.transfers) {
        if (t.from.value == self) {
            mine.to[t.to.value] += static_cast<std::size_t>(t.size.count);
        } else if (t.to.value == self) {
            mine.from[t.from.value] += static_cast<std::size_t>(t.size.count);
        }
    }
    return mine;
}

std::size_t sum(std::map<int, std::size_t> const& sizes)
{
    std::size_t total = 0;
    for (auto const& [peer, size] : sizes) {
        total += size;
    }
    return total;
}

/// Of this process from now on, and touched by nobody yet.
class pages_of_the_system {
public:
    explicit pages_of_the_system(std::size_t size) : size_{size}, place_{mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)}
    {
        if (place_ == MAP_FAILED) {
            throw std::bad_alloc{};
        }
    }
    pages_of_the_system(pages_of_the_system const&) = delete;
    pages_of_the_system& operator=(pages_of_the_system const&) = delete;
    ~pages_of_the_system() { munmap(place_, size_); }

    std::byte* begin() const { return static_cast<std::byte*>(place_); }

private:
    std::size_t size_;
    void* place_;
};

void plain_messages(traffic const& mine, std::byte const* out, std::byte* in)
{
    std::vector<MPI_Request> requests;
    for (auto const& [peer, size] : mine.from) {
        for (std::size_t done = 0; done < size; done += longest, in += std::min(longest, size - (done - longest))) {
            MPI_Irecv(in, static_cast<int>(std::min(longest, size - done)), MPI_BYTE, peer, 0, MPI_COMM_WORLD, &requests.emplace_back());
        }
    }
    for (auto const& [peer, size] : mine.to) {
        for (std::size_t done = 0; done < size; done += longest, out += std::min(longest, size - (done - longest))) {
            MPI_Isend(out, static_cast<int>(std::min(longest, size - done)), MPI_BYTE, peer, 0, MPI_COMM_WORLD, &requests.emplace_back());
        }
    }
    MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
}

void measure(int blocks, int repeats)
{
    // a part is `blocks` blocks; the embedding and the classifier belong to the first and the last one
    auto const state = state_of(gpt_model({.vocabulary = 256, .context = 16, .width = 256, .heads = 4, .blocks = blocks * ranks}));
    std::vector<std::vector<layer_id>> before(static_cast<std::size_t>(ranks));
    auto after = before;
    auto const layers = blocks * ranks + 2;
    for (int rank = 0; rank < ranks; ++rank) {
        for (int l = 0; l < layers; ++l) {
            auto const part = std::clamp((l - 1) / blocks, 0, ranks - 1);
            auto const distance = (part - rank + ranks) % ranks;
            if (distance < 2) {
                before[static_cast<std::size_t>(rank)].push_back(layer_id{l});
            }
            if (distance < 3) {
                after[static_cast<std::size_t>(rank)].push_back(layer_id{l});
            }
        }
    }
    std::vector<rank_layers> held;
    std::vector<rank_layers> wanted;
    for (int rank = 0; rank < ranks; ++rank) {
        held.push_back({rank_id{rank}, before[static_cast<std::size_t>(rank)]});
        wanted.push_back({rank_id{rank}, after[static_cast<std::size_t>(rank)]});
    }
    auto const tensors = layout_tensors(state, committed_formats);
    auto const plan = plan_reshard({.from = state_layout(state, tensors, held), .to = state_layout(state, tensors, wanted), .round_budget = mebibytes(256)});
    if (!plan) {
        std::fprintf(stderr, "%s\n", plan.error().c_str());
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    auto const members = mpi::first_generation(MPI_COMM_WORLD, generation_id{1}, 1);
    mpi::messenger messages{members};
    host_backend backend{1};
    resident_state resident{state, backend};
    for (auto const l : before[static_cast<std::size_t>(self)]) {
        initialise_layers(resident, l, layer_id{l.value + 1}, 1);
    }
    auto const mine = traffic_of(*plan);
    std::vector<std::byte> const out(sum(mine.to), std::byte{1});
    std::vector<std::byte> warm(sum(mine.from));
    double best[4] = {1e300, 1e300, 1e300, 1e300};
    for (int i = 0; i < repeats; ++i) {
        std::set<tensor_id> arrived;
        auto const note = [&](tensor_id t) { arrived.insert(t); };
        auto const begun = [] {};
        auto const copy = [&] { copy_tensors(messages, *plan, resident.info(), resident, begun, note); };
        array<std::byte> large{backend.own()};
        std::optional<pages_of_the_system> small;
        auto const into_large_pages = [&] {
            large.adopt(static_cast<std::byte*>(backend.own().take_all(std::array{warm.size()}).front()), warm.size());
            plain_messages(mine, out.data(), large.data());
        };
        auto const into_new = [&] { plain_messages(mine, out.data(), small.emplace(warm.size()).begin()); };
        auto const into_used = [&] { plain_messages(mine, out.data(), warm.data()); };
        best[0] = std::min(best[0], bench::seconds_of_slowest(copy));
        for (auto const t : arrived) {
            resident.drop(t);
        }
        best[1] = std::min(best[1], bench::seconds_of_slowest(into_large_pages));
        best[2] = std::min(best[2], bench::seconds_of_slowest(into_new));
        best[3] = std::min(best[3], bench::seconds_of_slowest(into_used));
    }
    if (self == 0) {
        char const* const names[] = {"copies of a recovery", "plain, new memory, large pages", "plain, new memory", "plain, used memory"};
        auto const moved = static_cast<double>(plan->certificate.moved.value.count);
        std::printf("%d ranks, %.0f MB\n", ranks, moved / 1e6);
        for (int w = 0; w < 4; ++w) {
            std::printf("%-30s %8.2f GB/s  copies are %6.1f %% of it\n", names[w], moved / best[w] / 1e9, 100 * best[w] / best[0]);
        }
    }
}

}  // namespace

int main(int argc, char** argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &self);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (ranks < 4) {
        std::fprintf(stderr, "bench_state_copies runs on 4 ranks or more, not on %d: mpirun -n 4 bench_state_copies\n", ranks);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    measure(argc > 1 ? std::atoi(argv[1]) : 2, argc > 2 ? std::atoi(argv[2]) : 7);
    MPI_Finalize();
    return 0;
}
