// SPDX-License-Identifier: Apache-2.0
// Cuts with a stage without layers.
// expect: rheo: cuts must ascend strictly from layer 0, as in cuts<0, 5, 10, 14>
// expect: cuts_check<false, 0, 5, 5, 14>
#include "rheo/partition/cuts.hpp"

#ifdef RHEO_MISTAKE
using mine = rheo::cuts<0, 5, 5, 14>;
#else
using mine = rheo::cuts<0, 5, 10, 14>;
#endif
static_assert(mine::describe().size() == 4);
