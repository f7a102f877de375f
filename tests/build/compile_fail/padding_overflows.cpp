// SPDX-License-Identifier: Apache-2.0
// A dimension of 2^63 - 1 that is padded to a multiple which 64 bits do not hold.
// expect: the padded length does not fit into 64 bits
// expect: padded to a multiple of
#include <cstdint>
#include <limits>

#include "rheo/reshard/slicing.hpp"

#ifdef RHEO_MISTAKE
constexpr std::int64_t multiple = 128;
#else
constexpr std::int64_t multiple = 7;
#endif
constexpr auto longest = std::numeric_limits<std::int64_t>::max();
static_assert((rheo::slices_of({longest}) | rheo::padded({.multiple = multiple})).padded[0] == longest);
