#pragma once
// SPDX-License-Identifier: Apache-2.0

// ScaLAPACK's redistribution of a matrix from one block-cyclic layout to another, where the build has found ScaLAPACK. A process grid is
// row-major, a local matrix column-major, and the first block is at the first process.

#include <array>
#include <cstdint>

/// A matrix of floats on a grid of processes.
struct block_cyclic_layout {
    int grid_rows;
    int grid_columns;
    int rows;  ///< of the matrix
    int columns;
    int block_rows;
    int block_columns;
};

/// The rows or columns that process `number` of a grid has. ScaLAPACK: numroc.
int local_length(int length, int block, int number, int processes);

/// Both process grids over all ranks. Collective to make and to destroy.
class scalapack_redistribution {
public:
    /// @pre as many processes in either grid as ranks
    scalapack_redistribution(block_cyclic_layout const& from, block_cyclic_layout const& to);
    scalapack_redistribution(scalapack_redistribution const&) = delete;
    scalapack_redistribution& operator=(scalapack_redistribution const&) = delete;
    ~scalapack_redistribution();

    /// Collective.
    void operator()(float const* from, float* to);

private:
    int rows_;
    int columns_;
    std::array<int, 2> grids_{};
    std::array<int, 9> from_{};  ///< array descriptors
    std::array<int, 9> to_{};
};
