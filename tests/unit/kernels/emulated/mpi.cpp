// SPDX-License-Identifier: Apache-2.0
// What an MPI says of this device. Its memory is the processor's, so any MPI takes what lies there, unless it lies apart (RHEO_EMULATED_APART).
#include <cstdlib>

extern "C" {

/// RHEO_EMULATED_CUDA_AWARE=1: yes. In a program this comes before the MPI's own.
[[gnu::visibility("default")]] int MPIX_Query_cuda_support() { return std::getenv("RHEO_EMULATED_CUDA_AWARE") != nullptr ? 1 : 0; }

}  // extern "C"
