#pragma once
// SPDX-License-Identifier: Apache-2.0

// A folder of its own for each job's shared-memory segments. Open MPI 5 calls a segment
// `sm_segment.<host>.<user>.<job>.<rank>` and puts it straight into /dev/shm. Its job number is a hash of the launcher's name and
// process number in 16 bits, so two jobs of a user on one host have the same number once in 65,536 pairs; then they write into
// each other's segments, and both crash or hang. Ranks find segments by their whole path, which they exchange, so any folder
// will do that no other job has. It is locked by every rank that uses it: who can have the lock alone may remove it.

namespace rheo::inline v0::mpi {

/// Has this process put its segments into the job's folder, below the one that `OMPI_MCA_btl_sm_backing_directory` names, else
/// below /dev/shm; removes those of the user's jobs that have ended without. Where no such folder can be had, or the MPI is
/// another one, it does nothing.
/// @pre MPI is not initialised, and no other thread reads the environment
void use_own_segment_folder();

/// This process uses its segments no more; the last one of the job on this host removes the folder. The end of `main` does the
/// same; it is for those who end by _exit.
void leave_segment_folder() noexcept;

}  // namespace rheo::inline v0::mpi
