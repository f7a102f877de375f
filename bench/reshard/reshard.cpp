// SPDX-License-Identifier: Apache-2.0
// The rate of rheo::reshard beside what the same bytes cost otherwise, in one run on the ranks that it is started on: plain messages, gathering and
// scattering, memcpy of the local part, and ScaLAPACK. Plans are made before. mpirun -n 4 bench_reshard [MiB at each rank, 64] [repeats, 7]
// [KiB of a message, as by default] [--json]
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include <mpi.h>

#include "aligned_vector.hpp"
#include "block_cyclic.hpp"
#include "redistribution.hpp"
#include "rheo/reshard/plan_reshard.hpp"

using namespace rheo;

namespace {

/// A matrix cut among the ranks along a dimension; the rank r has the piece of (r + shift) mod ranks.
array_layout cut_along(int ranks, std::int64_t n, int dimension, int shift)
{
    array_layout layout{{matrix_of_floats(n, n)}, {}};
    for (int r = 0; r < ranks; ++r) {
        auto box = whole(layout.tensors[0].shape);
        auto const piece = (r + shift) % ranks;
        box[dimension] = {n * piece / ranks, n * (piece + 1) / ranks};
        layout.places.push_back({{rank_id{r}}, {{tensor_id{0}, box}}});
    }
    return layout;
}

/// @param gap elements between the rows of both arrays
void measure_boxes(bench_run const& run, std::string const& what, array_layout const& from, array_layout const& to, std::int64_t gap)
{
    auto const held_box = find_place(from, rank_id{run.self})->parts.front().box;
    auto const wanted_box = find_place(to, rank_id{run.self})->parts.front().box;
    auto const row = [&](nd_box const& box) { return length(box[1]) + gap; };
    aligned_vector<float> have(static_cast<std::size_t>(length(held_box[0]) * row(held_box)), 1.0F);
    aligned_vector<float> get(static_cast<std::size_t>(length(wanted_box[0]) * row(wanted_box)), 2.0F);
    measure(run, {what,
                  *plan_reshard({.from = from, .to = to}),
                  {{tensor_id{0}, tensor_role::parameter, held_box, have.data(), dtype::f32, {row(held_box), 1}}},
                  {{tensor_id{0}, tensor_role::parameter, wanted_box, get.data(), dtype::f32, {row(wanted_box), 1}}}});
}

/// Nothing travels: each rank copies from rows with gaps to rows without.
void measure_local(bench_run const& run, std::int64_t n)
{
    auto const layout = cut_along(run.ranks, n, 0, 0);
    auto const plan = plan_reshard({.from = layout, .to = layout});
    auto const box = find_place(layout, rank_id{run.self})->parts.front().box;
    auto const rows = static_cast<std::size_t>(length(box[0]));
    auto const row = static_cast<std::size_t>(n);
    aligned_vector<float> have(rows * (row + 16), 1.0F);
    aligned_vector<float> get(rows * row, 2.0F);
    held_array const held{tensor_id{0}, tensor_role::parameter, box, have.data(), dtype::f32, {n + 16, 1}};
    wanted_array const wanted{tensor_id{0}, tensor_role::parameter, box, get.data(), dtype::f32};
    aligned_vector<float> out(rows * row, 3.0F);
    prepared_reshard prepared{MPI_COMM_WORLD, *plan, {&held, 1}, {&wanted, 1}, run.options};
    auto const one_call = [&] { reshard(MPI_COMM_WORLD, *plan, {&held, 1}, {&wanted, 1}, run.options); };
    auto const copy = [&] { std::memcpy(get.data(), out.data(), get.size() * sizeof(float)); };
    compare(run, "local part", static_cast<double>(get.size() * sizeof(float)) * run.ranks,
            {{"rheo::reshard", one_call}, {"rheo::prepared_reshard", [&] { prepared.run(); }}, {"memcpy", copy}});
}

}  // namespace

int main(int argc, char** argv)
{
    MPI_Init(&argc, &argv);
    bench_run run;
    MPI_Comm_rank(MPI_COMM_WORLD, &run.self);
    MPI_Comm_size(MPI_COMM_WORLD, &run.ranks);
    std::vector<int> numbers;
    for (int i = 1; i < argc; ++i) {
        if (argv[i] == std::string_view{"--json"}) {
            run.json = true;
        } else {
            numbers.push_back(std::max(1, std::atoi(argv[i])));
        }
    }
    auto const mib = numbers.empty() ? 64 : numbers[0];
    run.repeats = numbers.size() > 1 ? numbers[1] : run.repeats;
    if (numbers.size() > 2) {
        run.options.message = kibibytes(numbers[2]);
    }
    int n = 64;
    while (std::int64_t{n} * n * 4 < (std::int64_t{mib} << 20) * run.ranks) {
        n += 64;
    }
    if (run.self == 0 && !run.json) {
        std::printf("%d ranks, a matrix of %d x %d floats; GB/s of all ranks together, best of %d\n", run.ranks, n, n, run.repeats);
    }
    auto const rows = cut_along(run.ranks, n, 0, 0);
    measure_boxes(run, "block rows to the next rank", rows, cut_along(run.ranks, n, 0, 1), 0);
    measure_boxes(run, "the same, rows with gaps", rows, cut_along(run.ranks, n, 0, 1), 16);
    measure_boxes(run, "block rows to block columns", rows, cut_along(run.ranks, n, 1, 0), 0);
    bool const same = measure_block_cyclic(run, n);
    measure_local(run, n);
    if (!same && run.self == 0) {
        std::fprintf(stderr, "rheo::reshard and pxgemr2d have not moved the same elements\n");
    }
    MPI_Finalize();
    return same ? 0 : 1;
}
