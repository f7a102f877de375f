// SPDX-License-Identifier: Apache-2.0
// A schedule over no rank at all: the sentence of the run-time refusal, said by the compiler.
// expect: a schedule needs at least one rank
#include "rheo/schedule/gpipe.hpp"

#ifdef RHEO_MISTAKE
constexpr int ranks = 0;
#else
constexpr int ranks = 1;
#endif

static_assert(rheo::gpipe::program({.ranks = ranks, .microbatches = 2}).rows.size() == 1);
