// SPDX-License-Identifier: Apache-2.0
// Interleaving in groups that are smaller than the pipeline.
// expect: rheo: with this group of microbatches the ranks would wait for each other in a circle
#include "rheo/schedule/families/interleaved.hpp"
#include "rheo/schedule/families/proved.hpp"

#ifdef RHEO_MISTAKE
constexpr int group = 2;
#else
constexpr int group = 4;
#endif

static_assert(rheo::proved<rheo::interleaved, rheo::schedule_shape{.ranks = 4, .microbatches = 8, .chunks = 2, .group = group}>);
