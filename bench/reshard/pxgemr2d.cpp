// SPDX-License-Identifier: Apache-2.0
#include "pxgemr2d.hpp"

#include <algorithm>

// ScaLAPACK has no header for C.
extern "C" {
void Cblacs_get(int context, int what, int* value);
void Cblacs_gridinit(int* context, char const* order, int rows, int columns);
void Cblacs_gridinfo(int context, int* rows, int* columns, int* row, int* column);
void Cblacs_gridexit(int context);
void Cpsgemr2d(int rows, int columns, float* from, int from_row, int from_column, int* from_descriptor, float* to, int to_row, int to_column,
               int* to_descriptor, int context);
}

namespace {

int make_grid(block_cyclic_layout const& of)
{
    int context = 0;
    Cblacs_get(-1, 0, &context);
    Cblacs_gridinit(&context, "Row", of.grid_rows, of.grid_columns);
    return context;
}

std::array<int, 9> descriptor(block_cyclic_layout const& of, int context)
{
    int rows = 0;
    int columns = 0;
    int row = 0;
    int column = 0;
    Cblacs_gridinfo(context, &rows, &columns, &row, &column);
    auto const leading = std::max(1, local_length(of.rows, of.block_rows, row, of.grid_rows));
    return {1, context, of.rows, of.columns, of.block_rows, of.block_columns, 0, 0, leading};
}

}  // namespace

scalapack_redistribution::scalapack_redistribution(block_cyclic_layout const& from, block_cyclic_layout const& to)
    : rows_{from.rows}, columns_{from.columns}, grids_{make_grid(from), make_grid(to)}, from_{descriptor(from, grids_[0])}, to_{descriptor(to, grids_[1])}
{
}

scalapack_redistribution::~scalapack_redistribution()
{
    for (auto const grid : grids_) {
        Cblacs_gridexit(grid);
    }
}

void scalapack_redistribution::operator()(float const* from, float* to)
{
    Cpsgemr2d(rows_, columns_, const_cast<float*>(from), 1, 1, from_.data(), to, 1, 1, to_.data(), grids_[0]);
}
