// SPDX-License-Identifier: Apache-2.0
// Compiled twice: with CUDA's own header and with the emulation's.
#include "late.hpp"

#include <cuda_runtime.h>

#ifdef __CUDA_EMULATED__

late::late() { emulated::set_late(true); }
late::~late() { emulated::set_late(false); }
std::optional<std::uint64_t> launches_so_far() { return emulated::work().launches; }
std::optional<std::uint64_t> graphs_so_far() { return emulated::work().graphs; }

#else

late::late() = default;
late::~late() = default;
std::optional<std::uint64_t> launches_so_far() { return std::nullopt; }
std::optional<std::uint64_t> graphs_so_far() { return std::nullopt; }

#endif
