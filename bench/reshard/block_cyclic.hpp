#pragma once
// SPDX-License-Identifier: Apache-2.0

// A block-cyclic matrix as rheo::reshard and as ScaLAPACK see it, and the redistributions of it that are measured.

#include "comparison.hpp"

/// From blocks of 64 x 64 on a square grid to blocks of 96 x 96 on the same grid, and to block rows. Collective. @param n rows and columns
/// @return false: rheo::reshard and ScaLAPACK do not agree
bool measure_block_cyclic(bench_run const& run, int n);
