// SPDX-License-Identifier: Apache-2.0
// DualPipeV with too few microbatches to fill both arms of its V.
// expect: rheo: this schedule needs at least twice as many microbatches as ranks
#include "rheo/schedule/families/dualpipe_v.hpp"
#include "rheo/schedule/families/proved.hpp"

#ifdef RHEO_MISTAKE
constexpr int microbatches = 7;
#else
constexpr int microbatches = 8;
#endif

static_assert(rheo::proved<rheo::dualpipe_v, rheo::schedule_shape{.ranks = 4, .microbatches = microbatches}>);
