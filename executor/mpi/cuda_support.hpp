#pragma once
// SPDX-License-Identifier: Apache-2.0

// Whether the MPI takes what lies on GPUs.

namespace rheo::inline v0::mpi {

/// The MPI says that its messages may lie in device memory (MPIX_Query_cuda_support of Open MPI, MPICH and what comes of them). No: it does not say so. One that
/// has no such function is not asked at build time, because the one that the launcher brings counts.
bool has_cuda_support();

}  // namespace rheo::inline v0::mpi
