// SPDX-License-Identifier: Apache-2.0
// 1F1B with each receive right before its use: two neighbours send to each other and neither receives.
// expect: rheo: this schedule, lowered like this, hangs under this transport
#include "rheo/schedule/families/one_f_one_b.hpp"
#include "rheo/schedule/families/proved.hpp"

#ifdef RHEO_MISTAKE
using lowering = rheo::lazy_insertion;
#else
using lowering = rheo::pair_insertion;
#endif

static_assert(rheo::proved<rheo::one_f_one_b, rheo::schedule_shape{.ranks = 4, .microbatches = 8}, lowering>);
