// SPDX-License-Identifier: Apache-2.0
// ZB-V with too few microbatches to fill its V.
// expect: rheo: this schedule needs at least 2 p - 1 microbatches on p ranks
#include "rheo/schedule/proved.hpp"
#include "rheo/schedule/zb_v.hpp"

#ifdef RHEO_MISTAKE
constexpr int microbatches = 6;
#else
constexpr int microbatches = 7;
#endif

static_assert(rheo::proved<rheo::zb_v, rheo::schedule_shape{.ranks = 4, .microbatches = microbatches}>);
