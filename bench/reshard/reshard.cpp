// SPDX-License-Identifier: Apache-2.0
// The rate of rheo::reshard beside what the same bytes cost otherwise, in one run on the ranks that it is started on: messages of the same
// sizes between buffers without gaps, memcpy of the local part, and gathering everything at one rank to scatter it again (Tenplex's way). Each is
// measured in turn, several times, and the best of each counts. Arguments: MiB at each rank (64), repeats (7), KiB of a message (as by default).
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include <mpi.h>

#include "executor/reshard/reshard.hpp"
#include "rheo/reshard/plan_reshard.hpp"

using namespace rheo;

namespace {

int self = 0;
int ranks = 0;
int repeats = 7;
reshard_options options;

/// The slowest rank's time of the work.
double timed(std::function<void()> const& work)
{
    MPI_Barrier(MPI_COMM_WORLD);
    auto const begin = MPI_Wtime();
    work();
    double const mine = MPI_Wtime() - begin;
    double slowest = 0;
    MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return slowest;
}

struct way {
    char const* name;
    std::function<void()> work;
    double best = 1e300;
};

/// Measures all ways in turn. @param bytes of all ranks together. The last way is what the first is compared with
void compare(std::string const& what, double bytes, std::vector<way> ways)
{
    for (int i = 0; i < repeats; ++i) {
        for (auto& w : ways) {
            w.best = std::min(w.best, timed(w.work));
        }
    }
    for (auto const& w : ways) {
        if (self == 0) {
            std::printf("%-34s %-28s %8.2f GB/s  %6.1f %% of %s\n", what.c_str(), w.name, bytes / w.best / 1e9, 100.0 * ways.back().best / w.best,
                        ways.back().name);
        }
    }
}

/// A matrix of floats cut among the ranks along a dimension; the rank r has the piece of (r + shift) mod ranks.
array_layout cut_along(std::int64_t n, int dimension, int shift)
{
    layout_tensor matrix{"matrix", {n, n}};
    matrix.element[0] = element_format{dtype::f32};
    array_layout layout{{matrix}, {}};
    for (int r = 0; r < ranks; ++r) {
        auto box = whole(matrix.shape);
        auto const piece = (r + shift) % ranks;
        box[dimension] = {n * piece / ranks, n * (piece + 1) / ranks};
        layout.places.push_back({{rank_id{r}}, {{tensor_id{0}, box}}});
    }
    return layout;
}

nd_box mine_of(array_layout const& layout) { return find_place(layout, rank_id{self})->parts.front().box; }

/// @param gap elements between the rows of both arrays
void measure(std::string const& what, array_layout const& from, array_layout const& to, std::int64_t gap)
{
    auto const plan = plan_reshard({.from = from, .to = to});
    auto const held_box = mine_of(from);
    auto const wanted_box = mine_of(to);
    auto const row = [&](nd_box const& box) { return length(box[1]) + gap; };
    std::vector<float> have(static_cast<std::size_t>(length(held_box[0]) * row(held_box)), 1.0F);
    std::vector<float> get(static_cast<std::size_t>(length(wanted_box[0]) * row(wanted_box)), 2.0F);
    held_array const held{tensor_id{0}, tensor_role::parameter, held_box, have.data(), dtype::f32, {row(held_box), 1}};
    wanted_array const wanted{tensor_id{0}, tensor_role::parameter, wanted_box, get.data(), dtype::f32, {row(wanted_box), 1}};

    std::vector<std::size_t> to_peer(static_cast<std::size_t>(ranks), 0);
    std::vector<std::size_t> from_peer(static_cast<std::size_t>(ranks), 0);
    for (auto const& t : plan->transfers) {
        if (t.from.value == self) {
            to_peer[at(t.to)] += static_cast<std::size_t>(t.size.count);
        }
        if (t.to.value == self) {
            from_peer[at(t.from)] += static_cast<std::size_t>(t.size.count);
        }
    }
    auto const all = static_cast<std::size_t>(elements(held_box)) * sizeof(float);
    std::vector<char> out(2 * all, 'o');
    std::vector<char> in(2 * all, 'i');
    auto const plain = [&] {
        std::vector<MPI_Request> requests;
        std::size_t received = 0;
        std::size_t sent = 0;
        for (int peer = 0; peer < ranks; ++peer) {
            if (auto const size = from_peer[static_cast<std::size_t>(peer)]; size > 0) {
                MPI_Irecv(in.data() + received, static_cast<int>(size), MPI_BYTE, peer, 0, MPI_COMM_WORLD, &requests.emplace_back());
                received += size;
            }
        }
        for (int peer = 0; peer < ranks; ++peer) {
            if (auto const size = to_peer[static_cast<std::size_t>(peer)]; size > 0) {
                MPI_Isend(out.data() + sent, static_cast<int>(size), MPI_BYTE, peer, 0, MPI_COMM_WORLD, &requests.emplace_back());
                sent += size;
            }
        }
        // what stays here is copied in either way
        auto const kept = all - received;
        std::memcpy(in.data() + received, out.data() + sent, kept);
        MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
    };
    std::vector<char> whole_matrix(self == 0 ? all * static_cast<std::size_t>(ranks) : 0);
    auto const by_one = [&] {
        MPI_Gather(out.data(), static_cast<int>(all), MPI_BYTE, whole_matrix.data(), static_cast<int>(all), MPI_BYTE, 0, MPI_COMM_WORLD);
        MPI_Scatter(whole_matrix.data(), static_cast<int>(all), MPI_BYTE, in.data(), static_cast<int>(all), MPI_BYTE, 0, MPI_COMM_WORLD);
    };
    compare(what, static_cast<double>(all) * ranks,
            {{"rheo::reshard", [&] { reshard(MPI_COMM_WORLD, *plan, {&held, 1}, {&wanted, 1}, options); }},
             {"gather and scatter", by_one},
             {"plain messages", plain}});
}

/// Nothing travels: each rank copies from rows with gaps to rows without.
void measure_local(std::int64_t n)
{
    auto const layout = cut_along(n, 0, 0);
    auto const plan = plan_reshard({.from = layout, .to = layout});
    auto const box = mine_of(layout);
    auto const rows = static_cast<std::size_t>(length(box[0]));
    auto const row = static_cast<std::size_t>(n);
    std::vector<float> have(rows * (row + 16), 1.0F);
    std::vector<float> get(rows * row, 2.0F);
    held_array const held{tensor_id{0}, tensor_role::parameter, box, have.data(), dtype::f32, {n + 16, 1}};
    wanted_array const wanted{tensor_id{0}, tensor_role::parameter, box, get.data(), dtype::f32};
    std::vector<float> out(rows * row, 3.0F);
    compare("local part", static_cast<double>(get.size() * sizeof(float)) * ranks,
            {{"rheo::reshard", [&] { reshard(MPI_COMM_WORLD, *plan, {&held, 1}, {&wanted, 1}, options); }},
             {"memcpy", [&] { std::memcpy(get.data(), out.data(), get.size() * sizeof(float)); }}});
}

}  // namespace

int main(int argc, char** argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &self);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    auto const mib = argc > 1 ? std::atoi(argv[1]) : 64;
    repeats = argc > 2 ? std::atoi(argv[2]) : 7;
    if (argc > 3) {
        options.message = kibibytes(std::atoi(argv[3]));
    }
    std::int64_t n = 64;
    while (n * n * 4 < (std::int64_t{mib} << 20) * ranks) {
        n += 64;
    }
    if (self == 0) {
        std::printf("%d ranks, a matrix of %lld x %lld floats; GB/s of all ranks together, best of %d\n", ranks, static_cast<long long>(n),
                    static_cast<long long>(n), repeats);
    }
    measure("block rows to the next rank", cut_along(n, 0, 0), cut_along(n, 0, 1), 0);
    measure("the same, rows with gaps", cut_along(n, 0, 0), cut_along(n, 0, 1), 16);
    measure("block rows to block columns", cut_along(n, 0, 0), cut_along(n, 1, 0), 0);
    measure_local(n);
    MPI_Finalize();
}
