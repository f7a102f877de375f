// SPDX-License-Identifier: Apache-2.0
#include "block_cyclic.hpp"

#include <cstdio>
#include <utility>

#include <mpi.h>

#include "aligned_vector.hpp"
#include "pxgemr2d.hpp"
#include "redistribution.hpp"
#include "rheo/reshard/plan_reshard.hpp"
#include "rheo/reshard/sub_collections.hpp"

using namespace rheo;

int local_length(int length, int block, int number, int processes)
{
    auto const blocks = length / block;  // whole ones
    auto const extra = blocks % processes;
    return (blocks / processes + (number < extra ? 1 : 0)) * block + (number == extra ? length % block : 0);
}

namespace {

slices slices_in(block_cyclic_layout const& of)
{
    return slices_of({of.rows, of.columns}) | cyclic({.dimension = 0, .block = of.block_rows, .parts = of.grid_rows}) |
           cyclic({.dimension = 1, .block = of.block_columns, .parts = of.grid_columns});
}

/// The local matrix of a rank, column-major, and the boxes that lie in it.
class local_matrix {
public:
    local_matrix(block_cyclic_layout const& of, int rank)
        : of_{of},
          leading_{local_length(of.rows, of.block_rows, rank / of.grid_columns, of.grid_rows)},
          boxes_{slices_in(of).parts[static_cast<std::size_t>(rank)]}
    {
        values.resize(static_cast<std::size_t>(leading_) *
                      static_cast<std::size_t>(local_length(of.columns, of.block_columns, rank % of.grid_columns, of.grid_columns)));
    }

    /// Every box as the caller's array of a plan.
    template <class Array>
    std::vector<Array> arrays()
    {
        std::vector<Array> all;
        for (auto const& box : boxes_) {
            all.push_back({tensor_id{0}, tensor_role::parameter, box, values.data() + place(box[0].begin, box[1].begin), dtype::f32, {1, leading_}});
        }
        return all;
    }

    /// Each element becomes its number in the matrix, as far as a float tells numbers apart.
    void fill()
    {
        for (auto const& box : boxes_) {
            for (auto j = box[1].begin; j < box[1].end; ++j) {
                for (auto i = box[0].begin; i < box[0].end; ++i) {
                    values[static_cast<std::size_t>(place(i, j))] = static_cast<float>(i * of_.columns + j);
                }
            }
        }
    }

    aligned_vector<float> values{};

private:
    std::int64_t place(std::int64_t row, std::int64_t column) const
    {
        auto const local = [](std::int64_t index, std::int64_t block, std::int64_t processes) { return index / block / processes * block + index % block; };
        return local(row, of_.block_rows, of_.grid_rows) + leading_ * local(column, of_.block_columns, of_.grid_columns);
    }

    block_cyclic_layout of_;
    std::int64_t leading_;
    std::vector<nd_box> boxes_;
};

bool measure_one(bench_run const& run, std::string const& name, block_cyclic_layout const& before, block_cyclic_layout const& after)
{
    auto const ranks = ranks_from(rank_id{0}, run.ranks);
    std::vector<layout_tensor> const tensors{matrix_of_floats(before.rows, before.columns)};
    auto plan =
        plan_reshard({.from = on(ranks, collect(tensor_id{0}, slices_in(before)), tensors), .to = on(ranks, collect(tensor_id{0}, slices_in(after)), tensors)});
    local_matrix have{before, run.self};
    local_matrix get{after, run.self};
    have.fill();
    redistribution const moved{name, *std::move(plan), have.arrays<held_array>(), get.arrays<wanted_array>()};
    bool same = true;
#if RHEO_HAS_SCALAPACK
    auto expected = get;
    scalapack_redistribution by_scalapack{before, after};
    measure(run, moved, {{"ScaLAPACK pxgemr2d", [&] { by_scalapack(have.values.data(), expected.values.data()); }}});
    same = get.values == expected.values;
    MPI_Allreduce(MPI_IN_PLACE, &same, 1, MPI_CXX_BOOL, MPI_LAND, MPI_COMM_WORLD);
#else
    measure(run, moved);
#endif
    return same;
}

}  // namespace

bool measure_block_cyclic(bench_run const& run, int n)
{
    int rows = 1;  // of the squarest grid
    for (int r = 1; r * r <= run.ranks; ++r) {
        rows = run.ranks % r == 0 ? r : rows;
    }
    auto const columns = run.ranks / rows;
    block_cyclic_layout const before{rows, columns, n, n, 64, 64};
#if !RHEO_HAS_SCALAPACK
    if (run.self == 0 && !run.json) {
        std::printf("pxgemr2d is left out: this build has no ScaLAPACK for its MPI (Debian: libscalapack-mpich-dev, libscalapack-openmpi-dev)\n");
    }
#endif
    bool const blocks = measure_one(run, "blocks of 64 to blocks of 96", before, {rows, columns, n, n, 96, 96});
    return measure_one(run, "blocks of 64 to block rows", before, {run.ranks, 1, n, n, (n + run.ranks - 1) / run.ranks, n}) && blocks;
}
