// SPDX-License-Identifier: Apache-2.0
// DualPipe on an odd number of ranks: the message of the run-time check, from the compiler.
// expect: rheo: this schedule runs in two directions and needs an even number of ranks
#include "rheo/schedule/families/dualpipe.hpp"
#include "rheo/schedule/families/proved.hpp"

#ifdef RHEO_MISTAKE
constexpr int ranks = 3;
#else
constexpr int ranks = 4;
#endif

static_assert(rheo::proved<rheo::dualpipe, rheo::schedule_shape{.ranks = ranks, .microbatches = 8}>);
